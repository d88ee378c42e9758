"""The document as a parser reads it: whole, closed to the outside, with links that lead somewhere."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from migrate.options import Mode, Options
from migrate.pipeline import run
from migrate.report.formats.about import About
from migrate.report.html import is_ours, page
from migrate.report.html.markup import number_of, plain, sentence, tag, text
from migrate.report.model import Change, Edit, Finding, Kind, Report
from migrate.source.project import SourceFile

VOID = {"meta", "col"}
LEADING = ("src", "href", "action", "data", "poster", "srcset", "xlink:href", "formaction", "background")


class Document(HTMLParser):
    """Elements with their attributes and texts; a document that is not well nested is an error."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self._open = [], [], []
        self.feed(source)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag, attributes):
        assert len({name for name, _ in attributes}) == len(attributes), f"twice the same attribute: {attributes}"
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open, f"{tag} is closed, and nothing is open"
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self._open[-1] if self._open else "", data))

    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    def links(self):
        return [value for _, attributes in self.elements for name, value in attributes.items() if name in LEADING]

    def inside(self, tag):
        return "".join(data for around, data in self.texts if around == tag)


def test_ids_are_unique_and_links_lead_to_them(pages):
    for name, source in pages.items():
        document = Document(source)
        ids = document.ids()
        assert len(ids) == len(set(ids)), name
        assert document.links(), name
        assert {link for link in document.links() if not link.startswith("#") or link[1:] not in ids} == set(), name


def test_nothing_comes_from_outside(pages):
    for source in pages.values():
        document = Document(source)
        assert not {"img", "iframe", "object", "embed", "link", "base", "form"} & {tag for tag, _ in document.elements}
        for element, attributes in document.elements:
            assert "style" not in attributes, element  # the policy would drop it
            assert not [name for name in attributes if name.startswith("on")], element
        assert "url(" not in document.inside("style")
        assert "@import" not in document.inside("style")
        assert not re.search(r"fetch\(|XMLHttp|import\(|https?:", document.inside("script"))


def test_policy_allows_only_what_the_page_holds(pages):
    source = pages["gan/before.py"]
    document = Document(source)
    policy = next(a["content"] for _, a in document.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(document.inside(kind).encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert [tag for tag, _ in document.elements].count("script") == 1


def test_hostile_texts_stay_texts(about, hostile, evil, curve, verified):
    source = page(hostile, about, [verified(curve(evil, [1.0]), outcome="fail", text=evil)])
    source.encode()  # what UTF-8 has not is shown by its number
    found = [tag for tag, _ in Document(source).elements]
    assert found.count("script") == 1
    assert "img" not in found
    body = source[source.index("<body>") :]
    for character in "\u202e\u2066\u200b\x07\udcff\udcfe":
        assert character not in source
        assert number_of(character) in body
    assert "alert(1)" in Document(source).inside("span") + Document(source).inside("p")


def test_the_same_report_gives_the_same_page(reports, pages, about):
    assert page(reports["gan/before.py"], about) == pages["gan/before.py"]


def test_pages_are_known_again(pages):
    assert all(is_ours(source.encode()[:4096]) for source in pages.values())
    assert not is_ours(b"<!doctype html><html><head></head></html>")
    assert not is_ours(b"")


def test_each_thing_of_a_map_leads_to_its_line(reports, pages):
    report, source = reports["two-scripts/before"], pages["two-scripts/before"]
    document = Document(source)
    for summary in report.summaries:
        for thing in summary.map.things:
            line = report.sources[thing.place.path].lines[thing.place.line - 1]
            number = [change.path for change in report.changes].index(thing.place.path)
            assert any(a.get("href") == f"#f{number}L{thing.place.line}" for _, a in document.elements), line


def test_a_refusal_says_what_to_do_by_hand(pages):
    document = Document(pages["model-parallel/before.py"])
    assert "keep the whole model on one device" in document.inside("p")
    assert "left as it is" in document.inside("span")
    assert "By hand:" in document.inside("b")


def test_what_goes_because_the_accelerator_does_it_says_so(pages):
    document = Document(pages["ddp-helpers/before"])
    assert "the accelerator does what the program did here by itself" in document.inside("li")
    assert "joins a process group" not in document.inside("li")  # that is why a program is left


def test_skip_links_come_first(pages):
    document = Document(pages["gan/before.py"])
    links = [a for tag, a in document.elements if tag == "a"]
    assert [a["class"] for a in links[:3]] == ["skip"] * 3
    assert [a["href"] for a in links[:3]] == ["#programs", "#left", "#changes"]


@pytest.mark.parametrize(
    ("mode", "written", "says"),
    [(Mode.PREVIEW, False, "Nothing has been written"), (Mode.WRITE, True, "have been converted")],
)
def test_says_whether_files_were_written(mode, written, says, about):
    change = Change("a.py", b"x = 1\n", b"x = 2\n", edits=(Edit("MIG105", 1, 1),))
    source = page(Report(changes=(change,), touched=("a.py",), written=written), About("1", mode, about.rules))
    assert says in Document(source).inside("b")


def test_a_report_without_anything():
    source = page(Report(), About("1"))
    assert "Nothing changes" in source
    assert Document(source).ids()


def test_a_finding_beyond_the_end_or_in_no_file_leads_to_something(about):
    found = [
        Finding("MIG105", "a.py", 99, 1, 99, "far", "", Kind.LEFT),
        Finding("MIG105", "b.py", 1, 1, 1, "away", "", Kind.LEFT),
    ]
    source = page(Report(findings=tuple(found), sources={"a.py": SourceFile("a.py", b"x = 1\n")}), about)
    document = Document(source)
    assert {link for link in document.links() if link[1:] not in document.ids()} == set()


def test_of_a_notebook_each_cell_is_a_text(tmp_path, about):
    sources = [
        "!ls\nimport torch\nfrom torch.utils.data import DataLoader",
        "unrelated = 1",
        "data = DataLoader(torch.ones(8, 2))\nnet = torch.nn.Linear(2, 2)\nbest = torch.optim.SGD(net.parameters())",
        "for x in data:\n    net(x).sum().backward()\n    best.step()\nprint(x)",
    ]
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": s} for s in sources
    ]
    file = tmp_path / "train.ipynb"
    file.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    report = run([str(file)], Options(report=True))
    document = Document(page(report, about))
    assert [number for around, number in document.texts if around == "span" and number.startswith(" cell")] == [
        " cell 1",
        " cell 3",
        " cell 4",
    ]
    assert {link for link in document.links() if link[1:] not in document.ids()} == set()
    assert "cell 4:1" in document.inside("text")  # the loop
    assert " runtime " in document.inside("span")
    assert not [li for around, li in document.texts if around == "li" and "no rule" in li]


def test_long_gaps_are_left_out_and_what_is_pointed_at_is_not(about):
    lines = [f"x{number} = {number}" for number in range(9000)]
    old = "\n".join([*lines, "y = 1", ""]).encode()
    change = Change("a.py", old, old.replace(b"y = 1", b"y = 2"), edits=(Edit("MIG105", 9001, 9001),))
    found = Finding("MIG105", "a.py", 4500, 1, 4500, "here", "", Kind.LEFT)
    report = Report((found,), changes=(change,), sources={"a.py": SourceFile("a.py", old)})
    source = page(report, about)
    assert len(source) < 200_000
    assert "left out of this page" in source
    assert "f0L4500" in Document(source).ids()


def test_markup():
    assert text("a < b & c") == "a &lt; b &amp; c"
    assert text("\u202e") == '<span class="odd" title="right-to-left override">U+202E</span>'
    assert text("é\t中\n") == "é\t中\n"
    assert plain("a\u200bb") == "a[U+200B]b"
    assert sentence("say `<x>` twice") == "say <code>&lt;x&gt;</code> twice"
    assert tag("a", text("x"), href='"', class_="c", id=None, hidden=True, open=False, tabindex=-1) == (
        '<a href="&quot;" class="c" hidden tabindex="-1">x</a>'
    )
