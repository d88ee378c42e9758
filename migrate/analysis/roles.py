"""What an object of the analysed program is for, and how the analysis came to think so.

A `Value` is an *allocation site with a role*: two variables whose values share an origin are one object. An expression
may be several values (a set); the empty set means *unknown*, never "not a model". The set of values is finite because
values are made at sites, so joins are unions and the solver comes to rest.
"""

from __future__ import annotations

import ast
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.units import Class, Function, Module


class Role(str, Enum):
    """What a value is for."""

    MODEL = "model"
    CRITERION = "loss function"
    PARAMETERS = "parameters"  # of the model made at the origin
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    LOADER = "dataloader"
    DATASET = "dataset"
    FEED = "data source"  # yields batches and is no DataLoader (timm's, torchtext's, DALI's): prepare cannot take it
    SAMPLER = "sampler"
    ITERATOR = "iterator"  # over a loader: iter(loader), enumerate(loader), tqdm(loader)
    BATCH = "batch"  # what a loader yields, or a part of it
    SAMPLES = "samples"  # computed from a batch, one row a sample
    STATISTIC = "statistic"  # computed from a batch, rows folded away: a mean, a count, a size
    TENSOR = "tensor"
    DEVICE = "device"
    AVAILABLE = "accelerator flag"  # torch.cuda.is_available() and what is computed from it
    STATE = "state dict"
    CHECKPOINT = "checkpoint"  # what torch.load gave
    WRITER = "writer"
    METRIC = "metric"  # an object that adds up what a program measures
    SCALER = "grad scaler"
    AUTOCAST = "autocast context"
    AVERAGE = "averaged model"  # a copy that follows the weights of a model: evaluated, never trained
    RANK = "rank"  # of this process, and what is computed from it alone
    LOCAL_RANK = "local rank"  # on this machine: the index of its GPU
    WORLD_SIZE = "world size"
    ACCELERATOR = "accelerator"
    BAR = "progress bar"
    TEXT = "text"
    NUMBER = "number"
    KNOWN = "library name"
    FUNCTION = "function"
    METHOD = "bound method"
    PARTIAL = "partial function"  # its receiver is what it calls; its arguments are kept at its origin
    CLASS = "class"
    MODULE = "module"
    INSTANCE = "instance"
    CONTAINER = "container"
    HOLDER = "holder"  # parsed arguments, a configuration: anything with attributes that the program sets
    UNKNOWN = "unknown object"

    __hash__ = str.__hash__  # in C; that of `Enum` is the slowest part of hashing a value


class Certainty(IntEnum):
    """How sure the analysis is; an edit rests on what is PROVEN."""

    GUESSED = 0  # by name or use only: told to those who ask, never a value
    LIKELY = 1  # as the annotation of a parameter says that no caller fills; or `self` of a class without objects
    PROVEN = 2  # the constructor was seen


class Value(NamedTuple):
    """Something an expression may be. A plain tuple, since values are hashed and compared all the time.

    `origin` is where it was made. For BATCH, SAMPLES and STATISTIC it is where the *loader* was made, so that what
    belongs to a loader can be told from what does not. A value that is only likely has a parameter or a class there,
    and so has all that is computed from it.
    """

    role: Role
    origin: ast.AST | None = None
    name: str = ""  # KNOWN: dotted name. TEXT: the text. Others: what made it
    unit: Function | Class | Module | None = None
    receiver: Value | None = None  # METHOD: the object it is bound to

    @property
    def certainty(self) -> Certainty:
        """How sure it is that there is such an object."""
        if self.receiver is not None:
            return self.receiver.certainty
        is_made = self.role in _AT_DEFINITIONS or not stands_in(self.origin)
        return Certainty.PROVEN if is_made else Certainty.LIKELY


def stands_in(origin: ast.AST | None) -> bool:
    """Whether an origin makes nothing, and stands for what a caller would pass or make."""
    return isinstance(origin, (ast.arg, ast.ClassDef))


#: Of these, a parameter (`*args`) or a class is where they are made.
_AT_DEFINITIONS = frozenset({Role.CONTAINER, Role.CLASS})

Values = frozenset[Value]
NOTHING: Values = frozenset()
NUMBER: Values = frozenset({Value(Role.NUMBER)})

#: Computed from what a loader yields: these live where the loader's batches live.
FROM_LOADER = frozenset({Role.BATCH, Role.SAMPLES, Role.STATISTIC})
#: The place of a process among all processes, as the launcher tells it.
PLACE = frozenset({Role.RANK, Role.LOCAL_RANK, Role.WORLD_SIZE})
#: One row a sample: what `gather_for_metrics` takes.
ROWS = frozenset({Role.BATCH, Role.SAMPLES})
#: Their origin is that of the loader or model that they come from: what that object holds is not theirs.
BELONGING = FROM_LOADER | {Role.PARAMETERS, Role.STATE}


def roles(values: Values) -> set[Role]:
    """The roles among the values."""
    return {value.role for value in values}


def of_role(values: Iterable[Value], *wanted: Role) -> Values:
    """The values that have one of the roles."""
    return frozenset(value for value in values if value.role in wanted)


def computed(values: Iterable[Value], role: Role) -> Values:
    """What is computed from what loaders gave among the values: SAMPLES with one row a sample, STATISTIC without."""
    return frozenset(Value(role, value.origin) for value in values if value.role in FROM_LOADER)


def texts(values: Iterable[Value]) -> list[str]:
    """The texts among the values, each once, in the same order in each run."""
    return sorted({value.name for value in values if value.role is Role.TEXT})


def only(values: Values, *wanted: Role) -> bool:
    """Whether there are values and every one has one of the roles."""
    return bool(values) and all(value.role in wanted for value in values)


def origins(values: Values, *wanted: Role) -> set[ast.AST]:
    """Where the values of these roles were made."""
    return {value.origin for value in values if value.role in wanted and value.origin is not None}
