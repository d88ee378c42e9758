"""Every process holds the whole model; gradients are averaged in backward (PyTorch's DistributedDataParallel)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from runtime.collectives import broadcast_tensors
from runtime.errors import BackwardError
from runtime.messages import BUFFERS
from runtime.strategies.base import Ground, Strategy, has_distributed_tensors
from runtime.strategies.gradients import are_equal_everywhere, average_gradients, counts_of_gradients, unequal
from runtime.strategies.hooks import register_hook
from runtime.strategies.statistics import with_joined_statistics
from runtime.strategies.unaveraged import Unaveraged
from runtime.telling import tell
from runtime.world import World

# torch 2.13 renamed the argument
_BUFFERS = (
    "forward_sync_buffers"
    if "forward_sync_buffers" in inspect.signature(DistributedDataParallel.__init__).parameters
    else "broadcast_buffers"
)

_COUNTED = "mark a variable ready only once"
_WAY_OUT = (
    "A layer that a reentrant checkpoint computes twice is averaged right with use_reentrant=False, or with "
    "Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])."
)


_UNFINISHED = "Expected to have finished reduction in the prior iteration"
_SAYING_SO = "DistributedDataParallelKwargs(find_unused_parameters=True)"
_ADAPTS_NOT = (
    f"Freeze what is not trained (requires_grad_(False)), or leave out static_graph, gradient_as_bucket_view and "
    f"comm_hook, and say that this is meant: Accelerator(kwargs_handlers=[{_SAYING_SO}])."
)
_FREEZE = "Freeze what is not trained (requires_grad_(False))"
_RELEASED = "were frozen when it was prepared, and are trained now"
_INSIDE = "module."  # before the keys of a wrapped model


class Replica(DistributedDataParallel):
    """PyTorch's wrapper, with buffers (running statistics) kept equal in another way.

    Rank 0's buffers are sent after a training forward instead of before every forward; after one in which nothing is
    exchanged (`no_sync`) when the next evaluation begins. So they are equal on all ranks whenever a model is evaluated,
    a forward without gradients exchanges nothing and may run on some ranks only, and two forwards before one backward
    do not touch what the backward needs (pytorch/pytorch#22095).

    PyTorch counts on every parameter to take part in every backward, and leaves out for good what is frozen when it
    wraps a model. Where that is not so (an output that no loss uses, a layer that is never run, one that is released
    later) a replica becomes `Averaged`, as long as nothing has been lost.
    """

    def __init__(
        self, module: nn.Module, world: World, *, broadcast_buffers: bool, adapts: bool = False, **arguments: Any
    ) -> None:
        own: dict[str, Any] = {_BUFFERS: False}
        super().__init__(module, **own, **arguments)
        self._world = world
        self._adapts = adapts
        self._is_seen = not adapts and type(self) is Replica  # whether a backward has shown what takes part
        self._is_called = False  # with gradients
        self._has_run = False  # and these were to be exchanged
        self._sent = sum(
            parameter.requires_grad and name not in self.parameters_to_ignore
            for name, parameter in module.named_parameters()
        )
        trained = self._trained()
        self._wrapped = frozenset(map(id, module.parameters()))
        self._ends = [*trained[:1], *trained[-1:]]  # one of them takes part wherever a backward goes, as a rule
        self._left_out = [parameter for parameter in module.parameters() if not parameter.requires_grad]
        self._kept_equal: list[Tensor] = list(self.modules_buffers) if broadcast_buffers else []
        self._is_behind = False  # whether a training forward has changed buffers that were not sent
        self._send_buffers()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return self.module(*inputs, **kwargs)
        try:
            output = super().forward(*inputs, **kwargs)  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            if _UNFINISHED not in str(error):
                raise
            if not self._adapts:
                raise BackwardError(f"{self._missing()}, and PyTorch waits for them. {_ADAPTS_NOT}") from None
            self._recover()  # PyTorch asks before it runs the module, so nothing is run twice
            return self.forward(*inputs, **kwargs)  # which is another by now
        if not self._is_seen:
            self._is_called = True
            self._has_run = self._has_run or self.require_backward_grad_sync
        self._keep_equal()
        return output

    def averaged(self) -> list[nn.Parameter]:
        """The parameters whose gradients are averaged: those that the model had when it was wrapped."""
        return [parameter for parameter in self.module.parameters() if id(parameter) in self._wrapped]

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name in modules:  # `module`, in every forward
            return modules[name]
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            if not _has(modules.get("module"), name):
                raise
            raise AttributeError(
                f"{error}: with several processes prepare() gives a wrapper, and {name} is an attribute of the model "
                f"inside. Write accelerator.unwrap_model(model).{name}; what computes a loss is averaged as a part of "
                "forward()."
            ) from None

    def load_state_dict(self, state_dict: Any, *arguments: Any, **options: Any) -> Any:
        """As PyTorch's; also with the keys of the model inside, which are those that one process has saved."""
        is_plain = state_dict and not any(key.startswith(_INSIDE) for key in state_dict)
        target: Any = self.module if is_plain else super()
        return target.load_state_dict(state_dict, *arguments, **options)

    def average(self) -> None:
        """Look once which parameters took part in a backward: PyTorch has averaged only if all of them did."""
        if not self.require_backward_grad_sync:
            return
        if any(parameter.requires_grad for parameter in self._left_out):
            self._take_in()
            return
        if not self._is_seen and self._has_run:
            self._look()
        elif not (self._is_seen or self._is_called) and any(parameter.grad is not None for parameter in self._ends):
            name = type(self.module).__name__
            self._become_averaged(
                f"A backward reached a {name} beside the forward of what prepare() gave for it",
                f"Run what prepare() gave, not {_INSIDE[:-1]} or unwrap_model() of it",
            )
            self.average()
            return
        if self._adapts and type(self) is Replica and self._is_unfinished():
            self._become_averaged(self._missing())
            self.average()  # waits for the others: one that waits in its backward is named (`runtime.watch`)

    def _take_in(self) -> None:
        """Average, from this backward on, what was frozen when the model was wrapped, too."""
        if not self._adapts:
            raise BackwardError(f"parameters of {type(self.module).__name__} {_RELEASED}. Release them before prepare.")
        self._become_averaged(f"Parameters of {type(self.module).__name__} {_RELEASED}")
        self.average()

    def _look(self) -> None:
        counts = counts_of_gradients(self._world, self._trained())
        if any(counts):
            self._is_seen = True
            self._refuse_unequal()
            if min(counts) < self._world.size:
                self._become_averaged(self._missing())
                self.average()

    def _refuse_unequal(self) -> None:
        """Raise if the processes hold different parameters, which equal gradients leave different for ever."""
        held = {n: p for n, p in self.module.named_parameters() if n not in self.parameters_to_ignore}
        index = unequal(self._world, list(held.values()))
        if index is not None:
            raise BackwardError(
                f"the processes hold different values of {list(held)[index]} of a {type(self.module).__name__}, which "
                "were the same when it was prepared: something has set them since on some processes, or differently "
                "(one has loaded weights, each has drawn them, an optimizer that is not prepared has stepped). "
                "Load and initialise before prepare(), or alike on all processes."
            )

    def _is_unfinished(self) -> bool:
        """Whether PyTorch goes on waiting for gradients in a backward that is over."""
        try:
            self._check_reducer_finalized()  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            return _UNFINISHED in str(error)
        return False

    def _recover(self) -> None:
        """Go on after a backward in which parameters were missing, unless an optimizer has used its gradients."""
        if not are_equal_everywhere(self._world, self._trained()):
            raise BackwardError(
                f"parameters of {type(self.module).__name__} took no part in a backward, so its gradients were not "
                "averaged, and an optimizer has stepped since: the processes hold different models. Say in advance "
                f"that this happens: Accelerator(kwargs_handlers=[{_SAYING_SO}])."
            ) from None
        self._become_averaged(self._missing())

    def _trained(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.module.parameters() if parameter.requires_grad]

    def _missing(self) -> str:
        names = [name for name, p in self.module.named_parameters() if p.requires_grad and p.grad is None]
        example = f" ({names[0]} for one)" if names else ""
        return f"Parameters of {type(self.module).__name__} took no part in a backward{example}"

    def _become_averaged(self, why: str, way_out: str = _FREEZE) -> None:
        if self._world.rank == 0:
            tell(
                f"{why}: from now on its gradients are averaged when a backward is over, not while it runs. {way_out}, "
                f"or say that this is meant: Accelerator(kwargs_handlers=[{_SAYING_SO}])."
            )
        self._send_the_rest()
        self.reducer = None  # type: ignore[assignment]  # takes its hooks off the parameters
        self.logger = None
        self.__class__ = Averaged

    def _send_the_rest(self) -> None:
        """Let PyTorch send what it still waits for: another process may have sent more, and would be ahead for ever.

        Nothing of it is used. In its first backward PyTorch sends everything at once, or nothing.
        """
        for index in range(self._sent if self._has_rebuilt_buckets else 0):
            with suppress(RuntimeError):  # that one has been sent; or with the last one: no backward runs that it ends
                cast("Any", self.reducer)._autograd_hook(index)  # noqa: SLF001  there is no public name

    def _keep_equal(self) -> None:
        """Buffers after a forward with gradients, which changes them in training."""
        if self._kept_equal and self.module.training:
            self._is_behind = True
            if self.require_backward_grad_sync:
                self._send_buffers()

    def catch_up(self) -> None:
        """Buffers that training forwards have changed without an exchange (`no_sync`) become those of rank 0."""
        if self._is_behind:
            self._send_buffers()

    def _send_buffers(self) -> None:
        self._is_behind = False
        broadcast_tensors(self._world, [buffer.data for buffer in self._kept_equal], call=BUFFERS)


class Averaged(Replica):
    """A replica whose gradients are averaged when a backward is over, whatever took part in it.

    PyTorch averages during the first backward after a forward, and counts on every parameter. Here a second backward
    through the same forward, the gradient of a gradient, and layers that are frozen or released between steps give what
    they give on one process, and so do methods and layers of the model that are called around its forward. What is
    averaged again stays what it is.
    """

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        output = self.module(*inputs, **kwargs)
        if torch.is_grad_enabled():
            self._keep_equal()
        return output

    def averaged(self) -> list[nn.Parameter]:
        return list(self.module.parameters())

    def average(self) -> None:
        """Gradients become their mean over the processes; where only some have one, the others count as zero."""
        if not self.require_backward_grad_sync:
            return
        if not self._is_seen:
            self._is_seen = True
            self._refuse_unequal()
        average_gradients(self._world, list(self.module.parameters()))
        self._send_buffers()  # layers that were called around the forward have statistics of their own


class Ddp(Strategy):
    """Replicas of models that train; other models only start equal."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._frozen: WeakKeyDictionary[nn.Module, list[nn.Parameter]] = WeakKeyDictionary()
        self._unaveraged = Unaveraged(ground.world)

    def rebind(self, optimizer: Optimizer) -> None:
        self._unaveraged.add(optimizer)

    def wrap(self, model: nn.Module) -> nn.Module:
        if isinstance(model, DistributedDataParallel) or has_distributed_tensors(model):
            return model  # the script has wrapped or sharded it
        if not any(parameter.requires_grad for parameter in model.parameters()):
            broadcast_tensors(self._world, [t.data for t in (*model.parameters(), *model.buffers())])
            self._frozen[model] = list(model.parameters())
            return model
        options = self._ground.replicas
        arguments = {**options.arguments(), **self._ground.device.ddp_arguments(self._ground.own)}
        kind = Averaged if options.find_unused_parameters else Replica
        if not self._ground.device.joins_statistics:
            with_joined_statistics(model)
        result = kind(model, self._world, adapts=options.may_adapt, **arguments)
        register_hook(result, options)
        return result

    def average(self, models: Iterable[nn.Module]) -> None:
        for model in models:
            if isinstance(model, Replica):
                model.average()
            elif any(
                parameter.requires_grad and parameter.grad is not None for parameter in self._frozen.get(model, ())
            ):
                raise BackwardError(
                    f"all parameters of a {type(model).__name__} {_RELEASED}: it is no replica, and its gradients are "
                    "not averaged. Prepare it first, and freeze it then."
                )
        if self._unaveraged.backwards:
            self._unaveraged.look(parameter for model in models for parameter in _averaged(model))

    def catch_up(self, models: Iterable[nn.Module]) -> None:
        for model in models:
            if isinstance(model, Replica):
                model.catch_up()

    def way_out(self, error: RuntimeError) -> str | None:
        return _WAY_OUT if _COUNTED in str(error) else None

    def no_sync(self, model: nn.Module) -> AbstractContextManager[Any]:
        return model.no_sync() if isinstance(model, DistributedDataParallel) else nullcontext()

    @contextmanager
    def sync_in_backward(self, model: nn.Module) -> Iterator[None]:
        if not isinstance(model, DistributedDataParallel):
            yield
            return
        before = model.require_backward_grad_sync, model.require_forward_param_sync
        model.require_backward_grad_sync = model.require_forward_param_sync = True
        if not isinstance(model, Averaged):  # which averages after the backward
            model.reducer.prepare_for_backward([])  # what a forward does when gradients are to be exchanged
        try:
            yield
        finally:
            model.require_backward_grad_sync, model.require_forward_param_sync = before


def _averaged(model: nn.Module) -> Iterable[nn.Parameter]:
    """The parameters of a prepared model whose gradients become those of all processes."""
    if isinstance(model, Replica):
        return model.averaged()
    return model.parameters() if isinstance(model, DistributedDataParallel) else ()


def _has(model: nn.Module | None, name: str) -> bool:
    """Whether a model has an attribute; no property of its class is run."""
    if model is None:
        return False
    kinds = ("_parameters", "_buffers", "_modules")
    tables: list[dict[str, Any]] = [model.__dict__, *(model.__dict__.get(kind, {}) for kind in kinds)]
    return any(name in table for table in tables) or hasattr(type(model), name)
