"""The state of a training on disk: what `Accelerator` saves, and how it goes on from there."""

from __future__ import annotations

import os
import signal
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader
from torch.utils.hooks import RemovableHandle

from runtime.accumulation import Accumulation
from runtime.devices import Device
from runtime.errors import ConfigurationError
from runtime.files import Files
from runtime.strategies import unwrapped
from runtime.telling import tell
from runtime.termination import Termination
from runtime.world import World

if TYPE_CHECKING:
    from runtime.checkpoints.choice import Choice
    from runtime.checkpoints.crew import Crew
    from runtime.checkpoints.saver import Content, Saver
    from runtime.checkpoints.sharded import Sharded

SaveHook = Callable[[list[nn.Module], list[dict[str, Any]], str], None]
LoadHook = Callable[[list[nn.Module], str], None]
Path_ = str | os.PathLike[str]


class Checkpointing(Files):
    """The part of `Accelerator` that saves and loads the state of a training; see `runtime.checkpoints`."""

    _accumulation: Accumulation
    _device: Device
    _models: list[nn.Module]
    _optimizers: list[Optimizer]
    _schedulers: list[LRScheduler]
    _dataloaders: list[DataLoader[Any]]
    device: torch.device
    scaler: Any

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._custom_objects: list[Any] = []
        self._save_hooks: OrderedDict[int, SaveHook] = OrderedDict()
        self._load_hooks: OrderedDict[int, LoadHook] = OrderedDict()
        self._termination = Termination()
        self._not_loaded: set[str] = set()  # files of the last checkpoint that nothing was there for

    def register_for_checkpointing(self, *objects: Any) -> None:
        """Keep the state of these objects in checkpoints, too.

        Raises:
            ConfigurationError: one has no `state_dict` or no `load_state_dict`.
        """
        bad = [o for o in objects if not all(callable(getattr(o, n, None)) for n in ("state_dict", "load_state_dict"))]
        if bad:
            raise ConfigurationError(
                f"{', '.join(repr(o) for o in bad)}: no state_dict() and load_state_dict(). "
                "Only objects with both can be registered."
            )
        self._custom_objects.extend(objects)

    def register_save_state_pre_hook(self, hook: SaveHook) -> RemovableHandle:
        """Call `hook(models, weights, folder)` in every `save_state`, on all processes, before anything is written.

        What it takes out of `weights` is not written; what it writes into `folder` becomes part of the checkpoint. The
        folder has the checkpoint's name, but lies aside until all is written.
        """
        handle = RemovableHandle(self._save_hooks)
        self._save_hooks[handle.id] = hook
        return handle

    def register_load_state_pre_hook(self, hook: LoadHook) -> RemovableHandle:
        """Call `hook(models, folder)` in every `load_state`, on all processes, when the checkpoint is found to be good.

        What it takes out of `models` is not loaded.
        """
        handle = RemovableHandle(self._load_hooks)
        self._load_hooks[handle.id] = hook
        return handle

    def save_state(
        self,
        output_dir: Path_ | None = None,
        safe_serialization: bool = True,
        *,
        async_save: bool = False,
        **save_model_func_kwargs: Any,
    ) -> Path:
        """Save models, optimizers, schedulers, the scaler, registered objects, the data's position, random numbers.

        Every process calls it. The folder has its name when all of it is on the disk, and not before; a checkpoint of
        that name is kept until then. With automatic naming `output_dir` is not read.

        Args:
            safe_serialization: models in safetensors, where the values allow that; False: in PyTorch's format.
            async_save: return as soon as the state has been copied, and write it while the training goes on. The next
                `save_state`, `load_state`, `wait_for_save` or `end_training` waits for it, and raises what went wrong.

        Returns:
            The folder.

        Raises:
            SaveError: it could not be saved, on all processes; what was saved before is as it was.
        """
        if save_model_func_kwargs:
            raise ConfigurationError(
                f"save_state() has no arguments {', '.join(save_model_func_kwargs)}: leave them out."
            )
        project = self.project_configuration
        target, iteration = self._target(output_dir)
        self._meet("save_state")
        if not self._accumulation.is_due and self.is_main_process:
            warnings.warn(
                "save_state() between two optimizer steps: gradients accumulated so far are not saved. "
                "Save under `if accelerator.sync_gradients:`.",
                stacklevel=2,
            )

        def build(folder: Path) -> Content:
            return self._content(folder, safe_serialization, iteration)

        def tidy() -> None:
            if iteration is not None and project.total_limit is not None:
                from runtime.checkpoints.aside import keep_newest

                keep_newest(target.parent, project.total_limit)

        self._saver.save(target, build, tidy, is_new=iteration is not None, behind=async_save)
        project.iteration += 1
        return target

    def wait_for_save(self) -> None:
        """Return when no save is under way.

        Raises:
            SaveError: the last `save_state(async_save=True)` has failed.
        """
        if "_saver" in self.__dict__:
            self._saver.wait()

    def load_state(
        self, input_dir: Path_ | None = None, load_kwargs: dict[str, Any] | None = None, **load_model_func_kwargs: Any
    ) -> Path:
        """Load what `save_state`, here or of Accelerate, has saved. Every process calls it.

        All files are checked before anything is loaded.

        Args:
            input_dir: a checkpoint, or a folder of checkpoints, of which the newest good one is taken. None: the folder
                of the project's checkpoints.
            load_kwargs: for `torch.load` of optimizers and schedulers; `weights_only` is always True.
            load_model_func_kwargs: for `load_state_dict` of models (`strict`); `map_location`: "cpu", or "on_device" to
                read weights and optimizers to the device at once.

        Returns:
            The folder that was loaded.

        Raises:
            LoadError: it is damaged, or was saved by a program that prepared other objects.
        """
        from runtime.checkpoints.choice import choose, next_number
        from runtime.checkpoints.contents import Reading

        self.wait_for_save()
        self._meet("load_state")
        place = self._source(input_dir)
        options = dict(load_kwargs or {})
        if options.pop("weights_only", True) is not True:
            raise ConfigurationError(
                "load_state(load_kwargs={'weights_only': False}) would run what a file says. Allow the classes that it "
                "holds instead: torch.serialization.add_safe_globals([...])."
            )
        location = self._location(load_model_func_kwargs.pop("map_location", None))
        choice = choose(place, self._crew, Reading(rank=self.process_index, location=location, options=options))
        models = [unwrapped(model) for model in self._models]
        for hook in list(self._load_hooks.values()):
            hook(models, str(choice.folder))
        self._restore(choice, models, load_model_func_kwargs)
        self._accumulation.forget()
        self._not_loaded = set(choice.items) - self._names_of_prepared(range)
        project = self.project_configuration
        if project.automatic_checkpoint_naming:
            own = choice.manifest.iteration if choice.manifest is not None else None
            after = next_number(self._automatic_folder())
            told = self._crew.tell(max(after, 0 if own is None else own + 1))
            project.iteration = max(item.value for item in told)
        return choice.folder

    def on_termination(
        self, hook: Callable[[], Any] | None = None, signals: Iterable[int] = (signal.SIGTERM,)
    ) -> RemovableHandle:
        """From now on these signals do not end the process: `check_termination` says that they came, on all processes.

            accelerator.on_termination(lambda: accelerator.save_state("checkpoints/last"))
            for batch in loader:
                ...
                if accelerator.check_termination():
                    break
            accelerator.end_training()

        Args:
            hook: called once, on all processes, by the `check_termination` that says True.

        Returns:
            A handle; `remove()` takes the hook back.

        Raises:
            ConfigurationError: not called in the main thread.
        """
        return self._termination.listen(hook, signals)

    def check_termination(self) -> bool:
        """Whether any process has got such a signal; True from then on. Every process must call it.

        One small exchange; call it every so many steps if steps are short. A scheduler waits some seconds (the launcher
        30) between the signal and the end.
        """
        from runtime.collectives import all_flags

        # What was agreed on, and not the note: a signal may come right after the exchange, on this process alone.
        is_agreed = any(all_flags(self._world, self._termination.is_asked, "check_termination"))
        if is_agreed:
            self._termination.is_asked = True
            self._termination.run_hooks()
        return is_agreed

    # parts of these

    def _names_of_prepared(self, numbers: Callable[[int], Iterable[int]]) -> set[str]:
        """The names of the files of what is prepared: of each kind those that `numbers` chooses by their count."""
        from runtime.checkpoints.layout import LOADER, MODEL, OPTIMIZER, SAFE_MODEL, SCHEDULER, numbered

        kinds: dict[str, list[Any]] = {
            SAFE_MODEL: self._models, MODEL: self._models, OPTIMIZER: self._optimizers, SCHEDULER: self._schedulers,
            LOADER: self._dataloaders,
        }  # fmt: skip
        return {numbered(name, index) for name, items in kinds.items() for index in numbers(len(items))}

    def _look_for_missed(self) -> None:
        """When something was prepared: say so if the checkpoint that was loaded before has a state for it."""
        missed = self._not_loaded & self._names_of_prepared(lambda count: [count - 1])
        self._not_loaded -= missed
        if missed and self.is_main_process:
            tell(
                f"prepare() after load_state(): {', '.join(sorted(missed))} of the checkpoint is of what is prepared "
                "now, which starts anew. Prepare all objects before load_state()."
            )

    def _meet(self, call: str) -> None:
        """Let processes that wait for others in `call` be named, with the line of each."""
        if self.use_distributed:
            from runtime.collectives import all_flags

            all_flags(self._world, True, call)

    @cached_property
    def _crew(self) -> Crew:
        from runtime.checkpoints.crew import Crew

        return Crew(self._world, self.project_configuration.save_on_each_node)

    @cached_property
    def _saver(self) -> Saver:
        from runtime.checkpoints.saver import Saver

        return Saver(self._crew)

    def _automatic_folder(self) -> Path:
        from runtime.checkpoints.layout import FOLDER

        folder = self.project_dir
        if folder is None:
            raise ConfigurationError(
                "checkpoints need a folder, and none is known. Pass it, or Accelerator(project_dir=...)."
            )
        return Path(os.path.expanduser(folder)) / FOLDER

    def _target(self, output_dir: Path_ | None) -> tuple[Path, int | None]:
        """The folder of the next checkpoint, and its number where it is named by that."""
        from runtime.checkpoints.layout import automatic

        project = self.project_configuration
        if project.automatic_checkpoint_naming:
            return self._automatic_folder().absolute() / automatic(project.iteration), project.iteration
        if output_dir is None:
            raise ConfigurationError(
                "save_state() needs a folder: pass it, or ProjectConfiguration(automatic_checkpoint_naming=True)."
            )
        return Path(os.path.expanduser(output_dir)).absolute(), None

    def _source(self, input_dir: Path_ | None) -> Path:
        if input_dir is not None:
            return Path(os.path.expanduser(input_dir)).absolute()
        folder = self._automatic_folder().absolute()
        return folder if folder.is_dir() or self.project_configuration.automatic_checkpoint_naming else folder.parent

    def _content(self, folder: Path, safe: bool, iteration: int | None) -> Content:
        """What this process writes: all of the state on the main process, its random numbers on the others."""
        from runtime.checkpoints.saver import Content
        from runtime.checkpoints.snapshot import collected

        models, optimizers, sharded = self._in_shards(
            lambda _, model: self._strategy.writes_shards and self._strategy.is_sharded(model)
        )
        if self._crew.shares < self.num_processes and any(map(self._strategy.is_sharded, self._models)):
            raise ConfigurationError(
                "ProjectConfiguration(save_on_each_node=True) has no place for models that are spread over machines. "
                "Use a file system that all of them share."
            )
        weights = [self._strategy.state_dict(model) for model in models]
        for hook in list(self._save_hooks.values()):
            hook([unwrapped(model) for model in self._models], weights, str(folder))
        loaders: list[Any] = self._dataloaders  # prepared ones, whose state is a dictionary
        positions: list[dict[str, Any]] = [loader.state_dict() for loader in loaders]
        parts = collected(
            weights=weights, safe=safe, optimizers=[self._strategy.optimizer_state(o) for o in optimizers],
            schedulers=self._schedulers, scaler=self.scaler, positions=positions, customs=self._custom_objects,
            device=self._device, world=self._world, is_leader=self._crew.is_leader,
            shards=[part for item in sharded for part in item.parts(self.process_index)],
        )  # fmt: skip
        facts = {"processes": self.num_processes, "iteration": iteration, "data": [_readable(p) for p in positions]}
        return Content(parts, facts)

    def _in_shards(
        self, is_chosen: Callable[[int, nn.Module], bool]
    ) -> tuple[list[nn.Module], list[Optimizer], list[Sharded]]:
        """Models and optimizers whose state is whole, and those that are chosen to be in shards.

        An optimizer goes with the model that it has parameters of.
        """
        models, optimizers, sharded = list(self._models), list(self._optimizers), []
        for index, model in enumerate(self._models):
            inner = unwrapped(model, keep_torch_compile=False)
            if not is_chosen(index, inner):
                continue
            from runtime.checkpoints.sharded import Sharded

            own = set(map(id, inner.parameters()))
            mine = [o for o in optimizers if any(id(p) in own for group in o.param_groups for p in group["params"])]
            models = [other for other in models if other is not model]
            optimizers = [other for other in optimizers if all(other is not one for one in mine)]
            sharded.append(Sharded(inner, mine, index, self._crew.group))
        return models, optimizers, sharded

    def _location(self, name: str | None) -> Any:
        """Where weights and optimizers are read to, before they go to their parameters."""
        known = {None: "cpu", "cpu": "cpu", "on_device": self.device}
        if name not in known:
            raise ConfigurationError(f"map_location={name!r} is not known. Known: 'cpu', 'on_device'.")
        return known[name]

    def _restore(self, choice: Choice, kept: list[nn.Module], model_options: dict[str, Any]) -> None:
        from runtime.checkpoints.layout import SHARDED_MODEL
        from runtime.checkpoints.restore import Targets

        manifest = choice.manifest
        models, optimizers, sharded = self._in_shards(
            lambda index, _: (choice.folder / SHARDED_MODEL.format(index)).is_dir()
        )
        still = set(map(id, kept))
        Targets(
            items=choice.items, models=[model for model in models if id(unwrapped(model)) in still],
            optimizers=optimizers, sharded=sharded, schedulers=self._schedulers, loaders=self._dataloaders,
            customs=self._custom_objects, scaler=self.scaler, device=self._device, world=self._world,
            strategy=self._strategy, is_prepared=bool(self._models),
            processes=None if manifest is None else manifest.processes, model_options=model_options,
        ).load_from(choice.folder)  # fmt: skip


def _readable(position: dict[str, Any]) -> dict[str, Any]:
    """The numbers and texts of a position, for people who read the manifest."""
    return {key: value for key, value in position.items() if isinstance(value, (int, float, str, type(None)))}
