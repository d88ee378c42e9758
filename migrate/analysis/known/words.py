"""Words of training programs, as they stand in the text of a file.

The body of a function that nobody is seen to call, or of a model's `forward`, is run only if it holds one of them: no
rule would look at any other, and most functions of a project are of that kind.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

_WORDS = """backward optim optimizer scheduler sched step zero_grad grad scaler autocast clip_
    cuda device cpu gpu to xpu mps is_available type pin_memory Variable Tensor FloatTensor LongTensor new_
    DataLoader dataloader loader dataset Dataset sampler batch train eval no_grad inference_mode
    save load state_dict open write makedirs mkdir print tqdm log_ writer wandb plt dump
    rand random randn randint normal bernoulli multinomial dropout noise shuffle seed
    dist distributed rank world_size barrier reduce gather environ module
    accelerator lambda global"""
_WORD = re.compile(
    rb"(?<![A-Za-z0-9])(?:"
    + b"|".join(re.escape(word.encode()) for word in _WORDS.split())
    + rb")(?![A-Za-z0-9])|_grad|_step|loader|optim"
)
_NAME = re.compile(rb"[^\W\d]\w*")


def names(text: bytes) -> list[bytes]:
    """The names and keywords in a piece of program text."""
    return _NAME.findall(text)


def lines(content: bytes) -> list[int]:
    """The numbers (1-based) of the lines that hold a word of training programs, in order."""
    ends = list(accumulate(map(len, content.splitlines(keepends=True))))
    return sorted({bisect_right(ends, match.start()) + 1 for match in _WORD.finditer(content)})
