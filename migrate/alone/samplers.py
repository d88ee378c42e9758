"""Samplers that share the data out: prepare does that, and the order of the samples stays what it was."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.companions import companions, is_given_above, is_under_its_key, made_by
from migrate.alone.dealing import told_epoch
from migrate.alone.handed import entrances
from migrate.alone.making import Making
from migrate.alone.numbers import SHOWING, of_all
from migrate.alone.orders import Batches, Order, is_same_between
from migrate.alone.scales import BATCHED, LOADERS
from migrate.analysis.syntax import argument_at, is_none, keyword_of, walk
from migrate.programs.marker import ACCELERATOR
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.dealing import Dealing
    from migrate.alone.pen import Pen
    from migrate.alone.world import World
    from migrate.analysis.units import Unit

_SEVERAL = f"{ACCELERATOR}.num_processes > 1"
_LOADER_SHUFFLE = 2  # DataLoader(dataset, batch_size, shuffle)
_ALWAYS = ast.Constant(True)
#: What reads a name, or an option, and does nothing else.
_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.UnaryOp, ast.Subscript)
_SHUFFLE, _SEED = 3, 4  # DistributedSampler(dataset, num_replicas, rank, shuffle, seed, drop_last)


class Samplers:
    """What becomes of the samplers of a project."""

    def __init__(self, world: World, dealing: Dealing) -> None:
        self._world = world
        self._dealing = dealing
        self._making = Making(world)
        loaders = list(self._making.loaders())
        orders = {loader: order for loader in loaders if (order := self._order_of(loader))}
        self._orders = orders
        self._fixed = {order.call for loader, order in orders.items() if self._is_never_told(loader, order)}
        self._fixed |= {
            call for loader in self._making.loaders() if loader not in orders for call in self._chosen(loader)
        }
        self._orders = {loader: order for loader, order in orders.items() if order.call not in self._fixed}
        self._replaced = {order.call for order in self._orders.values()}
        self._replaced |= {order.batches.call for order in self._orders.values() if order.batches is not None}

    @property
    def seeds(self) -> dict[ast.Call, str]:
        """The seed of each loader whose order is drawn for every epoch."""
        return {loader: order.seed for loader, order in self._orders.items() if order.shuffles}

    # --- what is there ----------------------------------------------------------------------------------------------

    def _order_of(self, loader: ast.Call) -> Order | None:
        """The order of a loader that a DistributedSampler gives it in every case."""
        if any(isinstance(each, ast.Starred) for each in loader.args):
            return None  # which may hold its shuffle, too
        batched = keyword_of(loader, "batch_sampler")
        given = keyword_of(loader, "sampler")
        batches = self._batches(loader, batched.value) if batched is not None else None
        sampler = given.value if given is not None else argument_at(batches.call, 0, "sampler") if batches else None
        call = self._making.only_call(sampler)
        if call is None or not self._making.is_distributed(call):
            return None
        shuffles = argument_at(call, _SHUFFLE, "shuffle")
        if shuffles is not None and not isinstance(shuffles, ast.Constant):
            if not self._is_said_alike(call, loader, shuffles):
                return None
        seed = argument_at(call, _SEED, "seed")
        shuffle = str(bool(shuffles.value)) if isinstance(shuffles, ast.Constant) else ast.unparse(shuffles or _ALWAYS)
        return Order(call, "0" if seed is None else ast.unparse(seed), shuffle, batches)

    def _is_said_alike(self, call: ast.Call, loader: ast.Call, shuffles: ast.expr) -> bool:
        """Whether what decides about the order of a sampler is the same where the loader is made: `shuffle=shuffle`."""
        tree = self._world.facts.tree(call)
        if loader not in tree or tree.function(call) is not tree.function(loader):
            return False
        is_plain = all(isinstance(node, (*_PLAIN, ast.expr_context, ast.unaryop)) for node in ast.walk(shuffles))
        return is_plain and is_same_between(tree.function(call), call, call.lineno, loader.lineno + 1)

    def _batches(self, loader: ast.Call, given: ast.expr) -> Batches | None:
        """The batches of a loader, where their size can be written at the loader just as well."""
        call, facts = self._making.only_call(given), self._world.facts
        if len(loader.args) > 1:
            return None  # sizes that say nothing, and would stand there twice
        if call is None or not facts.called(call) & BATCHED or facts.unit(call) is not facts.unit(loader):
            return None
        size, drops_last = (argument_at(call, at, name) for at, name in ((1, "batch_size"), (2, "drop_last")))
        function, below = facts.tree(call).function(call), loader.lineno + 1
        if size is None or drops_last is None or not is_same_between(function, call, call.lineno, below):
            return None
        reads = [n for n in ast.walk(facts.tree(call).root) if isinstance(given, ast.Name) and _reads(n, given.id)]
        return Batches(call, size, drops_last) if all(n is given for n in reads) or given is call else None

    def _chosen(self, loader: ast.Call) -> set[ast.Call]:
        """The DistributedSamplers of a loader that an option gives another sampler, where nobody tells it the epoch."""
        given = keyword_of(loader, "sampler")
        behind = self._making.alive(given.value) if given is not None else []
        calls = [call for call in behind if isinstance(call, ast.Call) and self._making.is_distributed(call)]
        if len(behind) < 2 or any(not isinstance(e, (ast.Call, ast.Constant)) for e in behind):
            return set()
        if not self._dealing.calls.keys().isdisjoint(behind):
            return set(calls)  # in a branch that stays, with what tells it the epoch
        return set() if loader in self._told() or self._told_samplers() & set(calls) else set(calls)

    def obstacles(self) -> Iterator[Refusal]:
        """Samplers that stay, and loaders that would be shuffled in another way than they were."""
        facts = self._world.facts
        for use in facts.calls_anywhere:
            if use.unit.module not in self._world.modules or id(use.node) in self._world.dead:
                continue
            if self._making.is_distributed(use.node) and use.node not in self._replaced | self._fixed:
                yield _refused(use.node, "what becomes of this sampler is not known")
            elif facts.called(use.node) & LOADERS and use.node not in self._orders and self._beside(use.unit):
                shuffle = argument_at(use.node, _LOADER_SHUFFLE, "shuffle")
                is_drawn = shuffle is not None and not (isinstance(shuffle, ast.Constant) and not shuffle.value)
                if is_drawn and not self._is_idle(use.node):
                    yield _refused(use.node, "this loader draws its order in another way than a DistributedSampler")
        for loader in dict.fromkeys(self._repeated_beside()):
            yield _refused(loader, "nobody tells the sampler of this loader the epoch, in code that others share")
        for loader, seed in self.seeds.items():
            if len({seed, *self._beside(facts.unit(loader))}) > 1:
                yield _refused(loader, "the samplers have different seeds")
                return

    def _is_idle(self, loader: ast.Call) -> bool:
        """Whether the name that a loader is given is never read."""
        tree = self._world.facts.tree(loader)
        statement = tree.parents[loader]
        names = {ast.unparse(target) for target in statement.targets} if isinstance(statement, ast.Assign) else set()
        reads = (n for n in tree.nodes if isinstance(n, ast.expr) and isinstance(getattr(n, "ctx", None), ast.Load))
        return bool(names) and not any(ast.unparse(node) in names for node in reads)

    def _beside(self, unit: Unit) -> set[str]:
        """The seeds of the loaders in programs that a unit belongs to."""
        facts = self._world.facts
        mine = entrances(facts, unit)
        pairs = ((seed, entrances(facts, facts.unit(loader))) for loader, seed in self.seeds.items())
        return {seed for seed, others in pairs if mine is None or others is None or mine & others}

    # --- edits ------------------------------------------------------------------------------------------------------

    def is_made(self, statement: ast.stmt) -> bool:
        """`sampler = DistributedSampler(data)`, where the loaders no longer take it."""
        return isinstance(statement, ast.Assign) and all(part in self._replaced for part in made_by(statement.value))

    def is_warned(self, statement: ast.stmt) -> bool:
        """`if len(data) % world_size != 0: print(...)`, of data that are not repeated any more."""
        if not isinstance(statement, ast.If) or statement.orelse or not all(map(_tells, statement.body)):
            return False
        test = statement.test
        part = test.left if isinstance(test, ast.Compare) else test
        if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Mod) or not self._world.is_size(part.right):
            return False
        of = {f"len({ast.unparse(call.args[0])})" for call in self._replaced | self._fixed if call.args}
        return ast.unparse(part.left) in of

    def rewrite(self, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
        """A loader shuffles itself; `set_epoch` is asked of the loader."""
        if isinstance(node, ast.Attribute) and node.attr == "dataset" and (loader := self._loader_of(node.value)):
            pen.rewrite(node.value, loader)
            return []
        if not isinstance(node, ast.Call):
            return None
        if node in self._fixed:
            return self._alone(pen, node)
        if self._counts_evaluated(node) and (loader := self._loader_of(node.args[0])):
            pen.rewrite(node.args[0], f"{loader}.dataset")
            return []
        if node in self._replaced:
            pen.rewrite(node, "None")  # of `one, other = DistributedSampler(train), DistributedSampler(test)`
            return []
        if (order := self._orders.get(node)) is not None:
            return self._loader(pen, node, order)
        if (sampler := told_epoch(node)) is not None and (loader := self.loader_at(sampler)) is not None:
            pen.rewrite(sampler, loader)
            return [*node.args]
        return None

    def _counts_evaluated(self, node: ast.Call) -> bool:
        """`len(sampler)` of data in order, of which an evaluation comes to all; a training counts its own share."""
        if len(node.args) != 1 or "builtins.len" not in self._world.facts.called(node):
            return False
        calls = set(self._making.alive(node.args[0]))
        return not any(order.shuffles for order in self._orders.values() if order.call in calls)

    def _loader_of(self, sampler: ast.expr) -> str | None:
        """The loader of a sampler that goes away: one process gives it all of the data."""
        if not isinstance(sampler, (ast.Name, ast.Attribute)):
            return None
        calls = set(self._making.alive(sampler))
        return self.loader_at(sampler) if calls and calls <= self._replaced else None

    def _alone(self, pen: Pen, node: ast.Call) -> list[ast.AST]:
        """`DistributedSampler(data, num_replicas=1, rank=0)`: the order of an evaluation, in full."""
        for position, (name, value) in enumerate((("num_replicas", "1"), ("rank", "0")), start=1):
            given = argument_at(node, position, name)
            if given is None:
                pen.add_keyword(node, name, value)
            else:
                pen.rewrite(given, value)
        return [a for a in node.args if a not in node.args[1:3]]

    def _loader(self, pen: Pen, node: ast.Call, order: Order) -> list[ast.AST]:
        if order.batches is not None:
            return self._batched(pen, node, order, order.batches)
        given, shuffle = keyword_of(node, "sampler"), argument_at(node, _LOADER_SHUFFLE, "shuffle")
        assert given is not None
        if shuffle is not None:
            pen.remove_argument(node, given)
            if not order.is_said_by(shuffle):
                pen.rewrite(shuffle, order.shuffle)
        elif order.shuffles:
            pen.replace_argument(node, given, order.shuffle, "shuffle")
        else:
            pen.remove_argument(node, given)
        done = (given, shuffle, keyword_of(node, "shuffle"))
        return [part for part in (*node.args, *node.keywords) if part not in done]

    def _batched(self, pen: Pen, node: ast.Call, order: Order, batches: Batches) -> list[ast.AST]:
        """`batch_sampler=...` gives way to the size of the batches, and to what the sampler did."""
        given = keyword_of(node, "batch_sampler")
        assert given is not None
        pen.replace_argument(node, given, ast.unparse(of_all(self._world, batches.size)), "batch_size")
        if order.shuffles:
            pen.add_keyword(node, "shuffle", order.shuffle)
        if not (isinstance(batches.drops_last, ast.Constant) and not batches.drops_last.value):
            pen.add_keyword(node, "drop_last", ast.unparse(batches.drops_last))
        return [*node.args, *(k for k in node.keywords if k is not given)]

    def kept(self, branch: ast.If, stays: list[ast.stmt]) -> list[str]:
        """What a branch that goes away tells a sampler that does not: `if distributed: sampler.set_epoch(epoch)`.

        One process tells it nothing, and sees the data in the order of the first epoch again and again.
        """
        told: dict[str, None] = {}
        for node in (n for part in (*branch.body, *branch.orelse) if part not in stays for n in ast.walk(part)):
            if isinstance(node, ast.Call) and len(node.args) == 1 and (sampler := told_epoch(node)) is not None:
                if (loader := self.loader_at(sampler)) is not None:
                    told[f"{loader}.set_epoch({_of_several(node.args[0])})"] = None
        return list(told)

    def loader_at(self, sampler: ast.expr) -> str | None:
        """What to write, where a sampler is read, for the loader that took it."""
        facts = self._world.facts
        if isinstance(sampler, ast.Attribute) and sampler.attr == "sampler":
            if made := facts.loaders(facts.values(sampler.value)):  # else it is an attribute of that name
                return ast.unparse(sampler.value) if made & self._sources_of_loaders() else None
        calls = {each for each in self._making.alive(sampler) if not is_none(each)}
        wanted = {loader for loader, order in self._orders.items() if {order.call} == calls}
        function = facts.tree(sampler).function(sampler)
        if isinstance(sampler, ast.Subscript):
            return self._under_key(function, sampler, wanted)
        beside = companions(facts, sampler)
        for node in walk(function) if beside is None else beside:
            if isinstance(node, (ast.Name, ast.Attribute)) and self._is_loader(node, wanted):
                return ast.unparse(node) if is_given_above(function, node, sampler) else None
        return self._beside_it(sampler, wanted) if isinstance(sampler, ast.Attribute) else None

    def _under_key(self, function: ast.AST, sampler: ast.Subscript, wanted: set[ast.Call]) -> str | None:
        """The loader that a dictionary has under the key of its sampler: `loaders["train"]`."""
        facts, key = self._world.facts, ast.unparse(sampler.slice)
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == key:
                made = {facts.source(origin) for origin in facts.loaders(facts.values(node))}
                if made and made <= wanted and all(is_under_its_key(facts.tree(loader), loader) for loader in wanted):
                    return ast.unparse(node) if is_given_above(function, node.value, sampler) else None
        return None

    def _beside_it(self, sampler: ast.Attribute, wanted: set[ast.Call]) -> str | None:
        """The loader that an object has beside its sampler: `self.loader`, where a method reads that alone."""
        facts = self._world.facts
        holders = {value.origin for value in facts.values(sampler.value) if value.origin is not None}
        held = {name: values for holder in holders for name, values in facts.holding(holder).items()}
        made = {name: {facts.source(origin) for origin in facts.loaders(values)} for name, values in held.items()}
        found = [name for name, loaders in made.items() if loaders and loaders <= wanted and name.isidentifier()]
        return f"{ast.unparse(sampler.value)}.{found[0]}" if len(found) == 1 else None

    def _is_loader(self, node: ast.Name | ast.Attribute, wanted: set[ast.Call]) -> bool:
        facts = self._world.facts
        made = {facts.source(origin) for origin in facts.loaders(facts.values(node))}
        if made:
            return made <= wanted
        parent = facts.tree(node).parents.get(node)
        return isinstance(parent, ast.Assign) and node in parent.targets and parent.value in wanted

    def _may_be(self, node: ast.Name | ast.Attribute, loader: ast.Call) -> bool:
        """Whether a name is a loader in one of the scripts that share the code."""
        facts = self._world.facts
        made = {facts.source(origin) for origin in facts.loaders(facts.values(node))}
        return loader in made or self._is_loader(node, {loader})

    def _sources_of_loaders(self) -> set[ast.AST]:
        facts = self._world.facts
        return {t for loader in self._orders for t in (loader, *facts.twins(loader))}

    def repeated(self) -> list[tuple[ast.For, str]]:
        """Loops over loaders that draw the same order each time, as nobody tells their sampler the epoch."""
        silent = self._silent()
        found = []
        for module in self._world.modules:
            for node in self._world.facts.tree(module.tree).nodes:
                if isinstance(node, ast.For) and id(node) not in self._world.dead:
                    for inner in ast.walk(node.iter):
                        if isinstance(inner, (ast.Name, ast.Attribute)) and self._is_loader(inner, silent):
                            found.append((node, ast.unparse(inner)))
                            break
        return found

    def _silent(self) -> set[ast.Call]:
        told = self._told()
        return {loader for loader, order in self._orders.items() if order.shuffles and loader not in told}

    def _repeated_beside(self) -> Iterator[ast.Call]:
        """Such loaders that a loop runs over that cannot be told: with others, or in a file that does not change."""
        facts, silent = self._world.facts, self._silent()
        for module in facts.editable if silent else ():
            for node in facts.tree(module.tree).nodes:
                if isinstance(node, (ast.For, ast.comprehension)):
                    made = {facts.source(origin) for origin in facts.loaders(facts.values(node.iter))}
                    if made & silent and (module not in self._world.modules or not made <= silent):
                        yield from (loader for loader in silent if loader in made)

    def _is_never_told(self, loader: ast.Call, order: Order) -> bool:
        """Whether a loader that nobody trains on draws one order again and again: it need not be prepared."""
        if not order.shuffles or order.batches is not None or loader in self._told() or self._is_shared(order.call):
            return False
        over = [
            node
            for module in self._world.modules
            for node in self._world.facts.tree(module.tree).nodes
            if isinstance(node, ast.For)
            and any(isinstance(n, (ast.Name, ast.Attribute)) and self._may_be(n, loader) for n in ast.walk(node.iter))
        ]
        return bool(over) and not any(
            isinstance(n, ast.Attribute) and n.attr == "backward" for node in over for n in ast.walk(node)
        )

    def _told_samplers(self) -> set[ast.expr]:
        """What is told the epoch by a name of its own."""
        told = (told_epoch(use.node) for use in self._world.facts.calls_anywhere)
        return {call for sampler in told if sampler is not None for call in self._making.behind(sampler)}

    def _is_shared(self, sampler: ast.Call) -> bool:
        """Whether several loaders take their order from one sampler."""
        return sum(order.call is sampler for order in self._orders.values()) > 1

    def _told(self) -> set[ast.AST]:
        """The loaders whose sampler is told the epoch."""
        facts = self._world.facts
        found: set[ast.AST] = set()
        for use in facts.calls_anywhere:
            if (sampler := told_epoch(use.node)) is None:
                continue
            if isinstance(sampler, ast.Attribute) and sampler.attr == "sampler":
                found |= {facts.source(o) for o in facts.loaders(facts.values(sampler.value))}
            calls = set(self._making.behind(sampler))
            found |= {loader for loader, order in self._orders.items() if order.call in calls}
        return found


def _of_several(epoch: ast.expr) -> str:
    """The epoch that several processes are told, and one is not."""
    text = ast.unparse(epoch)
    return f"{f'({text})' if isinstance(epoch, (ast.IfExp, ast.Lambda)) else text} if {_SEVERAL} else 0"


def _refused(node: ast.AST, why: str) -> Refusal:
    return Refusal(node, "MIG113", why, "give each DataLoader a DistributedSampler of its own, all with one seed")


def _tells(statement: ast.stmt) -> bool:
    """Whether a statement only tells people something."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in SHOWING


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
