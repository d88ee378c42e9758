"""loading: checkpoints of the original still load.

    model.load_state_dict(torch.load(path))   ->   model.load_state_dict(torch.load(path, map_location="cpu"))
    (after prepare)                           ->   accelerator.unwrap_model(model).load_state_dict(...)
    (a file written before)                   ->   accelerator.wait_for_everyone() first
    (a file removed that all have read)       ->   accelerator.wait_for_everyone() first
    (a lambda onto the gpu)                   ->   torch.load(path, map_location=accelerator.device)
    (a whole model)                           ->   torch.load(path, map_location=accelerator.device)

Keys stay plain; where the original loaded into a wrapped model, a `module.` prefix is taken off first, and within the
keys of a layer that was wrapped (`model.features = DataParallel(model.features)`). Where a program takes from a file
what the model has under the same key, that is done above it, or it would find nothing. Code beside the training that
still wraps a model of the same class loads into the model inside, `model.module.load_state_dict(...)`. What has no
name is stripped in place, `{key.removeprefix('module.'): value for key, value in torch.load(path).items()}`. Code that
cuts the prefix off by its length, `key[7:]`, is told: of plain keys it would leave the wrong half. Without
map_location every process would load onto the GPU that the file was written from. Where an object of the project keeps
what it is given of a checkpoint (an average of the weights), that is loaded onto the GPU of the process, and the rest
with it.
Safe: load_state_dict copies into the parameters where they are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import argument_at, arguments
from migrate.analysis.units import Function
from migrate.programs.device.lambdas import is_location
from migrate.programs.output.guards import has_accelerator
from migrate.programs.output.waits import waits
from migrate.programs.reach.forwards import is_own_object
from migrate.programs.values.asked_keys import asked_keys
from migrate.programs.values.cut_keys import cut_keys
from migrate.programs.values.sources import received
from migrate.rules.layout import WIDTH, place
from migrate.rules.placing import wrappers
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


_STRIP = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"
_PLAIN = "{key.removeprefix('module.'): value for key, value in {it}.items()}"
_NO_PREFIX = "the keys of what is saved do not begin with `module.` any more"
_MODULE = "'module.'"
_KEY = "key.replace('{path}.module.', '{path}.')"


@rule("MIG116", optional=True)
def loading(conversion: Conversion, draft: Draft) -> None:
    """Load what goes into load_state_dict onto the CPU first."""
    facts = conversion.facts
    loads = [use for use in facts.method_calls("load_state_dict") if use.unit in conversion.units]
    read = [argument for use in loads for argument in arguments(use.node)]
    read += [asked for unit in {use.unit for use in loads} for _, asked in asked_keys(facts, unit)]
    loaded = {value.origin for each in read for value in facts.values(each) if value.role is Role.CHECKPOINT}
    for use in conversion.uses:
        if use.node not in loaded or "torch.load" not in facts.called(use.node):
            continue
        if len(use.node.args) > 1 or any(keyword.arg in ("map_location", None) for keyword in use.node.keywords):
            continue
        if Role.CHECKPOINT in roles(facts.values(use.node)):
            is_there = _is_kept(conversion, use.node) and has_accelerator(conversion, use.node)
            own = f"{{'cuda:0': str({conversion.access.name(use.node)}.device)}}" if is_there else "'cpu'"
            draft.add_keyword(use.node, "map_location", draft.quoted(use.node, own))
    _onto_the_device(conversion, draft)
    _whole_models(conversion, draft)
    _strip_prefixes(conversion, draft)
    _load_inside(conversion, draft)
    if wrappers(conversion) or conversion.program.handed is not None:
        for cut in cut_keys(facts):
            draft.note(
                cut,
                _NO_PREFIX,
                f"{ast.unparse(cut.value)}.removeprefix({draft.quoted(cut, _MODULE)}) is right for both",
            )
    _pickled(conversion, draft)
    for statement in waits(conversion):
        draft.before(statement, f"{conversion.access.name(statement)}.wait_for_everyone()")


def _is_kept(conversion: Conversion, load: ast.Call) -> bool:
    """Whether an object of the project keeps a part of a checkpoint as it is: `self.shadow = state`, in an average.

    What PyTorch's own load_state_dict copies into may be anywhere; this must lie where the program goes on with it.
    """
    facts = conversion.facts
    for use in conversion.uses:
        for unit in facts.targets(use.node):
            for name, given in received(use.node, unit).items():
                if any(v.role is Role.CHECKPOINT and v.origin is load for v in facts.values(given)):
                    if any(_keeps(node, name) for node in facts.own(unit)):
                        return True
    return False


def _keeps(node: ast.AST, name: str) -> bool:
    """`self.shadow = name`, or a part of it."""
    if not isinstance(node, ast.Assign) or not any(isinstance(target, ast.Attribute) for target in node.targets):
        return False
    part = node.value
    while isinstance(part, ast.Subscript):
        part = part.value
    return isinstance(part, ast.Name) and part.id == name


def _onto_the_device(conversion: Conversion, draft: Draft) -> None:
    """`lambda storage, loc: storage.cuda(gpu)` names the device that is the accelerator's now."""
    for use in conversion.uses:
        for given in arguments(use.node):
            if not isinstance(given, ast.Lambda) or not is_location(conversion.facts, given):
                continue
            goes = given.body.func if isinstance(given.body, ast.Call) else None
            if isinstance(goes, ast.Attribute) and goes.attr == "cuda" and has_accelerator(conversion, use.node):
                draft.rewrite(given, f"{conversion.access.name(use.node)}.device")


def _whole_models(conversion: Conversion, draft: Draft) -> None:
    """`model = torch.load(path)` in the place of a model: it runs where the batches of the process are."""
    facts = conversion.facts
    for unit in conversion.ordered_units:
        bindings = facts.bindings_in(unit)
        names = {b.target for b in bindings if origins(b.values, Role.MODEL) & conversion.program.model_origins}
        for binding in bindings:
            call = getattr(binding.statement, "value", None)
            if binding.target not in names or not isinstance(call, ast.Call) or "torch.load" not in facts.called(call):
                continue
            is_told = len(call.args) > 1 or any(keyword.arg in ("map_location", None) for keyword in call.keywords)
            if not is_told and has_accelerator(conversion, call):
                draft.add_keyword(call, "map_location", f"{conversion.access.name(call)}.device")


def _strip_prefixes(conversion: Conversion, draft: Draft) -> None:
    """Where the original loaded into a DataParallel model, its files may have keys with `module.`; now they must go."""
    facts = conversion.facts
    calls = wrappers(conversion)
    wrapped = {origin for call in calls for origin in origins(facts.values(call.args[0]), Role.MODEL)}
    layers = _wrapped_layers(conversion, calls)
    asking: dict[Unit, list[tuple[ast.stmt, ast.expr]]] = {}
    for name in ("state_dict", "load_state_dict"):
        for use in facts.method_calls(name):
            made, state = origins(facts.receiver(use.node), Role.MODEL), _state(use.node)
            inside, is_whole = sorted({path for origin, path in layers if origin in made}), bool(made & wrapped)
            if use.unit not in conversion.units or not (inside or is_whole):
                continue
            if not inside and _is_below(facts, use, [c for c in calls if origins(facts.values(c), Role.MODEL) & made]):
                continue
            taken: Iterable[tuple[ast.stmt, ast.expr]] = ()
            if name == "state_dict" and _is_from_outside(use) and use.unit not in asking:
                asking[use.unit] = taken = list(asked_keys(facts, use.unit))
            elif name == "load_state_dict" and state is not None:
                is_done = asking.get(use.unit) and Role.CHECKPOINT not in roles(facts.values(state))
                taken = [] if is_done else [(facts.tree(use.node).statement(use.node), state)]
            for statement, kept in taken:
                _take_off(conversion, draft, use, kept, statement, inside, whole=is_whole)


def _is_from_outside(use: Use) -> bool:
    """Whether the keys are those that a model has from outside, `model.state_dict()`; not for a method of its own."""
    model = use.node.func.value if isinstance(use.node.func, ast.Attribute) else None
    return model is not None and not (isinstance(use.unit, Function) and is_own_object(use.unit, model))


def _is_below(facts: Facts, use: Use, calls: Sequence[ast.Call]) -> bool:
    """Whether a model is wrapped below where it loads, and only there: what is loaded had plain keys all along."""
    model = use.node.func.value if isinstance(use.node.func, ast.Attribute) else None
    loops = set(facts.tree(use.node).loops(use.node))
    return (
        model is not None
        and all(facts.unit(call) is use.unit and call.lineno > use.node.lineno for call in calls)
        and not any(loops.intersection(facts.tree(call).loops(call)) for call in calls)
        and _is_wrapped(facts, use.node, model) is False
    )


def _take_off(
    conversion: Conversion, draft: Draft, use: Use, state: ast.expr, above: ast.stmt, inside: list[str], *, whole: bool
) -> None:
    """Above a statement, or where it is read, take prefixes off the keys of a state; say so where neither can be."""
    facts = conversion.facts
    calls = [node for node in ast.walk(state) if isinstance(node, ast.Call)]
    is_kept = isinstance(state, (ast.Name, ast.Subscript, ast.Attribute)) and not calls
    if is_kept and "torch" in use.unit.module.names:
        text = ast.unparse(state)
        lines = [_renamed(facts, above, text, path) for path in inside]
        lines += [f"{_STRIP}({text}, 'module.')"] if whole else []
        for line in lines:
            if not _is_said(facts, above, line):
                draft.before(above, draft.quoted(use.node, line))
    elif whole and not inside and any("torch.load" in facts.called(call) for call in calls if _is_read(state, call)):
        draft.wrap(state, draft.quoted(use.node, _PLAIN))
    else:
        draft.note(
            use.node,
            "files that the original wrote on GPUs have keys "
            + (f"with `{inside[0]}.module.`" if inside else "that begin with `module.`"),
            "strip them: "
            + (f"{{{_KEY.format(path=inside[0])}: ..." if inside else "{key.removeprefix('module.'): value")
            + " for key, value in state.items()}",
        )


def _state(call: ast.Call) -> ast.expr | None:
    """What `load_state_dict` is given."""
    return argument_at(call, 0, "state_dict")


def _is_read(state: ast.expr, load: ast.Call) -> bool:
    """Whether what is loaded is what a file has, or a part of it: `torch.load(path)["net"]`."""
    while isinstance(state, (ast.Subscript, ast.Attribute)):
        state = state.value
    return state is load


def _load_inside(conversion: Conversion, draft: Draft) -> None:
    """Code that does not train goes on wrapping its model, and loads what the training saves: plain keys now."""
    facts = conversion.facts
    if not wrappers(conversion):
        return
    trained = {made for origin in conversion.program.model_origins for made in _made_by(facts, origin)}
    others = (loop for loop in conversion.loops.training if loop not in conversion.program.training)
    training = {loop.unit.module for loop in others}  # what each of these loads is for its own conversion to say
    for use in facts.method_calls("load_state_dict"):
        model = use.node.func.value if isinstance(use.node.func, ast.Attribute) else None
        state = _state(use.node)
        if use.unit in conversion.units or not facts.is_editable(use.unit) or model is None or state is None:
            continue
        if use.unit.module in training:
            continue
        made = {each for origin in origins(facts.values(model), Role.MODEL) for each in _made_by(facts, origin)}
        is_loaded = any(value.role is Role.CHECKPOINT for value in facts.values(state))
        if not (made & trained and is_loaded):
            continue
        is_wrapped = _is_wrapped(facts, use.node, model)
        if is_wrapped:
            draft.wrap(model, "{it}.module")
            _take_off(conversion, draft, use, state, facts.tree(use.node).statement(use.node), [], whole=True)
        elif is_wrapped is None:
            draft.note(
                use.node,
                _NO_PREFIX,
                f"load before {ast.unparse(model)} is wrapped, or into {ast.unparse(model)}.module",
            )


def _made_by(facts: Facts, origin: ast.AST) -> set[object]:
    """The classes that a model is made an object of."""
    called = facts.values(origin.func) if isinstance(origin, ast.Call) else ()
    return {value.unit for value in called if value.role is Role.CLASS and value.unit is not None}


def _is_wrapped(facts: Facts, call: ast.Call, model: ast.expr) -> bool | None:
    """Whether a name holds a DataParallel where a method of it is called; None: it may."""
    tree, text = facts.tree(call), ast.unparse(model)
    before = [
        b.statement
        for b in facts.bindings_in(facts.unit(call))
        if b.target == text and b.statement.lineno < call.lineno and not _is_other_side(facts, b.statement, call)
    ]
    wrapping = [s for s in before if any(_wraps(facts, node) for node in ast.walk(s))]
    if not wrapping:
        return False
    last = max(before, key=lambda statement: statement.lineno)
    is_certain = last is wrapping[-1] and tree.in_block(call, tree.block(last)) is not None
    return True if is_certain else None


def _is_other_side(facts: Facts, statement: ast.AST, call: ast.Call) -> bool:
    """Whether a statement stands in a branch that is not taken where a call is made."""
    tree = facts.tree(call)
    above = (node for node in tree.up(statement) if isinstance(node, ast.If))
    return any(tree.in_block(statement, n.body) and tree.in_block(call, n.orelse) for n in above)


def _wraps(facts: Facts, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(facts.called(node) & DATA_PARALLEL)


def _renamed(facts: Facts, statement: ast.stmt, text: str, path: str) -> str:
    """`state = {key.replace(...): value for key, value in state.items()}`."""
    at = place(facts.file(statement), statement)
    items = f"{_KEY.format(path=path)}: value for key, value in {text}.items()"
    is_short = at.column + len(text) + len(items) + 5 <= WIDTH
    return f"{text} = {{{items}}}" if is_short else f"{text} = {{\n{at.unit}{items}\n}}"


def _wrapped_layers(conversion: Conversion, calls: Iterable[ast.Call]) -> set[tuple[ast.AST, str]]:
    """`model.features = DataParallel(model.features)`: where the model was made, and `features`."""
    facts = conversion.facts
    return {
        (origin, call.args[0].attr)
        for call in calls
        if isinstance(call.args[0], ast.Attribute)
        for origin in origins(facts.values(call.args[0].value), Role.MODEL)
    }


def _pickled(conversion: Conversion, draft: Draft) -> None:
    """`net = checkpoint["net"]`, which the original wrapped and saved as a whole."""
    facts = conversion.facts
    for call in wrappers(conversion):
        text = ast.unparse(call.args[0])
        for binding in facts.bindings_in(facts.unit(call)):
            value = getattr(binding.statement, "value", None)
            if binding.target != text or not isinstance(value, (ast.Name, ast.Subscript)):
                continue
            if binding.statement.lineno < call.lineno and Role.CHECKPOINT in _roles_of_whole(facts, value):
                what = (
                    "files that the original wrote on GPUs hold the model in DataParallel, which goes on using all GPUs"
                )
                draft.note(binding.statement, what, f"take it out: {text} = getattr({text}, 'module', {text})")


def _roles_of_whole(facts: Facts, node: ast.expr) -> set[Role]:
    """What the object may be that a part is taken from, with the part."""
    whole = node.value if isinstance(node, ast.Subscript) else node
    return roles(facts.values(whole)) | roles(facts.values(node))


def _is_said(facts: Facts, statement: ast.stmt, line: str) -> bool:
    """Whether a line stands above a statement, where it was put when processes were taken out of the program."""
    block = facts.tree(statement).block(statement)
    above = block[: next(index for index, each in enumerate(block) if each is statement)]
    wanted = ast.unparse(ast.parse(line))
    return any(ast.unparse(each) == wanted for each in above)
