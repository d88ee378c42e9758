"""What IPython reads and Python does not: taken out, and put back where it was."""

import ast

import pytest

from migrate.source.notebook.magics import Unreadable, python, restored

MARK = "__mark"

# A cell, and what its statements are to Python: "x" for one that means nothing, else the code.
CELLS = {
    "%matplotlib inline": ["x"],
    "%matplotlib inline\nimport os": ["x", "import os"],
    "!pip install torch": ["x"],
    "!pip install \\\n    torch\nimport os": ["x", "import os"],
    "if True:\n    !ls\n    a = 1": ["if True:\n    'x'\n    a = 1"],
    "files = !ls data\nn = len(files)": ["files = unknown()", "n = len(files)"],
    "cwd = %pwd": ["cwd = unknown()"],
    "?print": ["x"],
    "print?": ["x"],
    "torch.nn??": ["x"],
    "pip install torch": ["x"],
    "%cd data\ncd = 3": ["x", "cd = 3"],
    "%time train(model)": ["with unknown: train(model)"],
    "%time model = train()": ["with unknown: model = train()"],
    "%timeit train(model, 3)": ["unknown(train, model)"],
    "%%time\ntrain(model)": ["x", "train(model)"],
    "\n%%capture out\ntrain(model)": ["x", "train(model)"],
    "%%timeit -n 3\ntrain(model)": ["unknown(train, model)"],
    "%load_ext autoreload\n%autoreload 2\nx = 1": ["x", "x", "x = 1"],
    # No magics: what may look like one goes on with an expression, or stands in a text.
    "print('%d'\n      %(3))\n!ls": ["print('%d' % 3)", "x"],
    "print('''\n%time\n!ls\n''')\n!ls": ["print('\\n%time\\n!ls\\n')", "x"],
    "a = [1,  # ]\n!= 2]": None,
    "text = 'it\\'s (' # (\n%pwd": ['text = "it\'s ("', "x"],
    "a = 5\\\n% 3\n%pwd": ["a = 5 % 3", "x"],
    "await task\n%pwd": ["await task", "x"],
}


def _told(text):
    """The statements of a masked cell, with one name for all that is not known."""
    found = []
    for statement in ast.parse(text).body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id.startswith(MARK):
                node.id = "unknown"
            if isinstance(node, ast.Constant) and str(node.value).startswith(MARK):
                node.value = "x"
        plain = ast.unparse(statement)
        found.append("x" if plain == "'x'" else plain)
    return [one.replace("with unknown:\n    ", "with unknown: ") for one in found]


@pytest.mark.parametrize("cell", [cell for cell, found in CELLS.items() if found])
def test_cell_is_read(cell):
    read = python(cell, MARK)

    assert _told(read.text) == CELLS[cell]


@pytest.mark.parametrize("cell", [cell for cell, found in CELLS.items() if found and "timeit -n" not in cell])
def test_lines_stay_and_come_back(cell):
    read = python(cell, MARK)

    assert read.text.count("\n") == cell.count("\n")
    assert restored(read.text, read) == cell


@pytest.mark.parametrize("cell", ["a = [1,  # ]\n!= 2]", "for x in y:", "print 'two'", "x = = 1", "%%time\nx = = 1"])
def test_cell_that_is_no_python_is_refused(cell):
    with pytest.raises(Unreadable):
        python(cell, MARK)


@pytest.mark.parametrize("cell", ["%%bash\nls", "%%writefile train.py\nloss.backward()", "%%html\n<b>x</b>"])
def test_cell_of_another_language_is_kept_out(cell):
    assert python(cell, MARK).text is None


def test_indentation_of_the_edited_code_is_that_of_the_magic():
    read = python("!ls\nx = 1", MARK)
    name = read.masks[0].inside

    assert restored(f"if main:\n    {name}\n    x = 1", read) == "if main:\n    !ls\n    x = 1"


def test_magic_that_lost_its_line_is_seen():
    read = python("files = !ls\nx = 1", MARK)
    name = read.masks[0].inside

    assert restored("x = 1", read) is None
    assert restored(f"files = {name} if main else None\nx = 1", read) is None
    assert restored(f"files = {name}\nmore = {name}\nx = 1", read) is None


def test_cell_magic_stays_on_top():
    read = python("%%time\ntrain()", MARK)
    name = read.masks[0].inside

    assert (
        restored(f"accelerator = Accelerator()\n{name}\ntrain()", read)
        == "%%time\naccelerator = Accelerator()\ntrain()"
    )
