"""Progress bars."""

from migrate.analysis.known.table import Makes, Passes, Row
from migrate.analysis.roles import Role

#: Bars around an iterable, and bars that count: all of them are hidden by `disable=`.
BARS = frozenset(
    """tqdm.tqdm tqdm.auto.tqdm tqdm.autonotebook.tqdm tqdm.notebook.tqdm tqdm.notebook.tqdm_notebook tqdm.std.tqdm
    tqdm.tqdm_notebook tqdm.asyncio.tqdm tqdm.rich.tqdm rich.progress.track
    tinygrad.helpers.tqdm""".split()
)
RANGE_BARS = frozenset(
    """tqdm.trange tqdm.auto.trange tqdm.autonotebook.trange tqdm.notebook.trange tqdm.notebook.tnrange tqdm.std.trange
    tqdm.tnrange tinygrad.helpers.trange""".split()
)

#: Bars that are shown where a keyword is true, and the keyword.
SHOWN_BY = {
    f"{module}.{name}": "display"
    for module in ("fastprogress", "fastprogress.fastprogress")
    for name in ("progress_bar", "master_bar")
}

#: Bars around an iterable that cannot be switched off, and the argument that it is.
FIXED_BARS = {
    "progressbar.progressbar": "iterator",
    "alive_progress.alive_it": "it",
    "qqdm.qqdm": "iterable",
    "qqdm.notebook.qqdm": "iterable",
}

ROWS: tuple[Row, ...] = (
    *(Passes(name, (0, "sequence" if "rich.progress" in name else "iterable"), Role.ITERATOR) for name in sorted(BARS)),
    *(Makes(name, Role.BAR) for name in sorted(RANGE_BARS)),
    *(Passes(name, (0, "gen"), Role.ITERATOR) for name in sorted(SHOWN_BY)),
    *(Passes(name, (0, argument), Role.ITERATOR) for name, argument in FIXED_BARS.items()),
)
