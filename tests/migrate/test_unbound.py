"""Names that a text reads where nothing has bound them are found, and nothing that a program may well do is."""

from __future__ import annotations

import pytest

from migrate.unbound import unbound


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("accelerator.print(1)\n", {"accelerator": 1}),
        ("def f():\n    return accelerator\n", {"accelerator": 2}),
        ("b = prepare(a)\na = prepare = 1\n", {"prepare": 1, "a": 1}),
        ("def f():\n    print(a)\n    a = 1\n", {"a": 2}),
        ("def f():\n    g(a)\nf()\na = g = 1\n", {"g": 2, "a": 2}),
        ("def h():\n    f()\ndef f():\n    print(a)\nh()\na = 1\n", {"a": 4}),
        ("class T:\n    def __init__(self):\n        self.a = a\nt = T()\na = 1\n", {"a": 3}),
        ("if x:\n    y = 1\nfor x in y:\n    pass\n", {"x": 1}),
        ("n += 1\n", {"n": 1}),
        ("class T:\n    def f(self):\n        if a:\n            a = 1\n", {"a": 3}),
        (
            "for i in range(3):\n    if i:\n        print(last)\n    last = i\n",
            {"last": 3},
        ),  # in the order of the lines
    ],
)
def test_names_that_are_read_too_early_or_bound_nowhere(text, names):
    assert unbound(text.encode()) == names


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    return a\na = 1\nf()\n",
        "from engine import *\nprint(accelerator)\n",
        "def f():\n    global a\n    a = 1\nf()\nprint(a)\n",
        "def f(a, *b, c=1, **d):\n    a, b, c, d = d, c, b, a\n    return lambda x: x + y\ny = 1\n",
        "if (n := len(__file__)) > 1:\n    print(n)\n",
        "print([x for x in range(3) for y in [x] if y], {k: v for k, v in {}.items()})\n",
        "try:\n    import apex.amp as amp\nexcept ImportError as error:\n    amp = print(error)\namp(__name__)\n",
        "class A:\n    n = 3\n    m = n\n    def f(self):\n        return __class__\nclass B(A):\n    pass\n",
        "with open(__file__) as f, f as (g, h):\n    print(f, g, h)\n",
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        print(n)\n        n = 1\n    return g\n",
        "match [1]:\n    case [a, *b]:\n        print(a, b)\n    case {'k': v, **rest}:\n        print(v, rest)\n",
        "async def f():\n    async for a in f():\n        print(a)\n    async with f() as b:\n        print(b)\n",
        "a: int = 1\nprint(a)\ndel a\n",
        "def f(a):\n    global a\n    return b\n",  # no program at all: that is found elsewhere
    ],
)
def test_what_programs_may_do(text):
    assert unbound(text.encode()) == {}


def test_deep_code_takes_no_time_of_its_own():
    classes = "".join(f"{'  ' * depth}class A{depth}:\n" for depth in range(60)) + "  " * 60 + "x = a\n"
    assert unbound(classes.encode()) == {"a": 61}
    assert unbound(f"x = {' + '.join(['a'] * 3000)}\n".encode()) == {}  # too deep to be gone through
