"""The inputs: programs of a grammar, fixtures mutated, cut off and put together, patterns of rules in every position.

Every input follows from the seed, the kind and its number, so a failure is found again by these three.
"""

from __future__ import annotations

import json
import random
import re
import sys
import warnings
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesmith
from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
from asked import CORPUS, INPUTS, SEED
from cases import FIXTURES, cases
from mutations import EVERY, LINES, Text, mutated, put

from migrate.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHORT = 40  # lines; a mutation of a longer program finds the same and takes longer
LONGEST = 110  # of those that are cut off, spliced, run
ARROW = re.compile(r"^ {4}(?P<before>\S.*?) +-> +\S.*$")


@dataclass(frozen=True)
class Program:
    """One input: the files of a folder that are named to `migrate`, and where it comes from."""

    files: dict[str, bytes]
    origin: str
    mutations: list[str] = field(default_factory=list)


@cache
def bases() -> list[Program]:
    """The fixtures of Python files, before and after; the shorter ones."""
    found = []
    for case in cases():
        for version, files in (("before", case.before), ("after", case.after)):
            contents = {file.name: file.read_bytes() for file in files if file.suffix == ".py"}
            if contents and sum(content.count(b"\n") for content in contents.values()) <= LONGEST:
                found.append(Program(contents, f"{case.name}/{version}"))
    return found


@cache
def notebooks() -> list[Program]:
    files = sorted(FIXTURES.glob("*/*.ipynb"))
    return [Program({file.name: file.read_bytes()}, f"{file.parent.name}/{file.stem}") for file in files]


@cache
def originals() -> list[Program]:
    """What is mutated: short ones, as people wrote them three times as often as converted ones."""
    short = [base for base in bases() if sum(content.count(b"\n") for content in base.files.values()) <= SHORT]
    before = [base for base in short if base.origin.endswith("/before")]
    return before * 3 + [base for base in short if base.origin.endswith("/after")]


@cache
def corpus() -> list[Program]:
    """What is cut off and spliced: the fixtures, and the files of TORTURE_CORPUS that train something."""
    found = [base for base in bases() if base.origin.endswith("/before")]
    if CORPUS:
        for path in sorted(Path(CORPUS).rglob("*.py")):
            content = path.read_bytes() if path.is_file() else b""
            if b".backward(" in content and content.count(b"\n") <= 4 * LONGEST:
                found.append(Program({"program.py": content}, str(path.relative_to(CORPUS))))
    return found


@cache
def patterns() -> list[bytes]:
    """What the documentation of the rules says that they find, as statements."""
    found = set()
    for rule in RULES:
        for line in rule.documentation.splitlines():
            if match := ARROW.match(line):
                code = match["before"].encode()
                for whole in (code, code + b" pass", code + b": pass", b"for _ in loader: " + code):
                    if _parses(whole):
                        found.add(whole)
                        break
    return sorted(found)


def _parses(code: bytes) -> bool:
    try:
        compile(code, "pattern", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _changed(program: Program, name: str, content: bytes, *mutations: str) -> Program:
    return Program({**program.files, name: content}, program.origin, [*program.mutations, *mutations])


# --------------------------------------------------------------------------------------------- kinds


def mutation(chance: random.Random) -> Program:
    """A fixture after one to three mutations in one of its files."""
    program = chance.choice(originals())
    name = chance.choice(sorted(program.files))
    content, names = mutated(program.files[name], chance, EVERY)
    return _changed(program, name, content, *names)


def pattern(chance: random.Random) -> Program:
    """A fixture with what one or two rules look for, somewhere in it, some of it with other names."""
    program = chance.choice(originals())
    name = chance.choice(sorted(program.files))
    content, put_in = program.files[name], []
    for _ in range(chance.randint(1, 2)):
        code = chance.choice(patterns())
        text = Text(content)
        if chance.random() < 0.5 and text.names:
            code = re.sub(
                rb"(?<![\w.])(model|loss|loader|optimizer|x|scheduler)(?!\w)",
                chance.choice(text.names).encode(),
                code,
                count=1,
            )
        content = put(text, chance, code) or content
        put_in.append(code.decode())
        if not _parses(content):
            break
    return _changed(program, name, content, *put_in)


def truncation(chance: random.Random) -> Program:
    """A program cut off: after a line, or after any byte."""
    program = chance.choice(corpus())
    name = chance.choice(sorted(program.files))
    content = program.files[name]
    if chance.random() < 0.6:
        lines = LINES.findall(content)
        return _changed(program, name, b"".join(lines[: chance.randint(0, len(lines))]), "cut after a line")
    return _changed(program, name, content[: chance.randint(0, len(content))], "cut after a byte")


def splice(chance: random.Random) -> Program:
    """The beginning of one program and the end of another one, or statements of one in the middle of another."""
    one, other = chance.sample(corpus(), 2)
    first, second = (chance.choice(sorted(program.files.items()))[1] for program in (one, other))
    a, b = LINES.findall(first), LINES.findall(second)
    if chance.random() < 0.5:
        lines = a[: chance.randint(0, len(a))] + b[chance.randint(0, len(b)) :]
    else:
        tops = [number for number, line in enumerate(b) if line[:1] not in b" \t#\r\n"]
        begin, stop = sorted(chance.choices([*tops, len(b)], k=2))
        place = chance.choice([number for number, line in enumerate(a) if line[:1] not in b" \t\r\n"] or [0])
        lines = a[:place] + b[begin:stop] + a[place:]
    return Program({"program.py": b"".join(lines)}, f"{one.origin} + {other.origin}", ["spliced"])


def notebook(chance: random.Random) -> Program:
    """A notebook of which one cell is mutated, cells are moved, or the file is cut off."""
    program = chance.choice(notebooks())
    ((name, content),) = program.files.items()
    if chance.random() < 0.1:
        return _changed(program, name, content[: chance.randint(0, len(content))], "cut after a byte")
    document = json.loads(content)
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    if chance.random() < 0.3:
        chance.shuffle(document["cells"])
    cell = chance.choice(cells)
    source = "".join(cell["source"])
    new, names = mutated(source.encode(), chance, EVERY)
    cell["source"] = new.decode(errors="replace").splitlines(keepends=chance.random() < 0.9)
    return _changed(program, name, json.dumps(document).encode(), *names)


#: What makes the analysis look at a program that is only grammar.
HEAD = b"import torch\nfrom torch import nn, optim\nfrom torch.utils.data import DataLoader\n"
TAIL = b"""
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
for x in DataLoader(torch.zeros(4, 1)):
    opt.zero_grad()
    loss = net(x).sum()
    loss.backward()
    opt.step()
"""


def grammatical(chance: random.Random, count: int) -> Iterator[Program]:
    """Programs of hypothesmith, half of Python's grammar and half of libcst's nodes, before a training loop."""
    for number, strategy in enumerate((hypothesmith.from_node(), hypothesmith.from_grammar())):

        @seed(chance.randrange(2**32))
        @settings(
            max_examples=count // 2 + (count % 2) * number,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def collect(text: str) -> None:
            texts.append(text)  # noqa: B023 (it is called in this round of the loop)

        texts: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            collect()
        for text in texts:
            code = text.encode("utf-8", "surrogatepass")
            rest = TAIL if chance.random() < 0.3 else b""  # a conversion takes most of the time
            yield Program({"program.py": HEAD + code + b"\n" + rest}, "hypothesmith", [f"strategy {number}"])


def _each(make: Callable[[random.Random], Program]) -> Callable[[random.Random, int], Iterator[Program]]:
    return lambda chance, count: (make(chance) for _ in range(count))


#: Kind of input → how to make some, the part of all inputs that are of it, how many are made at a time.
KINDS = {
    "mutated fixtures": (_each(mutation), 0.40, 250),
    "patterns of rules": (_each(pattern), 0.10, 250),
    "cut-off programs": (_each(truncation), 0.25, 500),
    "spliced programs": (_each(splice), 0.13, 250),
    "hypothesmith": (grammatical, 0.10, 200),
    "notebooks": (_each(notebook), 0.02, 100),
}


def chunks() -> list[tuple[str, int, int]]:
    """(kind, number, how many inputs) of every portion, the kinds in turn."""
    found = []
    for kind, (_, part, size) in KINDS.items():
        wanted = max(1, round(INPUTS * part))
        found += [(kind, number, min(size, wanted - first)) for number, first in enumerate(range(0, wanted, size))]
    return sorted(found, key=lambda chunk: chunk[1])


def inputs(kind: str, number: int, count: int) -> Iterator[Program]:
    """The inputs of one portion."""
    return KINDS[kind][0](random.Random(f"{SEED} {kind} {number}"), count)  # noqa: S311 (a choice, not a secret)
