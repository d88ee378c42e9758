"""`Accelerator`: what a training script talks to. It composes; the parts decide.

    config.resolve(arguments, environment)      → Config, and where each value came from
    devices.pick(config)                        → Device
    World.from_environment(environ).join(...)   → World, a process group only for several processes
    PRECISIONS[...] · strategy_for(world)       → Precision · Strategy
    Passes · Accumulation                       → which step a loop is in · whether the optimizer may step

Names, arguments and meaning are those of Hugging Face Accelerate. On one process `prepare` gives the objects back as
they are, the model on its device.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.utils.data import DataLoader

from runtime.accumulation import Accumulation
from runtime.checkpointing import Checkpointing
from runtime.config import data_settings, refuse_unsupported, resolve, window_steps
from runtime.data.passes import Passes
from runtime.devices import pick
from runtime.errors import ConfigurationError, PrepareError, UnsupportedArgument
from runtime.exchange import Exchange
from runtime.handlers import DataLoaderConfiguration, Handlers
from runtime.loaders import Loaders
from runtime.optimizer import Following, following, hold_back
from runtime.precision import PRECISIONS, Fp16, Unscaled
from runtime.project import ProjectConfiguration, project_settings
from runtime.reporting import Reporting
from runtime.state import Owner
from runtime.strategies import Ground, strategy_for, unwrapped
from runtime.training import Training
from runtime.world import World, leave

if TYPE_CHECKING:
    from runtime.compilation import Compilation
    from runtime.plugins import (
        FullyShardedDataParallelPlugin,
        GradientAccumulationPlugin,
        ParallelismConfig,
        TorchDynamoPlugin,
    )
    from runtime.sharding import Sharding

T = TypeVar("T")


class Accelerator(Owner, Training, Loaders, Exchange, Checkpointing, Reporting):
    """Runs a training script on one device or on many.

    Args:
        device_placement: move models and batches to the device; `prepare` can say otherwise for single objects.
        split_batches: older place of `DataLoaderConfiguration(split_batches=...)`.
        mixed_precision: "no", "bf16" or "fp16"; also from ACCELERATE_MIXED_PRECISION. Without a GPU "fp16" computes in
            full precision, as torch.cuda.amp does there.
        gradient_accumulation_steps: micro-steps per optimizer step in `accumulate`, and what `backward` divides by;
            also from ACCELERATE_GRADIENT_ACCUMULATION_STEPS.
        cpu: use the CPU even if there is a GPU; also from ACCELERATE_USE_CPU.
        dataloader_config: how data are divided over the processes.
        step_scheduler_with_optimizer: False leaves schedulers as they are in `prepare`.
        kwargs_handlers: arguments for PyTorch's DDP, gradient scaler, process group, autocast and profiler.
        log_with: trackers by name ("tensorboard", "wandb", "mlflow", "csv", "jsonl", "all"), as `LoggerType`, or as a
            `GeneralTracker` of the script's own; one or a list.
        project_dir: the folder of the run's files; short for `ProjectConfiguration(project_dir=...)`.
        project_config: the folders of the run, and how its checkpoints are named.
        fsdp_plugin: shard models over the processes; also from ACCELERATE_USE_FSDP and the variables FSDP_*.
        parallelism_config: how many replicas there are of a sharded model.
        dynamo_backend: compile models when they are prepared; also from ACCELERATE_DYNAMO_BACKEND.
        dynamo_plugin: the same with more to say; also from the variables ACCELERATE_DYNAMO_*.
        debug: name processes that wait for each other in vain, with the line of each (`runtime.watch`). None: on the
            CPU, where it costs nothing; also from ACCELERATE_DEBUG_MODE.
        gradient_accumulation_plugin: how windows of micro-steps end; in the place of `gradient_accumulation_steps`.

    Raises:
        ConfigurationError: a value that cannot be used here; `UnsupportedArgument` for what only Accelerate has.
        WorldError: the processes cannot be joined, or there is no device for this one.
    """

    def __init__(
        self,
        device_placement: bool = True,
        split_batches: bool | None = None,
        mixed_precision: str | None = None,
        gradient_accumulation_steps: int = 1,
        cpu: bool = False,
        dataloader_config: DataLoaderConfiguration | None = None,
        step_scheduler_with_optimizer: bool = True,
        kwargs_handlers: list[Any] | None = None,
        log_with: Any = None,
        project_dir: str | os.PathLike[str] | None = None,
        project_config: ProjectConfiguration | None = None,
        fsdp_plugin: FullyShardedDataParallelPlugin | None = None,
        parallelism_config: ParallelismConfig | None = None,
        dynamo_backend: str | Callable[..., Any] | None = None,
        dynamo_plugin: TorchDynamoPlugin | None = None,
        debug: bool | None = None,
        gradient_accumulation_plugin: GradientAccumulationPlugin | None = None,
        **unsupported: Any,
    ) -> None:
        refuse_unsupported(unsupported)
        self.project_configuration = project_settings(project_config, project_dir)
        given = {
            "device_placement": device_placement,
            "mixed_precision": mixed_precision,
            "gradient_accumulation_steps": window_steps(gradient_accumulation_plugin, gradient_accumulation_steps),
            "cpu": cpu,
            "step_scheduler_with_optimizer": step_scheduler_with_optimizer,
            "debug": debug,
            **data_settings(dataloader_config, split_batches),
        }
        self.config = resolve(given, os.environ)
        self._handlers = Handlers.sorted_from(kwargs_handlers)
        alone = World.from_environment(os.environ)
        self._device = pick(self.config.cpu, alone.size)
        refusal = self._device.refusal(self.config.mixed_precision)
        if refusal is not None:
            raise ConfigurationError(f"{refusal} It came from: {self.config.origin['mixed_precision']}.")
        self.device = self._device.own(alone.local_rank, alone.size)
        shards = None
        if _is_asked_for("FSDP", "PARALLELISM", given=(fsdp_plugin, parallelism_config)):
            from runtime.sharding import sharding

            shards = sharding(fsdp_plugin, parallelism_config, os.environ, alone.size)
        offloads = shards is not None and shards.cpu_offload
        super().__init__(alone.join(self._device, self.device, self._handlers.group, offloads=offloads))
        self._compilation: Compilation | None = None
        if _is_asked_for("DYNAMO", given=(dynamo_plugin, dynamo_backend)):
            from runtime.compilation import compilation

            self._compilation = compilation(dynamo_plugin, dynamo_backend, os.environ, self._device.compiler)
        self._choose_trackers(log_with)
        self._compose(shards, gradient_accumulation_plugin)

    def _compose(self, shards: Sharding | None, windows: GradientAccumulationPlugin | None) -> None:
        world, config = self._world, self.config
        if world.size > 1:
            from runtime import watch  # late, as all that one process alone does not need

            watch.begin(world, config.debug)
        precision = PRECISIONS[config.mixed_precision]
        if precision is Fp16 and not self._device.scales:
            warnings.warn("mixed_precision='fp16' needs a GPU: computing in full precision.", stacklevel=3)
            precision = Unscaled
        self._precision = precision(self.device, self._handlers.autocast, self._handlers.scaler)
        self._strategy = strategy_for(
            Ground(
                world=world,
                device=self._device,
                own=self.device,
                dtype=self._precision.dtype,
                replicas=self._handlers.ddp,
                sharding=shards,
            )
        )
        self._models: list[nn.Module] = []
        self._passes = Passes(world.rank, partial(self._strategy.catch_up, self._models))
        self._accumulation = Accumulation(config.gradient_accumulation_steps, self._passes, windows)
        self.native_amp = self._precision.dtype is not None
        self.split_batches = config.split_batches
        self.even_batches = config.even_batches
        self.device_placement = config.device_placement
        self.step_scheduler_with_optimizer = config.step_scheduler_with_optimizer
        self.distributed_type = self._strategy.distributed_type
        self.scaler = self._precision.scaler
        self._optimizers: list[Optimizer] = []
        self._schedulers: list[LRScheduler] = []
        self._dataloaders: list[DataLoader[Any]] = []
        # By the id of what was prepared, or came out: that object, kept so that its id stays its own, and the result.
        self._results: dict[int, tuple[Any, Any]] = {}
        self._undo: list[Callable[[], None]] = []
        self._become_current()

    # prepare

    def prepare(self, *args: Any, device_placement: list[bool] | None = None) -> Any:
        """The objects, ready for this device and all processes, in the order given; a single one without a tuple.

        Models, optimizers, schedulers and data loaders are prepared, anything else comes back as it is. Preparing an
        object again gives the first result.

        Args:
            device_placement: for every object, whether it is moved to the device.

        Raises:
            PrepareError: a container with objects to prepare, which would have been left as it is; or an object that
                cannot be prepared.
            ConfigurationError: `device_placement` has another length.
        """
        self._refuse_retired()
        if device_placement is not None and len(device_placement) != len(args):
            raise ConfigurationError(
                f"device_placement has {len(device_placement)} entries for {len(args)} objects. Give one for each."
            )
        placements: list[bool | None] = [None] * len(args) if device_placement is None else list(device_placement)
        for position, item in enumerate(args):
            _refuse_container(item, position)
        table: tuple[tuple[type[Any], Callable[[Any, bool | None], Any]], ...] = (
            (nn.Module, self.prepare_model),
            (DataLoader, self.prepare_data_loader),
            (Optimizer, self.prepare_optimizer),  # after models, so that its state follows the parameters
            (LRScheduler, lambda scheduler, _: self.prepare_scheduler(scheduler)),  # after optimizers, which it follows
        )
        results = list(args)
        for kind, prepare_one in table:
            for position, item in enumerate(args):
                if isinstance(item, kind):
                    results[position] = prepare_one(item, placements[position])
        return results[0] if len(results) == 1 else tuple(results)

    def prepare_model(
        self, model: nn.Module, device_placement: bool | None = None, evaluation_mode: bool = False
    ) -> Any:
        """The model on the device, in the precision in use, and as one of the replicas of all processes.

        Args:
            evaluation_mode: True for a model that is not trained: no replica is made.

        Returns:
            The model itself on one process and where it is sharded; else a `DistributedDataParallel` around it.
        """
        if (known := self._known(model)) is not None:
            return known
        is_wrapped = not evaluation_mode
        is_placed = is_wrapped and self._strategy.places_models
        if not is_placed and (self.device_placement if device_placement is None else device_placement):
            model = self._device.place(model, self.device)
            self._follow(model)
        inner = unwrapped(model)
        self._precision.apply(inner)
        if self._compilation is not None:
            self._compilation.apply(inner)
        result = self._strategy.wrap(model) if is_wrapped else model
        for optimizer in self._optimizers:
            self._strategy.rebind(optimizer)
        self._passes.models.append(inner)
        self._models.append(result)
        return self._remember(model, result)

    def prepare_optimizer(self, optimizer: Optimizer, device_placement: bool | None = None) -> Optimizer:
        """The optimizer itself. It steps only when gradients are complete and finite."""
        if (known := self._known(optimizer)) is not None:
            return known
        self._strategy.rebind(optimizer)
        if optimizer.state and (self.device_placement if device_placement is None else device_placement):
            optimizer.load_state_dict(optimizer.state_dict())  # moves its state to where the parameters are
        optimizer.__dict__["step_was_skipped"] = False  # scripts ask for it, also where no step is held back
        if self._accumulation.steps > 1 or isinstance(self._precision, Fp16):
            self._undo.append(hold_back(optimizer, self._precision, self._accumulation))
        if (end_step := self._device.end_step) is not None:
            self._undo.append(optimizer.register_step_post_hook(lambda *_: end_step()).remove)
        self._optimizers.append(optimizer)
        return self._remember(optimizer, optimizer)

    def prepare_data_loader(
        self, data_loader: DataLoader[Any], device_placement: bool | None = None, slice_fn_for_dispatch: Any = None
    ) -> DataLoader[Any]:
        """A loader that gives each process its share, on its device; see `runtime.data.loader`.

        Returns:
            An instance of the loader's class that shares its attributes.

        Raises:
            UnsupportedArgument: `slice_fn_for_dispatch`.
            PrepareError: batches are left out of it already, and each process would leave out others.
        """
        if slice_fn_for_dispatch is not None:
            raise UnsupportedArgument("prepare_data_loader(slice_fn_for_dispatch=...)", "Leave it out.")
        from runtime.data.feeds import Dealing
        from runtime.data.loader import Prepared, behind, prepared_loader
        from runtime.data.seeded import seeded

        if (known := self._known(data_loader)) is not None:
            return known
        if isinstance(data_loader, Prepared):
            prepare_it = partial(self.prepare_data_loader, device_placement=device_placement)
            return self._remember(data_loader, behind(data_loader, prepare_it, self.num_processes))
        moves = self.device_placement if device_placement is None else device_placement
        config = self.config
        result = prepared_loader(
            seeded(data_loader, config.data_seed) if config.use_seedable_sampler else data_loader,
            world=self._world,
            passes=self._passes,
            accumulation=self._accumulation,
            dealing=Dealing(self.split_batches, self.even_batches, config.dispatch_batches, config.pad_batches),
            device=self.device if moves and self._device.needs_copies else None,
            non_blocking=config.non_blocking,
            streams=self._device.streams(self.device),
            spread=self._device.spread,
        )
        self._dataloaders.append(result)
        return self._remember(data_loader, result)

    def prepare_scheduler(self, scheduler: LRScheduler) -> LRScheduler:
        """The scheduler, stepping with its optimizer and once per process, since it counts samples.

        Itself where that changes nothing: on one process without accumulation and gradient scaler.
        """
        if isinstance(scheduler, Following):
            return scheduler
        if (known := self._known(scheduler)) is not None:
            return known
        counts_samples = not isinstance(scheduler, ReduceLROnPlateau)  # it counts what it is told
        times = self.num_processes if counts_samples and not self.split_batches else 1
        is_direct = times == 1 and self._accumulation.steps == 1 and not isinstance(self._precision, Fp16)
        result = scheduler
        if self.step_scheduler_with_optimizer and not is_direct:
            own = [o for o in self._optimizers if o is getattr(scheduler, "optimizer", None)]
            result = following(scheduler, own or self._optimizers, self._accumulation, times)
        self._schedulers.append(result)
        return self._remember(scheduler, result)

    def _follow(self, model: nn.Module) -> None:
        """Bring the state of optimizers that were prepared before their model to where its parameters are now."""
        mine = {id(parameter) for parameter in model.parameters()}
        for optimizer in self._optimizers:
            if any(id(parameter) in mine for parameter in optimizer.state):
                optimizer.load_state_dict(optimizer.state_dict())

    def _known(self, item: T) -> T | None:
        result: T | None = self._results.get(id(item), (None, None))[1]
        return result

    def _remember(self, item: T, result: T) -> T:
        self._results[id(item)] = (item, result)
        self._results[id(result)] = (result, result)
        if self._not_loaded:
            self._look_for_missed()
        return result

    # the end

    def free_memory(self, *objects: Any) -> list[None]:
        """Forget everything prepared, and give memory back: `model, loader = accelerator.free_memory(model, loader)`.

        Returns:
            One None for every object.
        """
        for undo in self._undo:
            undo()
        for kept in (
            self._undo, self._models, self._optimizers, self._schedulers, self._dataloaders, self._passes.models
        ):  # fmt: skip
            kept.clear()
        self._results.clear()
        self._accumulation.forget()
        count = len(objects)
        del objects
        gc.collect()
        self._device.empty_cache()
        return [None] * count

    clear = free_memory

    def end_training(self) -> None:
        """Wait for the last save, finish the trackers and leave the process group; the script may go on alone.

        Raises:
            SaveError: the last `save_state(async_save=True)` has failed.
        """
        with ExitStack() as then:  # each whatever went wrong before it, and the last of these first
            then.callback(self._termination.stop)  # a signal that comes again while processes leave ends none of them
            then.callback(self._leave)
            then.callback(self._finish_trackers)
            self.wait_for_save()

    def _leave(self) -> None:
        if self.num_processes > 1:
            self.wait_for_everyone()
            leave()


def _is_asked_for(*topics: str, given: tuple[object, ...]) -> bool:
    """Whether an argument or a variable has to do with these topics; what reads them is imported only then."""
    return any(item is not None for item in given) or any(topic in name for name in os.environ for topic in topics)


def _refuse_container(item: Any, position: int) -> None:
    """Raise for a list, tuple or dictionary that holds something to prepare."""
    if not isinstance(item, (list, tuple, dict)):
        return
    inside = item.values() if isinstance(item, dict) else item
    found = [v for v in inside if isinstance(v, (nn.Module, Optimizer, DataLoader, LRScheduler))]
    if found:
        raise PrepareError(
            f"prepare() got a {type(item).__name__} with a {type(found[0]).__name__} at position {position}. "
            "Pass the objects themselves: prepare(model, *loaders)."
        )
