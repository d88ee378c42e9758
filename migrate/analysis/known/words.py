"""Words of training programs, as they stand in the text of a file.

The body of a function that nobody is seen to call, or of a model's `forward`, is run only if it holds one of them: no
rule would look at any other, and most functions of a project are of that kind.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

#: Where a training program differs from others, by the head or tail of a name ...
_PARTS = "backward optim sched scaler autocast zero_grad clip_grad cuda device loader distributed dist_ no_grad tqdm rand"
#: ... by a whole name ...
_NAMES = """step grad cpu gpu xpu mps is_available Variable Tensor FloatTensor LongTensor sampler train eval
    inference_mode save load state_dict open write makedirs mkdir print log writer wandb plt
    normal normal_ bernoulli bernoulli_ multinomial dropout noise shuffle seed
    dist rank world_size barrier reduce gather environ accelerator"""
#: ... or by a name in front of something.
_MARKS = (r"\.to\(", r"\.type\(", r"\.module\b", r"\.dump\(")
_LINE = re.compile(
    "|".join(
        [
            *(re.escape(part) for part in _PARTS.split()),
            rf"\b(?:{'|'.join(map(re.escape, _NAMES.split()))})\b",
            *_MARKS,
        ]
    ).encode()
)
_NAME = re.compile(rb"[^\W\d]\w*")


def names(text: bytes) -> list[bytes]:
    """The names and keywords in a piece of program text."""
    return _NAME.findall(text)


def lines(content: bytes) -> list[int]:
    """The numbers (1-based) of the lines that hold a word of training programs, in order."""
    ends = list(accumulate(map(len, content.splitlines(keepends=True))))
    return sorted({bisect_right(ends, match.start()) + 1 for match in _LINE.finditer(content)})
