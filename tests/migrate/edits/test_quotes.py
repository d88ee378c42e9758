"""What is put together out of a program's own expressions is read by every Python, whichever runs migrate."""

import ast
import sys

import pytest

from migrate.edits import argument
from migrate.edits.quotes import like, requoted

NEW = pytest.mark.skipif(sys.version_info < (3, 12), reason="Pythons before 3.12 do not write such f-strings")
# by what 3.12 may write: what those before it write
OLD = {
    "f'{a['b']}'": """f"{a['b']}\"""",
    "f'{a['b']!r:>{w['c']}} it\\'s'": """f"{a['b']!r:>{w['c']}} it\\'s\"""",
    'f(f"{a["b"]}", f"{c}")': """f(f'{a["b"]}', f"{c}")""",
    "f'{a['b']}{c[\"it's\"]}'": '''f"""{a['b']}{c["it's"]}"""''',
    "f'{f'{a['b']}'}'": '''f"""{f"{a['b']}"}"""''',
    "x = f'é {a['b']}'\ny = f'{a['b']}'": "x = f\"é {a['b']}\"\ny = f\"{a['b']}\"",
}
ALIKE = ["f'{a}'", "f\"{a['b']}\"", "f'{a}' 'b'", "'{' + f", "f'it\\'s {a}'", "f'''\n{a['b']}'''", "f'{"]


@NEW
@pytest.mark.parametrize("code", OLD)
def test_an_f_string_that_holds_its_own_quotes_gets_others(code):
    assert requoted(code) == OLD[code]
    assert ast.dump(ast.parse(requoted(code))) == ast.dump(ast.parse(code))


@pytest.mark.parametrize("code", ALIKE)
def test_every_other_stays(code):
    assert requoted(code) == code


@NEW
def test_one_that_only_a_newer_python_reads_stays():
    code = "f'{'\\n'.join(a['b'] for a in \"x\" '''y''' \"\"\"z\"\"\")}'"
    ast.parse(code)
    assert requoted(code) == code


def test_what_a_rule_unparses_is_put_there_with_quotes_for_all(edit):
    e = edit("rank, name = f(), f\"{a['b']}\"\n")
    (statement,) = e.file.tree.body
    e.do("replace", statement, f"name = {ast.unparse(statement.value.elts[1])}")
    assert e.text() == "name = f\"{a['b']}\"\n"


def test_what_stands_in_the_program_keeps_its_quotes(edit):
    code = "f'{a}'" if sys.version_info < (3, 12) else "f'{a['b']}'"
    e = edit(f"g({code})\n")
    e.do("rewrite", e.file.tree.body[0].value, "h({it})", it=argument(0))
    assert e.text() == f"h({code})\n"


LIKE = {
    "as the file has it": ('loaders["train"]', b"x = loaders['train']", "loaders['train']"),
    "the other way round": ("a['train'], b['é']", b'x["train"]', "a[\"train\"], b['é']"),
    "in several lines": ("a['é']\nb['c'] = d['e']", b'x["c"] y["e"]', 'a[\'é\']\nb["c"] = d["e"]'),
}
UNLIKE = {
    "in both": ("loaders['train']", b"[\"train\"] ['train']"),
    "no key": ("f('train')", b'x["train"]'),
    "no key in the file": ("x['train']", b'f("train")'),
    "not in the file": ("reduce(x, 'mean')", b'print("x")'),
    "with quotes inside": ("""f("it's")""", b"'its'"),
    "in an f-string": ("""f"{a['b']}\"""", b'["b"]'),
    "with a prefix": ("r'x'", b'"x"'),
}


@pytest.mark.parametrize("name", LIKE)
def test_a_text_has_the_quotes_of_the_file(name):
    code, content, written = LIKE[name]
    assert like(code, content) == written
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(code))


@pytest.mark.parametrize("name", UNLIKE)
def test_another_keeps_its_own(name):
    code, content = UNLIKE[name]
    assert like(code, content) == code


def test_what_a_rule_writes_has_the_quotes_of_the_place(edit):
    e = edit("""\"""It says "a".\"""\nx = loaders['train']\n""")
    e.do("replace", e.file.tree.body[1], 'y = loaders["train"]')
    assert "y = loaders['train']\n" in e.text()
