"""Data that are made up, split or chosen at random, once in a run: every process must come to the same.

What is drawn for each sample or batch is another thing: there each process may have its own.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known.data import SPLITS
from migrate.analysis.syntax import walk
from migrate.analysis.units import Function
from migrate.programs.chance.calls import begins_pass, is_draw
from migrate.programs.chance.draws import Draws
from migrate.programs.chance.hub import draws_from_numpy, is_seeded_by_system
from migrate.programs.chance.made_up import made_up_data
from migrate.programs.chance.seeds import GENERATOR
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: Draw only where they are told to shuffle, and others that always do.
_IF_ASKED = frozenset(
    f"sklearn.model_selection.{name}" for name in "KFold StratifiedKFold StratifiedGroupKFold".split()
)
_FOLDS = _IF_ASKED | frozenset(f"sklearn.model_selection.{name}ShuffleSplit" for name in ("", "Stratified", "Group"))
#: Begin at random what they fit to all of the data, and come to groups in an order of their own: made-up labels.
_FITTED = frozenset(
    """sklearn.cluster.KMeans sklearn.cluster.MiniBatchKMeans sklearn.cluster.BisectingKMeans sklearn.cluster.k_means
    sklearn.cluster.kmeans_plusplus sklearn.cluster.SpectralClustering sklearn.cluster.spectral_clustering
    sklearn.mixture.GaussianMixture sklearn.mixture.BayesianGaussianMixture sklearn.decomposition.PCA
    sklearn.decomposition.TruncatedSVD sklearn.decomposition.NMF sklearn.decomposition.FastICA
    sklearn.decomposition.LatentDirichletAllocation""".split()
)
#: What chooses, as the splits do: the library whose seed decides, and the argument that takes one of its own.
_CHOOSING = {
    **SPLITS,
    "torch.randperm": ("torch", "generator"),
    "numpy.random.shuffle": ("numpy", ""),
    "numpy.random.permutation": ("numpy", ""),
    "numpy.random.choice": ("numpy", ""),
    "random.shuffle": ("random", ""),
    "random.sample": ("random", ""),
    "sklearn.utils.shuffle": ("numpy", "random_state"),
    "sklearn.utils.resample": ("numpy", "random_state"),
    **dict.fromkeys(_FOLDS | _FITTED, ("numpy", "random_state")),
}
#: What runs for each sample, or for each batch.
EACH = frozenset({"__getitem__", "__getitems__", "__iter__", "__next__", "__call__", "forward", "collate_fn"})


@dataclass(frozen=True, slots=True)
class Choice:
    """Why what a call gives may be another thing on each process."""

    library: str  # whose seed decides
    is_made_up: bool = False  # the data themselves, not which of them


def chosen_data(facts: Facts, loops: Loops, program: Program) -> dict[ast.Call, Choice]:
    """The calls that make data up or choose them."""
    return program.once(_chosen_data, facts, loops)


def _chosen_data(facts: Facts, loops: Loops, program: Program) -> dict[ast.Call, Choice]:
    each = reached(facts, (unit for unit in facts.functions if unit.name in EACH))
    makers = reached(facts, (unit for unit in facts.functions if _makes_data(unit)))  # also for an evaluation in a loop
    training = {loop.node for loop in program.training}
    draws = Draws(facts, program)
    made_up = made_up_data(facts, draws, each, program.training_loaders)
    found = {call: Choice(library, is_made_up=True) for call, library in made_up.items()}
    for use in draws.uses:
        library = _library(facts, use, each)
        if library and (use.unit in makers or training.isdisjoint(loops.around(use.node, use.unit))):
            found[use.node] = Choice(library)
    return found


def draws_above_data(facts: Facts, loops: Loops, program: Program, node: ast.AST) -> bool:
    """Whether code draws from a stream from which data are made up or chosen below: who leaves it out has others."""
    inside = walk(node)
    units = reached(facts, (unit for call in inside.of(ast.Call) for unit in facts.targets(call)))
    drawn = {library for each in inside for library in _drawn_from(facts, each)}
    drawn.update(*(facts.once(_Drawn)[unit] for unit in units))
    if not drawn:
        return False
    own = {*inside, *(each for unit in units for each in facts.own(unit))}
    chosen = chosen_data(facts, loops, program)
    return any(
        choice.library in drawn and call not in own and _may_be_below(facts, node, call)
        for call, choice in chosen.items()
    )


class _Drawn(dict["Unit", "frozenset[str]"]):
    """The libraries from whose streams the code of a unit draws."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Unit) -> frozenset[str]:
        own = self._facts.own(unit)
        self[unit] = frozenset(library for each in own for library in _drawn_from(self._facts, each))
        return self[unit]


def _drawn_from(facts: Facts, node: ast.AST) -> set[str]:
    if begins_pass(facts, node):
        return {"torch"}
    if not isinstance(node, ast.Call) or not is_draw(facts, node):
        return set()
    return {name.partition(".")[0] for name in facts.called(node)}


def _may_be_below(facts: Facts, node: ast.AST, call: ast.Call) -> bool:
    """Whether a call may run after some code; in another function it may."""
    if facts.unit(node) is not facts.unit(call):
        return True
    tree = facts.tree(node)
    return call.lineno > getattr(node, "lineno", 0) or not set(tree.loops(node)).isdisjoint(tree.loops(call))


def _makes_data(unit: Function) -> bool:
    """Whether a function is the constructor of a data set."""
    return unit.name == "__init__" and unit.owner is not None and bool(unit.owner.lookup("__getitem__"))


def _is_never_called(facts: Facts, unit: Function) -> bool:
    """Whether the name of a function stands nowhere but where it is defined."""
    word = re.compile(rf"\b{re.escape(unit.name)}\b".encode())
    return not facts.callers(unit) and sum(len(word.findall(each.file.content)) for each in facts.modules) == 1


def _of_hub(facts: Facts, call: ast.Call) -> str | None:
    if draws_from_numpy(facts, call):
        return "numpy"
    return GENERATOR if is_seeded_by_system(facts, call) else None


def _library(facts: Facts, use: Use, each: set[Unit]) -> str | None:
    """What a call draws from, unless it has a generator of its own, runs for each sample or never does."""
    given = {keyword.arg for keyword in use.node.keywords}
    names = facts.called(use.node) - (frozenset() if "shuffle" in given else _IF_ASKED)
    known = (_CHOOSING[name] for name in names & _CHOOSING.keys())
    library = next((library for library, own in known if not given & {own, None}), _of_hub(facts, use.node))
    if library is None or not isinstance(use.unit, Function):
        return library
    return None if use.unit in each or _is_never_called(facts, use.unit) else library
