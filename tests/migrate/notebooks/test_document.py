"""The JSON of a notebook: what is found in it, and what stays as it was when a source is another."""

import json

import pytest

from migrate.errors import SourceError
from migrate.source.notebook.document import parsed
from migrate.source.notebook.writing import lines, written


def _rewritten(content, **sources):
    document = parsed(content, "train.ipynb")
    return written(document, {int(number.removeprefix("cell")): source for number, source in sources.items()})


def test_code_cells_are_found_by_their_place_among_all(book):
    cell = {"cell_type": "markdown", "metadata": {}, "source": "# Title"}
    document = parsed(book("a = 1", cell, "b = 2\nc = 3"), "train.ipynb")

    assert [(one.number, one.source) for one in document.cells] == [(1, "a = 1"), (3, "b = 2\nc = 3")]
    assert document.language == "python"


def test_metadata_may_be_null_as_some_tools_write_it():
    cell = {"cell_type": "code", "execution_count": None, "metadata": None, "outputs": [], "source": "a = 1"}
    document = parsed(json.dumps({"cells": [cell], "metadata": None, "nbformat": 4}).encode(), "train.ipynb")

    assert [one.source for one in document.cells] == ["a = 1"]


@pytest.mark.parametrize(
    "style", [{"indent": 1}, {"indent": 4}, {"indent": "\t"}, {"indent": None}, {"ensure_ascii": True}]
)
def test_only_the_lines_that_change_are_others(book, style):
    content = book("x = 'ä'\ny = 2\nz = 3", "other = 'ö'", **style)

    new = _rewritten(content, cell1="x = 'ä'\ny = 5\nz = 3")

    assert new == content.replace(b"y = 2", b"y = 5")


def test_new_lines_are_written_as_the_file_writes_them(book):
    assert "'\\u00e4'" in _rewritten(book("a = 'ö'", ensure_ascii=True), cell1="a = 'ä'\nb = 1").decode()
    assert "'ä'" in _rewritten(book("a = 'ö'"), cell1="a = 'ä'\nb = 1").decode()


def test_line_keeps_its_escapes_when_another_follows_it(book):
    content = book("a = '/'\nb = 2").replace(b"'/'", b"'\\/'").replace(b"b = 2", b"b = '\\u00e4'")

    new = _rewritten(content, cell1="a = '/'\nb = 'ä'\nc = 3")

    assert b"a = '\\/'" in new
    assert b"\"b = '\\u00e4'\\n\"" in new


def test_source_that_is_one_text_stays_one(book):
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": 'a = "\\u00e4"\nb = 2'}
    content = book(cell)

    new = _rewritten(content, cell1=cell["source"] + "\nc = 3")

    assert new == content.replace(b"b = 2", b"b = 2\\nc = 3")


def test_lines_that_are_cut_elsewhere_are_cut_as_usual(book):
    cell = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": ["a = 1\nb", " = 2"]}

    new = json.loads(_rewritten(book(cell), cell1="a = 1\nb = 3"))

    assert new["cells"][0]["source"] == ["a = 1\n", "b = 3"]


@pytest.mark.parametrize("source", ["", "a", "a\n", "\n", "a\n\nb", "a\r\nb", "a\x0cb\u2028c\nd"])
def test_lines_are_those_of_the_format(source):
    assert "".join(lines(source)) == source
    assert all(line.endswith("\n") for line in lines(source)[:-1])


def test_order_of_keys_and_the_end_of_the_file_stay():
    content = (
        b'{"nbformat":4,"cells":[ {"source":["a"],"outputs":[],"cell_type":"code"} ],"nbformat_minor":0, "x":[1e5]}'
    )

    assert _rewritten(content, cell1="b") == content.replace(b'["a"]', b'["b"]')


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "not the JSON of a notebook"),
        (b"[]", "not the JSON of a notebook"),
        (b'{"cells": [}', "not the JSON of a notebook"),
        (b'{"cells": 3, "nbformat": 4}', "not the JSON of a notebook"),
        (b'{"cells": [3], "nbformat": 4}', "not the JSON of a notebook"),
        (b'{"cells": [{"source": 3, "cell_type": "code"}], "nbformat": 4}', "not the JSON of a notebook"),
        (b'{"cells": []}', "nbformat"),
        (b'{"worksheets": [], "nbformat": 3}', "format 3"),
        (b'{"cells": ["\xff"]}', "0xff"),
        (b"[" * 100_000, "not the JSON of a notebook"),
    ],
)
def test_what_is_no_notebook_is_refused(content, says):
    with pytest.raises(SourceError, match=says):
        parsed(content, "train.ipynb")


def test_empty_file_is_a_notebook_without_cells():
    assert parsed(b"", "train.ipynb").cells == ()
