"""Words of training programs, as they stand in the text of a file.

The body of a function that nobody is seen to call, or of a model's `forward`, is run only if it holds one of them: no
rule would look at any other, and most functions of a project are of that kind.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

#: What the text of a training program holds; found by plain search, which is several times as fast as one expression.
WORDS = tuple(
    word.encode()
    for word in """backward optim sched scaler autocast grad cuda device loader distributed dist. rank tqdm rand seed
    .to( .cpu( gpu xpu mps .type( Variable Tensor( sampler .train( .eval( .step( inference_mode is_available
    save load( open( write makedirs mkdir print( writer wandb plt. dump( environ .module
    normal( normal_( bernoulli multinomial barrier reduce gather accelerator max_norm""".split()
)
_NAME = re.compile(rb"[^\W\d]\w*")


def names(text: bytes) -> list[bytes]:
    """The names and keywords in a piece of program text."""
    return _NAME.findall(text)


def lines(content: bytes) -> list[int]:
    """The numbers (1-based) of the lines that hold a word of training programs, in order."""
    ends = list(accumulate(map(len, content.splitlines(keepends=True))))
    return sorted({bisect_right(ends, place) + 1 for word in WORDS for place in _places(content, word)})


def _places(content: bytes, word: bytes) -> Iterator[int]:
    place = content.find(word)
    while place >= 0:
        yield place
        place = content.find(word, place + len(word))
