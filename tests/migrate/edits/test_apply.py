"""Each operation, in ordinary and odd places."""

from __future__ import annotations

import ast
import threading

import pytest

from migrate.edits import ARGUMENTS, BODY, FUNCTION, ITSELF, LEFT, ORELSE, RECEIVER, RIGHT, TEST, VALUE, argument
from migrate.edits.apply import LostEdit, apply
from migrate.edits.join import Join
from migrate.edits.lossless import NotLossless
from migrate.source.address import Address, Kind

LIFTED = {
    "alone": ("save(net(x), path)\n", "result = net(x)\nsave(result, path)\n"),
    "below others": (
        "a()\n# why\nsave(net(x).view(4))  # all\nb()\n",
        "a()\nresult = net(x)\n# why\nsave(result.view(4))  # all\nb()\n",
    ),
    "over lines": (
        "save(\n    net(\n        x,  # input\n    ),\n    path,\n)\n",
        "result = net(\n        x,  # input\n    )\nsave(\n    result,\n    path,\n)\n",
    ),
    "in a suite": ("if a: save(net(x))\n", "if a:\n    result = net(x)\n    save(result)\n"),
}


@pytest.mark.parametrize("name", LIFTED)
def test_an_expression_is_computed_above(edit, name):
    before, after = LIFTED[name]
    e = edit(before)
    e.do("lift", e.expr("net(x)"), "result", above=e.stmt("save"))
    assert e.text() == after


def test_what_is_computed_above_has_its_own_edits(edit):
    e = edit("save(net(x.cuda()))\n")
    e.do("rewrite", e.expr("x.cuda()"), "{it}.to(device)", it=RECEIVER)
    e.do("lift", e.expr("net(x.cuda())"), "result", above=e.stmt("save")).do(
        "guard", e.stmt("save"), e.stmt("save"), "main"
    )
    assert e.text() == "result = net(x.to(device))\nif main:\n    save(result)\n"


# ------------------------------------------------------------------ the six lessons


def test_lesson_1_inserts_beside_a_small_statement(edit):
    e = edit("a(); b(); c()\n")
    e.do("insert_before", e.stmt("b"), "x()").do("insert_after", e.stmt("b"), "y()")
    assert e.text() == "a()\nx()\nb()\ny()\nc()\n"


def test_lesson_2_comments_of_a_removed_statement(edit):
    e = edit("a()\n# why b\nb()  # says b\nc()\n")
    e.do("remove", e.stmt("b"))
    assert e.text() == "a()\n# why b\nc()\n"
    assert e.applied().lost_comments == ("3: # says b",)
    assert e.plan.lost_comments == {"train.py": ("3: # says b",)}


def test_lesson_3_parentheses_are_kept(edit):
    e = edit("if(rank == 0):\n    a()\n")
    e.do("rewrite", e.expr("rank == 0"), "accelerator.is_main_process")
    assert e.text() == "if(accelerator.is_main_process):\n    a()\n"


def test_lesson_4_wrapping_a_body_keeps_the_header_comment_and_strings(edit):
    e = edit('for a in b:  # loop\n    # first\n    x = """\n  text\n"""\n    y()  # last\nz()\n')
    e.do("wrap", e.stmt("x"), e.stmt("y"), "with accelerator.accumulate(model)")
    assert e.text() == (
        'for a in b:  # loop\n    # first\n    with accelerator.accumulate(model):\n        x = """\n  text\n"""\n'
        "        y()  # last\nz()\n"
    )


def test_lesson_5_a_file_that_libcst_changes_is_left_alone(edit):
    e = edit("try:\n    a\nexcept (b) :\n    c\n")
    e.do("remove", e.stmt("c"))
    with pytest.raises(NotLossless, match=r"train.py: libcst does not reproduce the file. Look at line 3"):
        e.applied()


@pytest.mark.parametrize("end", ["\n\t\n\t", "   \n \n  \n", "\r\n \r\n\t"])
def test_blank_lines_at_the_end_that_libcst_loses_are_kept(edit, end):
    e = edit(f"a()\nb()\n{end}".encode())
    e.do("remove", e.stmt("a"))
    assert e.text() == f"b()\n{end}"


def test_lesson_6_the_only_statement_and_the_middle_one(edit):
    e = edit("def f():\n    a()\nb(); c(); d()\n")
    e.do("remove", e.stmt("a")).do("remove", e.stmt("c"))
    assert e.text() == "def f():\n    pass\nb(); d()\n"


# ------------------------------------------------------------------ expressions

REWRITES = {
    "receiver": (
        "loss.backward()",
        "loss.backward()",
        "accelerator.backward({x})",
        RECEIVER,
        "accelerator.backward(loss)",
    ),
    "receiver sheds its parentheses": (
        "(a + b).backward()",
        "(a + b).backward()",
        "accelerator.backward({x})",
        RECEIVER,
        "accelerator.backward(a + b)",
    ),
    "receiver of several lines": (
        "(a\n + b).backward()",
        "(a + b).backward()",
        "accelerator.backward({x})",
        RECEIVER,
        "accelerator.backward(a\n + b)",
    ),
    "a part needs parentheses": (
        "f(a if b else c)",
        "f(a if b else c)",
        "{x}.item()",
        argument(0),
        "(a if b else c).item()",
    ),
    "a generator needs its own": (
        "f(x for x in y)",
        "f((x for x in y))",
        "g({x}, 1)",
        argument(0),
        "g((x for x in y), 1)",
    ),
    "the result needs parentheses": ("a.b * 2", "a.b", "{x} + 1", VALUE, "(a + 1) * 2"),
    "the result needs none in an argument": ("f(a.b)", "a.b", "{x} if c else d", VALUE, "f(a if c else d)"),
    "a power": ("(-a).b", "(-a).b", "{x} ** 2", VALUE, "(-a) ** 2"),
    "lines that were inside brackets": ("x = f(a\n  + b)", "f(a + b)", "{x}", argument(0), "x = (a\n  + b)"),
    "lines keep their own parentheses": (
        "x = (  # why\n  a + b\n).to(d)",
        "(a + b).to(d)",
        "{x}",
        RECEIVER,
        "x = (  # why\n  a + b\n)",
    ),
    "empty lines stay empty": (
        "if a:\n    x = f(\n        1,\n\n        2,\n    ).to(d)",
        "f(1, 2).to(d)",
        "{x}",
        RECEIVER,
        "if a:\n    x = f(\n        1,\n\n        2,\n    )",
    ),
    "keyword": ("f(k=a + b)", "f(k=a + b)", "{x} * 2", argument("k"), "(a + b) * 2"),
    "all arguments": ("a.b(c, *d, e=f)", "a.b(c, *d, e=f)", "g(a, {x})", ARGUMENTS, "g(a, c, *d, e=f)"),
    "no arguments": ("a.b()", "a.b()", "g(a, {x})", ARGUMENTS, "g(a)"),
    "function": ("a.b(c)", "a.b(c)", "{x}", FUNCTION, "a.b"),
    "left": ("loss / k", "loss / k", "{x}", LEFT, "loss"),
    "right": ("a == b", "a == b", "not {x}", RIGHT, "not b"),
    "test": ("x = a if b else c", "a if b else c", "{x}", TEST, "x = b"),
    "branch": ("x = a if b else c", "a if b else c", "{x}", ORELSE, "x = c"),
    "chain of and": ("if a and b and c: d", "a and b and c", "{x} or e", ITSELF, "if a and b and c or e: d"),
    "braces are text": ("f(a)", "f(a)", "g({'k': {x}}, {1})", argument(0), "g({'k': a}, {1})"),
    "subscript": ("a[b:c].d", "a[b:c].d", "{x}", VALUE, "a[b:c]"),
    "empty tuple": ("f(())", "f(())", "{x}", argument(0), "()"),
    "walrus": ("f(n := a)", "f((n := a))", "{x} + 1", argument(0), "(n := a) + 1"),
    "lambda": ("f(lambda: a)", "f(lambda: a)", "{x}()", argument(0), "(lambda: a)()"),
    "await": ("async def f(): await a.b()", "await a.b()", "{x}", VALUE, "async def f(): a.b()"),
    "decorator": ("@a.b(c)\ndef f(): pass", "a.b(c)", "{x}", FUNCTION, "@a.b\ndef f(): pass"),
    "default": ("def f(a=b.c(d)): pass", "b.c(d)", "{x}", argument(0), "def f(a=d): pass"),
    "f-string": ("x = f'{a.b(c)!r:>{w}} {a.b(c)}'", "a.b(c)", "{x}", argument(0), "x = f'{c!r:>{w}} {a.b(c)}'"),
    "nested f-string": ("x = f\"{f'{a.b}'} {d}\"", "a.b", "{x}", VALUE, "x = f\"{f'{a}'} {d}\""),
    "comprehension": (
        "{k: v.to(d) for k, v in b.items()}",
        "{k: v.to(d) for k, v in b.items()}",
        "{x}",
        ITSELF,
        "{k: v.to(d) for k, v in b.items()}",
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_rewrite(edit, name):
    source, expr, template, part, result = REWRITES[name]
    e = edit(source + "\n")
    e.do("rewrite", e.expr(expr), template, x=part)
    assert e.text() == result + "\n"


def test_rewrites_nest(edit):
    e = edit("loss = criterion(model(x.to(device)), y.to(device)).to(device)\n")
    for call in [node for node in ast.walk(e.file.tree) if isinstance(node, ast.Call) and len(node.args) == 1]:
        if isinstance(call.func, ast.Attribute):
            e.do("rewrite", call, "{value}", value=RECEIVER)
    assert e.text() == "loss = criterion(model(x), y)\n"


def test_a_part_may_be_a_node_that_is_rewritten_itself(edit):
    e = edit("scaler.scale(f(x.to(d))).backward(retain_graph=True)\n")
    outer = e.file.tree.body[0].value
    inner = outer.func.value.args[0]
    e.do("rewrite", e.expr("x.to(d)"), "{v}", v=RECEIVER)
    e.do("rewrite", outer, "accelerator.backward({loss}, {rest})", loss=inner, rest=ARGUMENTS)
    assert e.text() == "accelerator.backward(f(x), retain_graph=True)\n"


def test_a_path_of_selectors(edit):
    e = edit("scaler.scale(loss).backward()\n")
    e.do("rewrite", e.file.tree.body[0].value, "a.backward({loss})", loss=RECEIVER.then(argument(0)))
    assert e.text() == "a.backward(loss)\n"


@pytest.mark.parametrize(
    ("source", "expr", "new", "result"),
    [
        ("x = 1 if[a]else b\n", "[a]", "c", "x = 1 if(c)else b\n"),
        ("x = not[a]\n", "[a]", "c", "x = not(c)\n"),
        ("def f():\n    return[a]\n", "[a]", "c", "def f():\n    return(c)\n"),
        ("if(a)and(b): c\n", "a", "d", "if(d)and(b): c\n"),
        ("x = a in(b, c)\n", "(b, c)", "d", "x = a in(d)\n"),
        ("print(a, *b, c)\n", "b", "d or e", "print(a, *d or e, c)\n"),
        ("x = -a\n", "a", "b + c", "x = -(b + c)\n"),
        ("x = a ** b\n", "a", "-b", "x = (-b) ** b\n"),
        ("a.b = c\n", "a.b", "d.e", "d.e = c\n"),
        ("for a in b: pass\n", "b", "c if d else e", "for a in c if d else e: pass\n"),
        ("x = [a for a in b if c]\n", "b", "d if e else f", "x = [a for a in (d if e else f) if c]\n"),
        ("x = a, b\n", "a", "(c, d)", "x = (c, d), b\n"),
        ("x = f'{a}'\n", "a", "lambda: b", "x = f'{(lambda: b)}'\n"),
        ("with a.b(c) as d: pass\n", "a.b(c)", "accelerator.autocast()", "with accelerator.autocast() as d: pass\n"),
    ],
)
def test_rewrite_by_text(edit, source, expr, new, result):
    e = edit(source)
    e.do("rewrite", e.expr(expr), new)
    assert e.text() == result


def test_an_f_string_refuses_quotes(edit):
    e = edit("x = f'{a.b}'\n")
    e.do("rewrite", e.expr("a.b"), "c['d']", group="g")
    assert e.text() == "x = f'{a.b}'\n"
    (refusal,) = e.plan.refused
    assert (refusal.rule, refusal.line, refusal.group) == ("MIG000", 1, "g")
    assert "f-string" in refusal.why


# ------------------------------------------------------------------ arguments

ARGS = {
    "last": ("f(a, b)", {}, "f(a, b, NEW)"),
    "before keywords": ("f(a, k=b)", {}, "f(a, NEW, k=b)"),
    "first": ("f(a, k=b)", {"position": 0}, "f(NEW, a, k=b)"),
    "keyword": ("f(a, k=b)", {"keyword": "n"}, "f(a, k=b, n=NEW)"),
    "keyword before a mapping": ("f(a, **b)", {"keyword": "n"}, "f(a, n=NEW, **b)"),
    "into nothing": ("f()", {}, "f(NEW)"),
    "beside a generator": ("f(x for x in y)", {"keyword": "n"}, "f((x for x in y), n=NEW)"),
    "lines": ("f(\n    a,\n    b,\n)", {}, "f(\n    a,\n    b,\n    NEW,\n)"),
    "lines without a last comma": ("f(\n    a,\n    b\n)", {}, "f(\n    a,\n    b,\n    NEW\n)"),
    "lines with comments": (
        "f(\n    a,  # one\n    b,  # two\n)",
        {},
        "f(\n    a,  # one\n    b,  # two\n    NEW,\n)",
    ),
    "one line of its own": ("f(\n    a,\n)", {}, "f(\n    a,\n    NEW,\n)"),
    "in the middle of lines": (
        "f(\n    a,  # one\n    b,\n)",
        {"position": 1},
        "f(\n    a,  # one\n    NEW,\n    b,\n)",
    ),
    "behind a star": ("f(*a, k=b)", {}, "f(*a, NEW, k=b)"),
}


@pytest.mark.parametrize("name", ARGS)
def test_add_argument(edit, name):
    source, where, result = ARGS[name]
    e = edit(source + "\n")
    e.do("add_argument", e.file.tree.body[0].value, "NEW", **where)
    assert e.text() == result + "\n"
    assert e.applied().lost_comments == ()


@pytest.mark.parametrize(
    ("source", "index", "result"),
    [
        ("f(a, b, c)", 1, "f(a, c)"),
        ("f(a, b, c)", 2, "f(a, b)"),
        ("f(a, b, c,)", 2, "f(a, b,)"),
        ("f(a)", 0, "f()"),
        ("f(*a, k=b, **c)", 1, "f(*a, **c)"),
        ("f(k=a, *b)", 1, "f(k=a)"),
        ("f(\n    a,\n    b,\n)", 1, "f(\n    a,\n)"),
        ("f(\n    a,\n    b\n)", 1, "f(\n    a\n)"),
    ],
)
def test_remove_argument(edit, source, index, result):
    e = edit(source + "\n")
    call = e.file.tree.body[0].value
    nodes = sorted([*call.args, *call.keywords], key=lambda node: (node.lineno, node.col_offset))
    e.do("remove_argument", call, nodes[index])
    assert e.text() == result + "\n"


@pytest.mark.parametrize(
    ("source", "index", "keyword", "result"),
    [
        ("f(a, k=b)", 0, None, "f(NEW, k=b)"),
        ("f(a, k = b)", 1, None, "f(a, k = NEW)"),
        ("f(a, k=b)", 1, "other", "f(a, other=NEW)"),
        ("f(a, b)", 1, "other", "f(a, other=NEW)"),
        ("f(a, *b)", 1, None, "f(a, NEW)"),
        ("f(a, **b)", 1, "c", "f(a, c=NEW)"),
    ],
)
def test_replace_argument(edit, source, index, keyword, result):
    e = edit(source + "\n")
    call = e.file.tree.body[0].value
    e.do("replace_argument", call, [*call.args, *call.keywords][index], "NEW", keyword=keyword)
    assert e.text() == result + "\n"


def test_argument_edits_come_before_the_rewriting_of_the_call(edit):
    e = edit("f(a, b, k=c)\n")
    call = e.file.tree.body[0].value
    e.do("rewrite", call, "g({x})", x=ARGUMENTS)
    e.do("remove_argument", call, call.args[0]).do("replace_argument", call, call.args[1], "NEW")
    e.do("add_argument", call, "1", keyword="n")
    assert e.text() == "g(NEW, k=c, n=1)\n"


# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    ("source", "where", "result"),
    [
        ("def f(a, b): pass", {}, "def f(a, b, NEW): pass"),
        ("def f(): pass", {}, "def f(NEW): pass"),
        ("def f(self, a=1): pass", {"after": "self"}, "def f(self, NEW, a=1): pass"),
        ("def f(a, *b, c, **d): pass", {}, "def f(a, NEW, *b, c, **d): pass"),
        ("def f(*, c): pass", {}, "def f(NEW, *, c): pass"),
        ("def f(a, /, b): pass", {"after": "a"}, "def f(a, NEW, /, b): pass"),
        ("def f(a, /): pass", {}, "def f(a, /, NEW): pass"),
        ("def f(\n    a,\n    b,\n): pass", {}, "def f(\n    a,\n    b,\n    NEW,\n): pass"),
        (
            "def f(\n    a: int,  # one\n    b\n): pass",
            {"after": "a"},
            "def f(\n    a: int,  # one\n    NEW,\n    b\n): pass",
        ),
        ("async def f(a) -> b: pass", {}, "async def f(a, NEW) -> b: pass"),
        ("def f(a=1): pass", {"after": ""}, "def f(NEW, a=1): pass"),
        ("def f(a=1, /, b=2): pass", {"after": ""}, "def f(NEW, a=1, /, b=2): pass"),
        ("def f(\n    a=1,  # one\n): pass", {"after": ""}, "def f(\n    NEW,\n    a=1,  # one\n): pass"),
        ("def f(): pass", {"after": ""}, "def f(NEW): pass"),
        ("def f(*a, b=1): pass", {"after": ""}, "def f(NEW, *a, b=1): pass"),
    ],
)
def test_add_parameter(edit, source, where, result):
    e = edit(source + "\n")
    e.do("add_parameter", e.file.tree.body[0], "NEW", **where)
    assert e.text() == result + "\n"


@pytest.mark.parametrize(
    ("source", "where", "message"),
    [
        ("def f(a=1): pass", {}, "would follow a, which has a default"),
        ("def f(a): pass", {"after": "c"}, "no positional parameter 'c'"),
        ("def f(*, NEW): pass", {}, "already has a parameter called NEW"),
    ],
)
def test_add_parameter_refuses(edit, source, where, message):
    e = edit(source + "\n")
    with pytest.raises(ValueError, match=message):
        e.do("add_parameter", e.file.tree.body[0], "NEW", **where)


def test_rename_parameter(edit):
    e = edit("def f(a, device: t = 1): pass\n")
    e.do("rename_parameter", e.file.tree.body[0].args.args[1], "NEW")
    assert e.text() == "def f(a, NEW = 1): pass\n"


def test_parameters_of_lambdas(edit):
    e = edit("f(lambda x, *y, z=1: x)\n")
    e.do("rename_parameter", e.file.tree.body[0].value.args[0].args.kwonlyargs[0], "NEW")
    assert e.text() == "f(lambda x, *y, NEW=1: x)\n"


# ------------------------------------------------------------------ statements

STATEMENTS = {
    "replace by a block that holds it": (
        "# a\na()  # b\n",
        [("replace", "a", ["with x:\n    {it}"], {"it": ITSELF})],
        "# a\nwith x:\n    a()  # b\n",
    ),
    "replace by a block": (
        "# a\na()  # b\n",
        [("replace", "a", ["with x:\n    c()"], {})],
        "# a\nwith x:  # b\n    c()\n",
    ),
    "replace in a one-line suite": (
        "if a: b()\n",
        [("replace", "b", ["c()\nd()"], {})],
        "if a:\n    c()\n    d()\n",
    ),
    "replace with parts": (
        "loss = f(x) / k  # why\n",
        [("replace", "loss", ["loss = {v}\naccelerator.log({v})"], {"v": VALUE.then(LEFT)})],
        "loss = f(x)  # why\naccelerator.log(f(x))\n",
    ),
    "replace by something and what gives the same name": (
        "rate = 1  # a second\n",
        [("replace", "rate", ["clock = f()\nrate = clock.rate"], {})],
        "clock = f()\nrate = clock.rate  # a second\n",
    ),
    "replace with the body": (
        "if a:\n    # one\n    b()\n    c()\n",
        [("replace", "if", ["while True:\n    {body}\n    d()"], {"body": BODY})],
        "while True:\n    # one\n    b()\n    c()\n    d()\n",
    ),
    "replace with the else part": (
        "if a: b()\nelse: c()\n",
        [("replace", "if", ["{it}"], {"it": ORELSE})],
        "c()\n",
    ),
    "guard one": (
        "a()\n\n# why\nb()  # c\n\nd()\n",
        [("guard", "b", ["m"], {})],
        "a()\n\n# why\nif m:\n    b()  # c\n\nd()\n",
    ),
    "guards merge": (
        "a()\nb()\n\nc()\nd()\n",
        [("guard", "b", ["m"], {}), ("guard", "c", ["m"], {})],
        "a()\nif m:\n    b()\n\n    c()\nd()\n",
    ),
    "guards merge over what goes": (
        "a()\nb()\nc()\n",
        [("guard", "a", ["m"], {}), ("remove", "b", [], {}), ("guard", "c", ["m"], {})],
        "if m:\n    a()\n    c()\n",
    ),
    "guards of other tests do not merge": (
        "a()\nb()\n",
        [("guard", "a", ["m"], {}), ("guard", "b", ["n"], {})],
        "if m:\n    a()\nif n:\n    b()\n",
    ),
    "guards do not merge over an insert": (
        "a()\nb()\n",
        [("guard", "a", ["m"], {}), ("insert_after", "a", ["x()"], {}), ("guard", "b", ["m"], {})],
        "if m:\n    a()\nx()\nif m:\n    b()\n",
    ),
    "inserts around a guard stay outside": (
        "a()\n",
        [("guard", "a", ["m"], {}), ("insert_before", "a", ["x()"], {}), ("insert_after", "a", ["y()"], {})],
        "x()\nif m:\n    a()\ny()\n",
    ),
    "a guard around nothing": ("a()\nb()\n", [("guard", "b", ["m"], {}), ("remove", "b", [], {})], "a()\n"),
    "guard in a one-line suite": (
        "if a: b()  # c\n",
        [("guard", "b", ["m"], {})],
        "if a:\n    if m:\n        b()  # c\n",
    ),
    "guard one of a line": ("a(); b(); c()\n", [("guard", "b", ["m"], {})], "a()\nif m:\n    b()\nc()\n"),
    "guard with tabs": ("if a:\n\tb()\n", [("guard", "b", ["m"], {})], "if a:\n\tif m:\n\t\tb()\n"),
    "guard a definition": (
        "@d\n# why\n@e\ndef f():\n    a()\n",
        [("guard", "@d", ["m"], {})],
        "if m:\n    @d\n    # why\n    @e\n    def f():\n        a()\n",
    ),
    "wraps nest, the first is outside": (
        "a()\n",
        [("wrap", "a", ["with x"], {}), ("wrap", "a", ["with y"], {})],
        "with x:\n    with y:\n        a()\n",
    ),
    "fold to the body": (
        "if a:  # h\n    b()\n    c()\nelse:\n    d()\n",
        [("fold", "if", [], {"keep": "body"})],
        "b()\nc()\n",
    ),
    "fold to the else part": (
        "x()\n\n# why\nif a:\n    b()\nelse:\n    # e\n    d()\n    # end\ny()\n",
        [("fold", "if", [], {"keep": "orelse"})],
        "x()\n\n# why\n# e\nd()\n# end\ny()\n",
    ),
    "fold to nothing": ("x()\nif a:\n    b()\n", [("fold", "if", [], {"keep": "orelse"})], "x()\n"),
    "fold the only statement": (
        "def f():\n    if a:\n        b()\n",
        [("fold", "if", [], {"keep": "orelse"})],
        "def f():\n    pass\n",
    ),
    "fold to an elif": (
        "if a:\n    b()\nelif c:\n    d()\nelse:\n    e()\n",
        [("fold", "if a", [], {"keep": "orelse"})],
        "if c:\n    d()\nelse:\n    e()\n",
    ),
    "fold an elif to its body": (
        "if a:\n    b()\nelif c:\n    d()\nelse:\n    e()\n",
        [("fold", "if c", [], {"keep": "body"})],
        "if a:\n    b()\nelse:\n    d()\n",
    ),
    "fold an elif to its elif": (
        "if a:\n    b()\nelif c:\n    d()\nelif f:\n    e()\n",
        [("fold", "if c", [], {"keep": "orelse"})],
        "if a:\n    b()\nelif f:\n    e()\n",
    ),
    "fold an elif to its else": (
        "if a:\n    b()\nelif c:\n    d()\nelse:\n    e()\n",
        [("fold", "if c", [], {"keep": "orelse"})],
        "if a:\n    b()\nelse:\n    e()\n",
    ),
    "fold keeps edits inside": (
        "if a:\n    b()\n    c()\n",
        [("fold", "if", [], {"keep": "body"}), ("remove", "b", [], {}), ("insert_after", "c", ["d()"], {})],
        "c()\nd()\n",
    ),
    "fold a one-liner": ("if a: b(); c()  # d\n", [("fold", "if", [], {"keep": "body"})], "b(); c()  # d\n"),
    "remove an elif": ("if a:\n    b()\nelif c:\n    d()\n", [("remove", "if c", [], {})], "if a:\n    b()\n"),
    "insert before an elif": (
        "if a:\n    b()\nelif c:\n    d()\n",
        [("insert_before", "if c", ["x()"], {})],
        "if a:\n    b()\nelse:\n    x()\n    if c:\n        d()\n",
    ),
    "guard an elif": (
        "if a:\n    b()\nelif c:\n    d()\n",
        [("guard", "if c", ["m"], {})],
        "if a:\n    b()\nelse:\n    if m:\n        if c:\n            d()\n",
    ),
    "unwrap": (
        'x()\n\nwith a:  # h\n    # b\n    b("""\n  t\n""")\n\n    c()\n    # end\n\ny()\n',
        [("unwrap", "with", [], {})],
        'x()\n\n# b\nb("""\n  t\n""")\n\nc()\n# end\n\ny()\n',
    ),
    "unwrap nested": (
        "with a:\n  with b:\n    c()\n",
        [("unwrap", "with a", [], {}), ("unwrap", "with b", [], {})],
        "c()\n",
    ),
    "remove the docstring": ('def f():\n    "d"\n    a()\n', [("remove", "'d'", [], {})], "def f():\n    a()\n"),
    "insert behind the docstring": (
        'def f():\n    """d"""\n\n    a()\n',
        [("insert_before", "a", ["b()"], {})],
        'def f():\n    """d"""\n\n    b()\n    a()\n',
    ),
    "nested functions": (
        "def f():\n    def g():\n        a()\n    return g\n",
        [("remove", "a", [], {}), ("insert_before", "return", ["b()"], {})],
        "def f():\n    def g():\n        pass\n    b()\n    return g\n",
    ),
    "everything removed": ("a()\n\nb()\n", [("remove", "a", [], {}), ("remove", "b", [], {})], "\n"),
    "comments of everything removed": ("# x\n\n# a\na()\n", [("remove", "a", [], {})], "# x\n\n# a\n"),
    "remove all of a one-line suite": (
        "for x in y: a(); b()\n",
        [("remove", "a", [], {}), ("remove", "b", [], {})],
        "for x in y: pass\n",
    ),
    "remove the last of a line": ("a(); b()\n", [("remove", "b", [], {})], "a()\n"),
    "remove the last of a line with a semicolon": ("a(); b();\n", [("remove", "b", [], {})], "a();\n"),
    "insert around a line": (
        "a(); b()\n",
        [("insert_before", "a", ["x()"], {}), ("insert_after", "b", ["y()"], {})],
        "x()\na(); b()\ny()\n",
    ),
    "swallowed": (
        "if a:\n    b(c)\nd()\n",
        [("remove", "b", [], {}), ("insert_before", "b", ["x()"], {}), ("remove", "if", [], {})],
        "d()\n",
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(edit, name):
    source, operations, result = STATEMENTS[name]
    e = edit(source)
    for operation, stmt, args, kwargs in operations:
        nodes = [e.stmt(stmt)] * (2 if operation in ("guard", "wrap") else 1)
        e.do(operation, *nodes, *args, **kwargs)
    assert e.text() == result


def test_guard_of_a_range(edit):
    e = edit("def f():\n  a()\n\n  # b\n  b()\n  c()\n\n  d()\n")
    e.do("guard", e.stmt("b"), e.stmt("c"), "m").do("remove", e.stmt("b"))
    assert e.text() == "def f():\n  a()\n\n  # b\n  if m:\n    c()\n\n  d()\n"


# ------------------------------------------------------------------ clean-up

CLEAN = {
    "if": ("a()\nif b:\n    x()\nc()\n", "a()\nc()\n"),
    "if with a comment": ("a()\nif b:\n    # why\n    x()\nc()\n", "a()\n# why\nc()\n"),
    "if and else": ("a()\nif b:\n    x()\nelse:\n    x()\nc()\n", "a()\nc()\n"),
    "if, elif and else": ("if b:\n    x()\nelif c:\n    pass\nelse:\n    x()\nd()\n", "d()\n"),
    "inner if": ("if a:\n    if b:\n        x()\nc()\n", "c()\n"),
    "a listed call": ("if torch.cuda.is_available():\n    x()\nc()\n", "c()\n"),
    "not and or": ("if not a.b or c == 1 and d in (1, 2):\n    x()\nc()\n", "c()\n"),
    "a call": ("if f():\n    x()\nc()\n", "if f():\n    pass\nc()\n"),
    "a walrus": ("if (n := a):\n    x()\nc()\n", "if (n := a):\n    pass\nc()\n"),
    "else": (
        "if a:\n    b()\nelse:  # h\n    # why\n    x()\n    # end\nc()\n",
        "if a:\n    b()\n    # h\n    # why\n    # end\nc()\n",
    ),
    "else of a one-liner": ("if a: b()\nelse: x()  # why\nc()\n", "if a:\n    b()\n    # why\nc()\n"),
    "elif": ("if a:\n    b()\n# why\nelif c:\n    x()\nd()\n", "if a:\n    b()\n    # why\nd()\n"),
    "elif in the middle": (
        "if a:\n    b()\nelif c:\n    x()\nelse:\n    d()\n",
        "if a:\n    b()\nelif c:\n    pass\nelse:\n    d()\n",
    ),
    "body": ("if a:\n    x()\nelse:\n    b()\n", "if a:\n    pass\nelse:\n    b()\n"),
    "loop": ("for a in b:\n    x()\nelse:\n    x()\n", "for a in b:\n    pass\n"),
    "with": ("with a:\n    x()\n", "with a:\n    pass\n"),
    "try": (
        "try:\n    x()\nexcept A:\n    x()\nelse:\n    x()\nfinally:\n    x()\n",
        "try:\n    pass\nexcept A:\n    pass\nfinally:\n    pass\n",
    ),
    "an item": ('if not a["b"]:\n    x()\nb()\n', "b()\n"),
    "an item by what does something": ("if a[c()]:\n    x()\n", "if a[c()]:\n    pass\n"),
    "only pass": ("if a:\n    pass\nx()\nb()\n", "if a:\n    pass\nb()\n"),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_up(edit, name):
    source, result = CLEAN[name]
    e = edit(source)
    e.plan.pure_calls.add("torch.cuda.is_available")
    for stmt in e.file.index.statements:
        if ast.unparse(stmt) == "x()":
            e.do("remove", stmt)
    assert e.text() == result


def test_an_inserted_statement_keeps_its_if(edit):
    e = edit("if a:\n    x()\n")
    e.do("remove", e.stmt("x")).do("insert_before", e.stmt("x"), "y()")
    assert e.text() == "if a:\n    y()\n"


# ------------------------------------------------------------------ files


def test_encoding_bom_and_newlines_stay(edit):
    content = b"\xef\xbb\xbfa()\r\nif b:\r\n\tc('\xc3\xa4')\r\n"
    e = edit(content)
    e.do("insert_after", e.file.index.statements[2], "if x:\n    y()")
    assert e.bytes() == content + b"\tif x:\r\n\t\ty()\r\n"


def test_latin_1(edit):
    e = edit("# -*- coding: latin-1 -*-\na('ä')\nb\n".encode("latin-1"))
    e.do("rewrite", e.expr("b"), "c")
    assert e.bytes() == "# -*- coding: latin-1 -*-\na('ä')\nc\n".encode("latin-1")


def test_inserted_lines_take_the_usual_newline(edit):
    e = edit(b"a()\nb()\r\nc()\r\nd()\r\n")
    e.do("insert_after", e.stmt("a"), "if x:\n    y()").do("guard", e.stmt("c"), e.stmt("c"), "m")
    assert e.bytes() == b"a()\nif x:\r\n    y()\r\nb()\r\nif m:\r\n    c()\r\nd()\r\n"


def test_a_file_without_edits_is_not_parsed(edit):
    e = edit("try:\n    a\nexcept (b) :\n    c\n")
    assert e.applied().content is e.file.content


def test_a_lost_edit_is_noticed(edit):
    e = edit("a(b)\nc(d)\n")
    e.do("rewrite", e.expr("c(d)"), "e()")
    e.file.index._addresses[e.file.tree.body[1].value] = Address(0, Kind.CALL)
    e.file.index._inside[0] = [e.file.tree.body[1].value]
    e.plan._settled.clear()
    e.plan._edits["train.py"].clear()
    e.do("rewrite", e.file.tree.body[1].value, "e()")
    with pytest.raises(LostEdit, match=r"train.py:1: an edit of call 1 is something else"):
        e.applied()


def test_an_edit_that_finds_nothing_is_noticed(edit, monkeypatch):
    e = edit("a(b)\n")
    e.do("rewrite", e.expr("b"), "c")
    monkeypatch.setattr(Join, "_count", lambda self, node: None)
    with pytest.raises(LostEdit, match=r"an edit of name 2 was not found"):
        e.applied()


def test_a_deep_expression(edit):
    e = edit("x = " + " + ".join(["a"] * 700) + "\n")
    before = threading.stack_size()
    e.do("rewrite", e.file.tree.body[0].targets[0], "y")
    assert apply(e.file, e.plan).content.startswith(b"y = a + a")
    assert threading.stack_size() == before


def test_blocks_that_are_indented_by_a_form_feed_and_a_blank(edit):
    e = edit(b"class A:\n\x0c pass\nx = f(\n    1,\n)\n")
    e.do("rewrite", e.expr("f(1)"), "g({call})", call=e.expr("f(1)"))
    assert e.bytes() == b"class A:\n\x0c pass\nx = g(f(\n    1,\n))\n"


def test_lines_that_a_backslash_continues_move_with_their_statement(edit):
    e = edit('if a:\n    x = b + \\\n        c\n    y = """ \\\n  d"""\n')
    e.do("guard", e.stmt("x ="), e.stmt("y ="), "m")
    assert e.text() == 'if a:\n    if m:\n        x = b + \\\n            c\n        y = """ \\\n  d"""\n'
