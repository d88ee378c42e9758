"""Conflicts, groups, refusals and what the report asks."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from migrate.edits import BODY, ITSELF, RECEIVER, VALUE, Plan, PlannedFile, argument
from migrate.edits.edit import Fold, Remove, Rewrite
from migrate.source.address import Index


def test_the_first_of_two_rewrites_wins_and_the_other_is_reported(edit):
    e = edit("loss.backward()\n")
    call = e.expr("loss.backward()")
    e.do("rewrite", call, "a.backward({x})", rule="MIG105", x=RECEIVER)
    e.do("rewrite", call, "b({x})", rule="MIG106", x=RECEIVER)
    assert e.text() == "a.backward(loss)\n"
    (conflict,) = e.plan.conflicts
    assert (conflict.kept.rule, conflict.lost.rule, conflict.lost.line) == ("MIG105", "MIG106", 1)
    assert [edit.rule for edit in e.plan.edits()] == ["MIG105"]


def test_two_rules_that_say_the_same_agree(edit):
    e = edit("a()\nb()\n")
    e.do("remove", e.stmt("a"), rule="MIG101", group="one").do("remove", e.stmt("a"), rule="MIG102", group="two")
    assert e.plan.conflicts == ()
    assert e.text() == "b()\n"
    assert [edit.rule for edit in e.plan.edits()] == ["MIG101", "MIG102"]
    e.plan.drop_group("one")
    assert e.text() == "b()\n"


@pytest.mark.parametrize("other", ["replace", "fold", "unwrap"])
def test_a_statement_has_one_fate(edit, other):
    e = edit("if a:\n    b()\n")
    arguments = {"replace": (["c()"], {}), "fold": ([], {"keep": "body"}), "unwrap": ([], {})}[other]
    e.do("remove", e.stmt("if")).do(other, e.stmt("if"), *arguments[0], **arguments[1])
    assert len(e.plan.conflicts) == 1
    assert e.text() == "\n"


def test_blocks_may_not_cross(edit):
    e = edit("a()\nb()\nc()\n")
    e.do("guard", e.stmt("a"), e.stmt("b"), "m").do("guard", e.stmt("b"), e.stmt("c"), "n")
    assert len(e.plan.conflicts) == 1
    assert e.text() == "if m:\n    a()\n    b()\nc()\n"


def test_dropping_a_group_gives_its_place_to_the_next(edit):
    e = edit("a.b(c)\nd()\n")
    e.do("rewrite", e.expr("a.b(c)"), "x()", group="g").do("rewrite", e.expr("a.b(c)"), "y()").do(
        "remove", e.stmt("d"), group="g"
    )
    assert e.text() == "x()\n"
    e.plan.drop_group("g")
    assert e.plan.conflicts == ()
    assert e.text() == "y()\nd()\n"


def test_removal_swallows_what_is_inside(edit):
    e = edit("if a:\n    b(c)\nd()\n")
    e.do("rewrite", e.expr("c"), "x").do("remove", e.stmt("if"))
    assert e.text() == "d()\n"
    assert e.plan.conflicts == ()
    assert [type(edit.operation) for edit in e.plan.edits()] == [Remove]


def test_a_fold_swallows_the_other_branch_and_the_test(edit):
    e = edit("if a(b):\n    c\nelse:\n    d\n")
    e.do("rewrite", e.expr("b"), "x").do("rewrite", e.expr("c"), "y").do("rewrite", e.expr("d"), "z")
    e.do("fold", e.stmt("if"), keep="orelse")
    assert e.text() == "z\n"
    assert [type(edit.operation) for edit in e.plan.edits()] == [Rewrite, Fold]


def test_what_cannot_be_edited_is_refused_with_a_reason(edit):
    e = edit("f(*a)\nb[1, 2]\n")
    e.do("rewrite", e.file.tree.body[0].value.args[0], "x", rule="MIG103", group="g")
    assert e.plan.touched == ()
    (refusal,) = e.plan.refused
    assert (refusal.rule, refusal.path, refusal.line, refusal.group) == ("MIG103", "train.py", 1, "g")
    assert refusal.why == "this Starred cannot be edited by itself"


def test_questions(edit):
    e = edit("x = 1\nfor a in b:\n    loss = f(\n        c)\n    loss.backward()\n")
    e.do("rewrite", e.expr("f(c)"), "g()", rule="MIG105").do("remove", e.stmt("loss.b"), rule="MIG106")
    first, second = e.plan.edits("train.py")
    assert (first.rule, first.line, first.end_line, type(first.operation)) == ("MIG105", 3, 4, Rewrite)
    assert (second.rule, second.line, second.end_line, type(second.operation)) == ("MIG106", 5, 5, Remove)
    assert e.plan.touched == ("train.py",)
    assert e.plan.touches(e.file)
    assert e.plan.edits("other.py") == ()


def test_several_files():
    files = []
    for path in ("a.py", "b.py"):
        tree = ast.parse("f(x)\n")
        files.append(PlannedFile(path, tree, Index(tree), b"f(x)\n"))
    plan = Plan(files)
    plan.rewrite(files[1].tree.body[0].value, "g()", rule="MIG000")
    assert plan.touched == ("b.py",)
    assert not plan.touches(files[0])


@pytest.mark.parametrize(
    ("method", "args", "kwargs", "message"),
    [
        ("rewrite", ["expr", "a +"], {}, "'a \\+' is not an expression"),
        ("rewrite", ["expr", "{a}"], {"b": "c"}, "has no hole {b}"),
        ("rewrite", ["expr", "{a}"], {"a": argument(3)}, "`f\\(x\\)` has no argument 3"),
        ("rewrite", ["expr", "{a}"], {"a": RECEIVER}, "has no receiver"),
        ("rewrite", ["expr", "{a}"], {"a": argument("k")}, "has no argument 'k'"),
        ("insert_before", ["stmt", "if a:"], {}, "is not statements"),
        ("insert_before", ["stmt", " "], {}, "no statements"),
        ("replace", ["stmt", "{a}"], {"a": VALUE.then(VALUE)}, "has no value, then value"),
        ("add_import", ["nowhere.py", "m", "n"], {}, "nowhere.py is not one of the plan's files"),
        (
            "add_argument",
            ["expr", "1"],
            {"keyword": "k", "position": 0},
            "argument 1 is given by keyword or by position",
        ),
        ("remove_argument", ["expr", "stmt"], {}, "is not an argument of `f\\(x\\)`"),
    ],
)
def test_mistakes_of_a_rule_raise(edit, method, args, kwargs, message):
    e = edit("f(x)\n")
    nodes = {"expr": e.expr("f(x)"), "stmt": e.stmt("f")}
    with pytest.raises(ValueError, match=message):
        e.do(method, *[nodes.get(arg, arg) for arg in args], **kwargs)


def test_a_call_has_a_keyword_once(edit):
    e = edit("f(x, k=1)\n")
    with pytest.raises(ValueError, match=r"`f\(x, k=1\)` already has k="):
        e.do("add_argument", e.expr("f(x, k=1)"), "2", keyword="k")


def test_a_parameter_has_a_name_of_python(edit):
    e = edit("def f(x): pass\n")
    with pytest.raises(ValueError, match="'a b' is not a name"):
        e.do("rename_parameter", e.stmt("def").args.args[0], "a b")
    with pytest.raises(ValueError, match="'1' is not a name"):
        e.do("add_parameter", e.stmt("def"), "1")


def test_the_place_of_an_argument_behind_a_star_is_not_known(edit):
    e = edit("f(*a, x)\n")
    with pytest.raises(ValueError, match="has no argument 1"):
        e.do("rewrite", e.expr("f(*a, x)"), "{x}", x=argument(1))


def test_a_body_is_not_one_part(edit):
    e = edit("if a:\n    b\n")
    with pytest.raises(ValueError, match="has no body, then value"):
        e.do("replace", e.stmt("if"), "{x}", x=BODY.then(VALUE))


def test_a_hole_may_be_filled_with_text_or_with_the_whole(edit):
    e = edit("f( x )\n")
    call = e.expr("f(x)")
    e.do("rewrite", call, "{target}.run({whole})", target="accelerator", whole=call)
    assert e.text() == "accelerator.run(f( x ))\n"


def test_an_if_is_cleaned_away_where_what_a_fold_keeps_is_gone(edit):
    e = edit("a()\nif verbose:\n    if b:\n        c()\n    else:\n        d()\n")
    e.do("fold", e.stmt("if b"), keep="body").do("remove", e.stmt("c()"))
    assert e.text() == "a()\n"


def test_a_with_is_cleaned_away_where_its_context_does_nothing(edit):
    e = edit("with quiet():\n    a()\nwith quiet() as q:\n    b()\nwith timer:\n    c()\n")
    e.plan.pure_calls.add("quiet")
    e.do("remove", e.stmt("a()")).do("remove", e.stmt("b()")).do("remove", e.stmt("c()"))
    assert e.text() == "with quiet() as q:\n    pass\nwith timer:\n    pass\n"


def test_a_part_must_be_inside(edit):
    e = edit("f(x)\ng(y)\n")
    with pytest.raises(ValueError, match="which is not inside `f\\(x\\)`"):
        e.do("rewrite", e.expr("f(x)"), "{a}", a=e.expr("y"))


def test_a_node_of_another_tree_is_a_mistake(edit):
    e = edit("f(x)\n")
    with pytest.raises(ValueError, match="in none of the plan's files"):
        e.do("rewrite", ast.parse("f(x)").body[0].value, "g()")
    with pytest.raises(ValueError, match="in none of the plan's files"):
        e.do("remove", ast.parse("f(x)").body[0])


def test_guard_wants_siblings(edit):
    e = edit("a()\nif b:\n    c()\n")
    with pytest.raises(ValueError, match="later sibling"):
        e.do("guard", e.stmt("a"), e.stmt("c"), "m")
    with pytest.raises(ValueError, match="later sibling"):
        e.do("guard", e.stmt("if"), e.stmt("a"), "m")


def test_an_if_with_an_else_part_is_not_unwrapped(edit):
    e = edit("if a:\n    b\nelse:\n    c\n")
    with pytest.raises(ValueError, match="fold"):
        e.do("unwrap", e.stmt("if"))


def test_the_order_of_planning_independent_edits_does_not_matter(edit):
    source = "import a\n\nif b:\n    c(d)\n    e()\nf(g)\n"

    def planned(order):
        e = edit(source)
        steps = [
            lambda: e.do("rewrite", e.expr("d"), "{x}.y", x=ITSELF),
            lambda: e.do("remove", e.stmt("e")),
            lambda: e.do("guard", e.stmt("f"), e.stmt("f"), "m"),
            lambda: e.do("insert_before", e.stmt("f"), "n()"),
            lambda: e.do("add_import", "train.py", "runtime", "B"),
            lambda: e.do("add_import", "train.py", "runtime", "A"),
        ]
        for number in order:
            steps[number]()
        return e.text()

    results = {planned(order) for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 5, 0, 4, 2, 1])}
    assert results == {"import a\nfrom runtime import A, B\n\nif b:\n    c(d.y)\nn()\nif m:\n    f(g)\n"}


def test_planning_does_not_import_libcst():
    code = "import sys, migrate.edits, migrate.selfcheck; sys.exit('libcst' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
