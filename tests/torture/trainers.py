"""Programs with a trainer class whose parts are made in different places, in any order that can run.

A part is made in the `__init__`, by a method that it calls, a function, a base, in `setup()`, or outside and handed
over. What the programs train and print is that of idioms.py.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from idioms import APART, Made, whole

if TYPE_CHECKING:
    import random


class When(IntEnum):
    """When a part is made: what it is made of must be there by then."""

    OUTSIDE = 0
    BASE = 1
    INIT = 2
    SETUP = 3


@dataclass(frozen=True)
class Part:
    """What a trainer holds, the lines that make it (`@x` is an attribute, or a name outside), and what these need."""

    names: tuple[str, ...]
    lines: tuple[str, ...]
    needs: tuple[str, ...] = ()


PARTS = {
    "device": Part(("device",), ('@device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',)),
    "loaders": Part(
        ("train_loader", "val_loader"),
        (
            "@train_loader = DataLoader(Rows(64, 0), batch_size=8, shuffle=True)",
            "@val_loader = DataLoader(Rows(30, 1), batch_size=8)",
        ),
    ),
    "model": Part(("model",), ("@model = Net().to(@device)",), ("device",)),
    "criterion": Part(("criterion",), ("@criterion = nn.CrossEntropyLoss()",)),
    "optimizer": Part(("optimizer",), ("@optimizer = optim.SGD(@model.parameters(), args.lr, 0.9)",), ("model",)),
    "scheduler": Part(("scheduler",), ("@scheduler = optim.lr_scheduler.StepLR(@optimizer, 1, 0.5)",), ("optimizer",)),
}
#: How a part is made, and when.
WAYS = {
    "handed over": When.OUTSIDE,
    "by the base": When.BASE,
    "in place": When.INIT,
    "by a method": When.INIT,
    "given by a method": When.INIT,
    "given by a function": When.INIT,
    "in setup": When.SETUP,
    "by a method in setup": When.SETUP,
}
TRAINING = """\
def train_epoch(self):
    self.model.train()
    total = 0.0
    for x, y in self.train_loader:
        x, y = x.to(self.device), y.to(self.device)
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        total += loss.item()
    return total / len(self.train_loader)

def evaluate(self):
    self.model.eval()
    correct = count = 0
    with torch.no_grad():
        for x, y in self.val_loader:
            x, y = x.to(self.device), y.to(self.device)
            correct += (self.model(x).argmax(1) == y).sum().item()
            count += y.size(0)
    return correct / count

def fit(self, epochs):
{setup}    for epoch in range(epochs):
        print("train", epoch, self.train_epoch())
        print("lr", epoch, "%.5f" % self.optimizer.param_groups[0]["lr"])
        self.scheduler.step()
        print("val", epoch, self.evaluate())
        torch.save(self.model.state_dict(), "model.pt")
"""


def made(chance: random.Random) -> Made:
    """A program of ways that chance takes."""
    ways = _ways(chance)
    order = _order(chance)
    has_base = "by the base" in ways.values()
    blocks = {when: [line for part in order for line in _at(ways[part], part, when)] for when in When}
    methods = [_method(part, ways[part]) for part in order if "method" in ways[part]]
    functions = [_function(part) for part in order if ways[part] == "given by a function"]
    handed = [name for part in order if ways[part] == "handed over" for name in PARTS[part].names]
    kept = [f"self.{name} = {name}" for name in handed]
    is_own = bool(blocks[When.SETUP]) and chance.random() < 0.5
    setup = [_def("setup(self)", blocks[When.SETUP])] if blocks[When.SETUP] else []
    training = TRAINING.format(setup="    self.setup()\n" if is_own else "")
    above = ["super().__init__(args)"] if has_base else ["self.args = args"]
    init = _def(f"__init__(self, {', '.join(['args', *handed])})", [*above, *kept, *blocks[When.INIT]])
    base = (
        [_class("Base", [_def("__init__(self, args)", ["self.args = args", *blocks[When.BASE]])])] if has_base else []
    )
    trainer = _class("Trainer(Base)" if has_base else "Trainer", [init, *setup, *methods, training])
    calls = [*blocks[When.OUTSIDE], f"trainer = Trainer({', '.join(['args', *handed])})"]
    calls += ["trainer.setup()"] * (bool(setup) and not is_own)
    main = _def("main()", ["args = get_args()", "torch.manual_seed(0)", *calls, "trainer.fit(args.epochs)"])
    text = "\n\n".join([*functions, *base, trainer, main, 'if __name__ == "__main__":\n    main()\n'])
    return Made(
        whole(text, apart=chance.random() < APART),
        {part: [*WAYS].index(way) for part, way in ways.items()},
        frozenset(),
    )


def _ways(chance: random.Random) -> dict[str, str]:
    while True:
        ways = {part: chance.choice([*WAYS]) for part in PARTS}
        if all(_can_have(ways[part], ways[other]) for part, each in PARTS.items() for other in each.needs):
            return ways


def _can_have(way: str, other: str) -> bool:
    """Whether a part is there for another one: what a base makes it makes of its own."""
    return WAYS[way] >= WAYS[other] and (WAYS[way] is not When.BASE or WAYS[other] is When.BASE)


def _order(chance: random.Random) -> list[str]:
    found: list[str] = []
    while len(found) < len(PARTS):
        found.append(chance.choice([p for p, each in PARTS.items() if p not in found and {*each.needs} <= {*found}]))
    return found


def _at(way: str, part: str, when: When) -> list[str]:
    """The lines that make a part in the block that runs at some time."""
    if WAYS[way] is not when:
        return []
    names = ", ".join(f"self.{name}" for name in PARTS[part].names)
    match way:
        case "handed over":
            return _lines(part, "")
        case "by a method" | "by a method in setup":
            return [f"self.build_{part}()"]
        case "given by a method":
            return [f"{names} = self.build_{part}()"]
        case "given by a function":
            return [f"{names} = make_{part}({', '.join(['args', *(f'self.{each}' for each in PARTS[part].needs)])})"]
    return _own(part)


def _lines(part: str, owner: str) -> list[str]:
    return [line.replace("@", owner) for line in PARTS[part].lines]


def _own(part: str) -> list[str]:
    """The lines that make a part as an attribute; settings are those that the object keeps."""
    return [line.replace("args.", "self.args.") for line in _lines(part, "self.")]


def _method(part: str, way: str) -> str:
    if way != "given by a method":
        return _def(f"build_{part}(self)", _own(part))
    own = [
        line.replace(f"self.{name} =", f"{name} =") for line, name in zip(_own(part), PARTS[part].names, strict=True)
    ]
    return _def(f"build_{part}(self)", [*own, f"return {', '.join(PARTS[part].names)}"])


def _function(part: str) -> str:
    given = ", ".join(["args", *PARTS[part].needs])
    return _def(f"make_{part}({given})", [*_lines(part, ""), f"return {', '.join(PARTS[part].names)}"]) + "\n"


def _def(head: str, lines: list[str]) -> str:
    return f"def {head}:\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def _class(head: str, parts: list[str]) -> str:
    return f"class {head}:\n" + textwrap.indent("\n".join(parts), "    ") + "\n"
