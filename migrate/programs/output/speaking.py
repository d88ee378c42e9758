"""Which calls speak, by themselves, and which functions do, by themselves or by what they call: each is asked once."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import own_nodes
from migrate.analysis.units import Class, Function
from migrate.programs.marker import is_marked
from migrate.programs.output.computed import needs_all
from migrate.programs.output.effects import Effects
from migrate.programs.output.folders import may_be_there
from migrate.programs.output.own_files import OwnFiles
from migrate.programs.reach.callees import Reaching
from migrate.programs.values.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.programs.conversion import Conversion


class Speaking:
    """What one program's functions say, wherever they are called."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self._facts = conversion.facts
        self._outputs = conversion.facts.once(Outputs)
        self._effects = conversion.facts.once(Effects)
        self._own = conversion.facts.once(OwnFiles)
        self._only: dict[Function, bool] = {}
        self._classes: dict[Class, bool] = {}
        self._fronts: dict[Class, bool] = {}
        self._spoken: dict[ast.Call, bool] = {}
        self._made: dict[Function, list[ast.Call]] = {}
        #: Whether a function, or one that it calls, writes anything, other than folders that may be there.
        self.speaks = Reaching(self._says, self._entered)

    def is_spoken(self, call: ast.Call) -> bool:
        """Whether a call itself prints, writes, or makes what does."""
        if call not in self._spoken:
            self._spoken[call] = self._is_spoken(call)
        return self._spoken[call]

    def folders(self, unit: Function) -> list[ast.Call]:
        """The folders that a function makes if they are not there."""
        if unit not in self._made:
            self._made[unit] = may_be_there(self._facts, unit)
        return self._made[unit]

    def _is_spoken(self, call: ast.Call) -> bool:
        outputs = self._outputs
        if self._own.is_own(call):
            return False
        says = output.PRINT in self._facts.called(call) or outputs.writes(call)
        return says or outputs.opens(call) or outputs.services.starts(call) or self.is_writer(call)

    def _calls(self, unit: Function) -> Iterator[ast.Call]:
        folders = self.folders(unit)
        return (call for call in self._facts.own(unit).of(ast.Call) if call not in folders)

    def _says(self, unit: Function) -> bool:
        return any(map(self.is_spoken, self._calls(unit)))

    def _entered(self, unit: Function) -> Iterator[Function]:
        return (target for call in self._calls(unit) for target in self._facts.targets(call))

    # --- and nothing else -------------------------------------------------------------------------------------------

    def only_speaks(self, unit: Function) -> bool:
        """Whether a function writes and changes nothing that anyone else sees."""
        if unit not in self._only:
            self._only[unit] = False  # while it is being asked: recursion proves nothing
            alone = unit.owner is not None and self._counts_alone(unit.owner)
            self._only[unit] = (
                not is_marked(unit.node)  # it asks for itself who speaks
                and self.speaks(unit)
                and not self._effects.changes(unit, own=alone)
                and not needs_all(self._conversion, unit.node)
            )
        return self._only[unit]

    def _counts_alone(self, cls: Class) -> bool:
        """Whether a class stands before a writer, and only for that keeps what its methods change of it."""
        if cls not in self._fronts:
            methods = (value.unit for name in cls.names for value in cls.lookup(name) if name != "__init__")
            speaking = (unit for unit in methods if isinstance(unit, Function) and self.speaks(unit))
            fronts = self._outputs.fronts
            self._fronts[cls] = fronts.writer(cls) is not None and fronts.counts_alone(cls, speaking)
        return self._fronts[cls]

    def only_writes(self, cls: Class) -> bool:
        """Whether the objects of a class are there to write: a method does, and none changes anything else."""
        if cls not in self._classes:
            self._classes[cls] = False  # while it is being asked
            units = [
                member.unit for name in cls.names for member in cls.lookup(name) if isinstance(member.unit, Function)
            ]
            made = [unit for unit in units if unit.name == "__init__"]
            self._classes[cls] = (
                bool(made)
                and cls.library_bases() <= {"builtins.object"}
                and any(self.outputs_in(unit) for unit in units)
                and not any(self._effects.changes(unit, own=True) for unit in units)
                and not any(needs_all(self._conversion, unit.node) for unit in units)
                and not any(_gives(unit) and not self._outputs.fronts.hands_on(unit) for unit in units)
            )
        return self._classes[cls]

    def outputs_in(self, unit: Function) -> bool:
        """Whether a function itself writes files."""
        return any(map(self._outputs.writes, self._facts.own(unit).of(ast.Call)))

    # --- objects that only write ------------------------------------------------------------------------------------

    def is_writer(self, call: ast.Call) -> bool:
        """Whether a call makes a writer."""
        return self._is_librarys(call) or self._is_own(call)

    def _is_librarys(self, call: ast.Call) -> bool:
        is_made = call in origins(self._facts.values(call), Role.WRITER)
        return is_made and not self._outputs.is_row_writer(call) and not self._outputs.services.starts(call)

    def _is_own(self, call: ast.Call) -> bool:
        """`Logger(folder)`: an object of a class of the project that does nothing but write."""
        made = [v for v in self._facts.values(call) if v.origin is call and v.role is Role.INSTANCE]
        classes = [value.unit for value in made if isinstance(value.unit, Class)]
        return len(classes) == 1 and len(self._facts.values(call)) == 1 and self.only_writes(classes[0])


def _gives(unit: Function) -> bool:
    """Whether a function gives something back."""
    return any(isinstance(node, (ast.Return, ast.Yield)) and node.value is not None for node in own_nodes(unit.node))
