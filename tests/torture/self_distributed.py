"""Training programs that distribute themselves, put together from the ways of self_distributed.toml."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import idioms
from idioms import Made

if TYPE_CHECKING:
    import random

#: How many of the programs run without other processes, too.
ALONE_TOO = 0.6
#: What every program has, in this order; the rest is in the ways.
WHOLE = {
    "objects": "<device>\n<data>\n<val>\n<wrap>\n@criterion = nn.CrossEntropyLoss()\n<optimizer>",
    "step": """
x, y = x.to(@device), y.to(@device)
loss = @criterion(@model(x), y)
<update>
<after a batch>
<add>""",
    "end of epoch": "<tell>\n<after an epoch>\n<save>",
    "last": """
%say%
    print("val last", f"{val_loss:.4f} {score:.4f}")""",
    "tell": """
%say%
    print("val", epoch, f"{val_loss:.4f} {score:.4f}")
    print("lr", epoch, "%.6f" % @optimizer.param_groups[0]["lr"])""",
}
#: What goes on only where there are several processes, and which sampler is told the epoch.
SEVERAL = {
    False: {"if several": "if dist.is_initialized():", "set epoch": "@sampler.set_epoch(epoch)"},
    True: {"if several": "if args.distributed:", "set epoch": "if args.distributed:\n    @sampler.set_epoch(epoch)"},
}


@cache
def parts(*, alone: bool) -> dict[str, list[dict]]:
    """The ways of each part, those for programs that run alone, too, or for others; a shape comes before all others."""
    found = idioms.parts_of("self_distributed.toml")
    ways = {name: [_either(way, alone=alone) for way in each] for name, each in found.items() if name != "shape"}
    ways["join"] = [way for way in ways["join"] if ("alone, too" in way.get("tags", ())) is alone]
    return ways | {"shape": [each for each in found["shape"] if not (alone and "spawns" in each.get("tags", ()))]}


def _either(way: dict, *, alone: bool) -> dict:
    """A way as it is written where there may be one process, `or` not."""
    first = next(name for name in way if name != "tags")
    kept = {name: text for name, text in way.items() if name != "or"}
    return kept | {first: way["or"]} if alone and "or" in way else kept


def made(chance: random.Random) -> Made:
    """A program of ways that chance takes."""
    alone = chance.random() < ALONE_TOO
    return idioms.of(chance, parts(alone=alone), WHOLE | SEVERAL[alone], ("head.py", "several_head.py"))
