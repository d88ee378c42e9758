"""Generated programs and random edits: identity changes nothing, anything that is planned applies, parses and passes
the self-check, and the order of planning independent edits does not matter."""

from __future__ import annotations

import ast
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.edits import ARGUMENTS, FUNCTION, ITSELF, Plan, PlannedFile
from migrate.edits.apply import apply
from migrate.edits.edit import AddArgument, Insert, RemoveArgument, ReplaceArgument, Wrap
from migrate.selfcheck import check
from migrate.source.address import Index, arguments_of

#: Of several at one place the first planned comes first.
IN_ORDER = {
    Insert: "insert",
    Wrap: "wrap",
    **dict.fromkeys((AddArgument, ReplaceArgument, RemoveArgument), "argument"),
}
SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)

names = st.sampled_from(["a", "b.c", "model", "x[0]", "loss", "f'{a}{b.c!r}'", "'s' 't'", "1", "None"])


def grown(inner):
    return st.one_of(
        st.builds("{}({}, k={})".format, st.sampled_from(["f", "g.h"]), inner, inner),
        st.builds("f({},\n      *{})".format, inner, inner),
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("[{} for q in {}]".format, inner, inner),
        st.builds("({} and not {})".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("(lambda z={}: {})".format, inner, inner),
        st.builds("({} == {})".format, inner, inner),
    )


expressions = st.recursive(names, grown, max_leaves=6)
comments = st.sampled_from(["", "", "  # c1", "  # c2"])
gaps = st.sampled_from(["", "", "\n", "\n\n", "# note\n", "\n# one\n\n# two\n"])


def indented(block):
    return "".join(f"    {line}" if line.strip() else line for line in block.splitlines(keepends=True))


def small():
    return st.one_of(
        st.builds("v = {}{}\n".format, expressions, comments),
        st.builds("{}{}\n".format, expressions, comments),
        st.builds("v = {}; w(); y = {}{}\n".format, expressions, expressions, comments),
        st.builds("if {}: w(); y()\n".format, expressions),
        st.just("import m, n\n"),
        st.just("pass\n"),
    )


def block(inner):
    return st.lists(st.builds("{}{}".format, gaps, inner), min_size=1, max_size=3).map("".join)


def compound(inner):
    body = block(inner).map(indented)
    return st.one_of(
        st.builds("if {}:{}\n{}".format, expressions, comments, body),
        st.builds("if {}:\n{}else:{}\n{}".format, expressions, body, comments, body),
        st.builds("if {}:\n{}elif {}:\n{}else:\n{}".format, expressions, body, expressions, body, body),
        st.builds("for v in {}:\n{}".format, expressions, body),
        st.builds("with {} as v:{}\n{}".format, expressions, comments, body),
        st.builds("@d\ndef f(p, q=1):\n{}".format, body),
        st.builds("try:\n{}except E:\n{}".format, body, body),
    )


programs = block(st.recursive(small(), compound, max_leaves=8))


def parsed(source):
    content = source.encode()
    tree = ast.parse(content)
    return PlannedFile("p.py", tree, Index(tree), content)


def loads(file):
    nodes = [node for stmt in file.tree.body for node in ast.walk(stmt) if isinstance(node, ast.expr)]
    return [n for n in nodes if isinstance(getattr(n, "ctx", ast.Load()), ast.Load) and file.index.find(n)]


@SETTINGS
@given(programs)
def test_identity_edits_everywhere_change_nothing(source):
    file = parsed(source)
    plan = Plan([file])
    for node in loads(file):
        plan.rewrite(node, "{it}", rule="R", it=ITSELF)
    assert plan.refused == []
    applied = apply(file, plan)
    assert applied.content == file.content
    assert applied.lost_comments == ()


def steps(file, chance):
    """Random edits as (what they concern, how to plan them)."""
    index = file.index
    calls = [node for node in loads(file) if isinstance(node, ast.Call)]
    for call in calls:
        yield lambda plan, call=call: plan.rewrite(call, "h({f}, {a})", rule="R", f=FUNCTION, a=ARGUMENTS)
        yield lambda plan, call=call: plan.add_argument(call, "n or m", rule="R", keyword="new")
        which = chance.choice(arguments_of(call)) if call.args or call.keywords else None
        if which is not None:
            yield lambda plan, call=call, which=which: plan.replace_argument(call, which, "n or m", rule="R")
    for node in loads(file):
        if not index.is_inside_string(node):
            yield lambda plan, node=node: plan.rewrite(node, "{it} or n", rule="R", it=ITSELF)
    for stmt in index.statements:
        block_ = index.block(stmt)
        last = chance.choice(block_[block_.index(stmt) :])
        spaced = chance.random() < 0.5
        code = chance.choice(["NEW()", "with A:\n    NEW()"])
        yield lambda plan, stmt=stmt: plan.remove(stmt, rule="R")
        yield lambda plan, stmt=stmt: plan.remove(stmt, rule="R")
        yield lambda plan, stmt=stmt: plan.replace(stmt, "with A:\n    {it}\nB()", rule="R", it=ITSELF)
        yield lambda plan, s=stmt, c=code, sp=spaced: plan.insert_before(s, c, rule="R", spaced=sp)
        yield lambda plan, s=stmt, c=code, sp=spaced: plan.insert_after(s, c, rule="R", spaced=sp)
        yield lambda plan, stmt=stmt, last=last: plan.guard(stmt, last, "main", rule="R")
        yield lambda plan, stmt=stmt, last=last: plan.wrap(stmt, last, "with B", rule="R")
        if isinstance(stmt, ast.If):
            keep = chance.choice(["body", "orelse"])
            yield lambda plan, stmt=stmt, keep=keep: plan.fold(stmt, keep=keep, rule="R")
        if isinstance(stmt, ast.With):
            yield lambda plan, stmt=stmt: plan.unwrap(stmt, rule="R")
        if isinstance(stmt, ast.FunctionDef):
            yield lambda plan, stmt=stmt: plan.add_parameter(stmt, "new", after="p", rule="R")
        if isinstance(stmt, ast.Import):
            yield lambda plan, stmt=stmt: plan.drop_import(stmt, "n", rule="R")
    yield lambda plan: plan.add_import("p.py", "runtime", "Accelerator", rule="R")


@SETTINGS
@given(programs, st.integers(0, 2**16), st.integers(1, 12))
def test_any_edits_apply_parse_and_pass_the_self_check(source, seed, count):
    file = parsed(source)
    chance = random.Random(seed)  # noqa: S311 (what hypothesis drew decides)
    possible = list(steps(file, chance))
    plan = Plan([file])
    for step in chance.sample(possible, min(count, len(possible))):
        step(plan)
    applied = apply(file, plan)
    assert check(file.content, applied.content, file, plan) == []
    assert len(plan.edits()) + len(plan.conflicts) <= 2 * count


@SETTINGS
@given(programs, st.integers(0, 2**16))
def test_the_order_of_planning_does_not_matter_without_conflicts(source, seed):
    file = parsed(source)
    chance = random.Random(seed)  # noqa: S311 (what hypothesis drew decides)
    possible = list(steps(file, chance))
    some = chance.sample(possible, min(6, len(possible)))
    one, other = Plan([file]), Plan([file])
    for step in some:
        step(one)
    for step in some[::-1]:
        step(other)
    places = [(e.address, IN_ORDER[type(e.operation)]) for e in one.edits() if type(e.operation) in IN_ORDER]
    if one.conflicts or len(set(places)) < len(places):
        return
    assert apply(file, one).content == apply(file, other).content
