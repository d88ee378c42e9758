"""The join by ordinal is the join by position, where there are positions to trust; and the same source everywhere."""

from __future__ import annotations

import ast
import sys
import sysconfig
from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from migrate.edits.join import Join, is_same
from migrate.source.address import Address, Index, Kind, arguments_of

NASTY = '''\
"""doc"""
from __future__ import annotations
import a.b as c, d
from . import (e, f as g)
@deco(a.b, key=c)
@other
class K(Base, *mixins, metaclass=Meta, **extra):
    x: int = 1; y: "K.x" = a.b[c]; z = None
    @property
    def p(self, /, q, *args: int, r=a.b, s: t[u] = v(w), **kw: x) -> y[z]: return self.q(r)
    async def m(self):
        async with a() as b, c(d) as (e, f): await g(h)
        async for i in j: yield i
        return [k async for k in l if m(k)]
f(a=1, *b, c=d(e), **g)
f(*a, b, *c, d=1)
f(x for x in y if z)
f((x for x in y))
del a, b
del (a, b), c[d]
a[1, 2] = a[(1, 2)] = a[b:c, d] = a[(1, 2),]
a[b[c](d), e:f(g):h]
x = a and b and c or d and (e and f) and g
x = (a and b) and c
x = not a if b else c if d else lambda e, *f, g=h, **i: j(k)
x = a < b <= c != d is not e not in f in g
x = -a ** -b + ~c @ d
x = {a: b, **c, d(e): f}, {g, *h}, [i, *j], (), {}
x = {a(b) for c in d}
x = {a(b): c(d) for e in f for g, h in i(j) if k if l}
x = "a" "b" f"{c.d(e)!r:>{f(g)}}" "h" f"{i[j]}{k=}"
y = f"""{a.b
  }{c(d,
  e)} {{no}} {f"{g.h(i)}"}"""
z = b"a" b"b", 1, 1.5, 2j, ..., None, True, u"u"
if (n := f(a)) > 1 and (m := b): pass
elif a: b(); c(d); e
else:
    if f: g()
while a: break
else: b(c)
for a, (b, *c) in d, e: continue
else:
    pass
with (a(b) as c, d): e
with (a, b) as c: d
try: a(b)
except c.d as e: f(e)
except (g, h): raise i(j) from k
else: l
finally: m(n)
try: a
except* b(c) as d: e
match a.b(c), d:
    case [e, f, *g] if h(i): j
    case {"k": l, m.n: o, **p}: q
    case R.s(t, u=v.w) | R.s(x) as y: z
    case -1 | "a" "b" | None | True: a
    case str(): b
    case _: c
global_ = print(yield_ for yield_ in a)
def gen():
    global b
    x = yield a(b)
    y = yield from c(d)
    nonlocal_ = await_ = (yield)
    return *a, b
assert a(b), c(d)
a.b += c.d(e); f.g: h.i; j = k = l.m
lambda: (yield)
type_ = a if b else (c, d)
print(*a, sep=b)
x = a if b else c,
'''

if sys.version_info < (3, 11):
    NASTY = NASTY.replace("except*", "except")

VARIANTS = {
    "plain": NASTY.encode(),
    "crlf": NASTY.replace("\n", "\r\n").encode(),
    "bom": b"\xef\xbb\xbf" + NASTY.encode(),
    "latin-1": ("# -*- coding: latin-1 -*-\n" + NASTY.replace('"k"', '"käse"')).encode("latin-1"),
    "wide characters": NASTY.replace('"k"', '"käse 🧀"').replace("self", "sélf").encode(),
    "tabs": NASTY.replace("    ", "\t").encode(),
    "form feed": NASTY.replace("while a", "\f\nwhile a").encode(),
    "no final newline": NASTY.rstrip("\n").encode(),
}


class Every(Join):
    """The address of every node, by the production walk."""

    def __init__(self, end):
        super().__init__(end, range(len(end)))
        self.found = {}

    def met(self, node, address):
        self.found[address] = node


def own(index):
    found = {Address(n): stmt for n, stmt in enumerate(index.statements)}
    asked = ((index.find(node), node) for node in ast.walk(index.tree) if not isinstance(node, ast.stmt))
    return {**found, **{address: node for address, node in asked if address is not None}}


def joined(content):
    index = Index(ast.parse(content))
    module = cst.parse_module(content)
    assert module.bytes == content
    walk = Every(index.end)
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    module.visit(walk)
    return index, walk.found, wrapper.resolve(PositionProvider)


def start(content, node):
    """Line and column in characters, as libcst counts. Parentheses around a tuple or generator belong to `ast` only."""
    line = content.decode("utf-8-sig").splitlines()[node.lineno - 1] if node.lineno else ""
    return node.lineno, len(line.encode()[: node.col_offset].decode())


@pytest.mark.parametrize("name", VARIANTS)
def test_both_trees_have_the_same_addresses_and_the_same_source_at_each(name):
    index, found, _ = joined(VARIANTS[name])
    mine = own(index)
    assert set(mine) == set(found)
    different = [a for a, node in found.items() if not is_same(node, mine[a])]
    assert different == []
    assert {address.kind for address in mine} == set(Kind)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in ("latin-1", "form feed")])
def test_positions_agree_outside_of_strings(name):
    content = VARIANTS[name]
    index, found, positions = joined(content)
    compared = 0
    for address, node in own(index).items():
        if index.is_inside_string(node) or isinstance(node, (ast.Tuple, ast.GeneratorExp, ast.stmt)):
            continue
        twin = found[address]
        if getattr(twin, "star", ""):
            continue
        position = positions[twin].start
        assert start(content, node) == (position.line, position.column), ast.dump(node)
        compared += 1
    assert compared > 300


def standard_library():
    folder = Path(sysconfig.get_path("stdlib"))
    names = ("shlex", "textwrap", "contextlib", "string", "queue")
    return [folder / f"{name}.py" for name in names]


@pytest.mark.parametrize("path", standard_library(), ids=lambda path: path.stem)
def test_join_is_exact_on_the_standard_library(path):
    index, found, positions = joined(path.read_bytes())
    mine = own(index)
    assert set(mine) == set(found)
    content = path.read_bytes()
    for number, (address, node) in enumerate(mine.items()):
        if number % 5 == 0 or index.is_inside_string(node):
            assert is_same(found[address], node), ast.unparse(node)
        if isinstance(node, (ast.Call, ast.Name, ast.Attribute)) and not index.is_inside_string(node):
            position = positions[found[address]].start
            assert start(content, node) == (position.line, position.column)


def test_a_shifted_node_is_noticed():
    index, found, _ = joined(b"a.b(c)\nd.e(f)\n")
    mine = own(index)
    assert is_same(found[Address(0, Kind.CALL)], mine[Address(0, Kind.CALL)])
    assert not is_same(found[Address(0, Kind.CALL)], mine[Address(1, Kind.CALL)])
    assert not is_same(found[Address(0)], mine[Address(1)])


def test_names_are_compared_as_python_reads_them():
    """`ast` gives the Greek letter for the micro sign; libcst what stands there."""
    index, found, _ = joined("def \u00b5(\u00b5s): pass\nclass \ufb01t: pass\n".encode())
    mine = own(index)
    for address, node in found.items():
        assert is_same(node, mine[address]), address


def test_idle_statements_are_not_entered():
    index = Index(ast.parse("def f():\n    a(b)\n    c(d)\nfor e in f: g(h)\ni(j)\n"))
    met = []

    class Walk(Join):
        def met(self, node, address):
            met.append(address)

    cst.parse_module("def f():\n    a(b)\n    c(d)\nfor e in f: g(h)\ni(j)\n").visit(Walk(index.end, {2}))
    assert {address.stmt for address in met} == {0, 2}


def test_a_chain_of_a_thousand_elifs_is_numbered():
    source = "if a: b\n" + "elif a: b\n" * 900 + "else: c\n"
    index = Index(ast.parse(source))
    assert len(index.statements) == 901 * 2 + 1
    assert index.end[0] == len(index.statements)


def test_what_has_no_address_says_so():
    tree = ast.parse("f(*a)\nb[1, 2]\n")
    index = Index(tree)
    starred, pair = tree.body[0].value.args[0], tree.body[1].value.slice
    assert index.find(starred) is None
    assert index.find(pair) is None
    assert index.find(starred.value) == Address(0, Kind.NAME, 1)
    assert starred not in index


def test_blocks_and_parents():
    tree = ast.parse("if a:\n    b\nelse:\n    c\n    d\n")
    index = Index(tree)
    c, d = tree.body[0].orelse
    assert index.block(c) is tree.body[0].orelse
    assert index.parent(d) is tree.body[0]
    assert index.parent(tree.body[0]) is None
    assert [index.statements[number] for number in index.around(index.number(d))] == [tree.body[0]]
    assert index.node_at(index.find(d.value)) is d.value


def test_arguments_come_as_written():
    call = ast.parse("f(a, k=1, *b, **c)").body[0].value
    assert [ast.unparse(argument) for argument in arguments_of(call)] == ["a", "k=1", "*b", "**c"]
