"""One process of one run, from its order to its end."""

from __future__ import annotations

import gc
import io
import os
import random
import sys
import threading
import traceback
import types
from collections.abc import Callable
from types import TracebackType

from migrate.verify.order import Order
from migrate.verify.recorder.fence import Fence
from migrate.verify.recorder.journal import Journal
from migrate.verify.recorder.output import Output


class Session:
    """All observers of a process. It imports all of them when it is made: afterwards `sys.path` is the script's."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._journal = Journal(order.records, order.root)
        fence = Fence(self._journal, (order.root, *order.writable), holds=not order.is_frozen)
        fence.close()  # before there is a second thread, which the kernel's fence would leave out
        import torch

        from migrate.verify.recorder.batches import Passes
        from migrate.verify.recorder.checkpoints import Checkpoints
        from migrate.verify.recorder.neutral import make_neutral
        from migrate.verify.recorder.training import Training

        torch.set_num_threads(1)
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        self._journal.write("start", gpus=gpus)
        if gpus:
            from migrate.verify.recorder import kernels

            kernels.repeat_themselves()
        training = Training(self._journal, order)
        training.watch()
        self._output = Output(self._journal)

        def batch_came() -> None:
            training.batch_came()
            self._output.cover_writers()

        self._passes = Passes(self._journal, order, batch_came)
        self._passes.watch()
        Checkpoints(self._journal, order, fence).watch()
        if order.is_frozen:
            make_neutral(self._journal)
        self._read: Callable[[bytes, str], tuple[bytes, dict[str, object]]] = _as_it_is
        if order.script.endswith(".ipynb"):
            from migrate.verify.recorder import cells

            self._read = cells.script
        if order.package:
            from migrate.verify.recorder import parallel

            parallel.watch(order.package, self._passes, splits=order.splits)

    def run(self) -> None:
        """The script, as `python script.py` runs it.

        Raises:
            BaseException: what the script raises, after it was written down.
        """
        order = self._order
        self._seed()
        os.chdir(order.folder)
        sys.argv = [order.script, *order.arguments]
        sys.path.insert(0, os.path.dirname(os.path.realpath(order.script)))
        module = types.ModuleType("__main__")
        module.__dict__.update(__file__=order.script, __cached__=None, __spec__=None, __builtins__=__builtins__)
        sys.modules["__main__"] = module
        self._output.cover()
        self._limit()
        try:
            with io.open_code(order.script) as file:
                source, names = self._read(file.read(), order.script)
            module.__dict__.update(names)
            code = compile(source, order.script, "exec", dont_inherit=True)
            exec(code, module.__dict__)  # noqa: S102 - running the user's program is what this file is for
        except SystemExit as error:
            self._ended("exit", _status(error.code), "" if isinstance(error.code, int) else str(error.code or ""))
            raise
        except BaseException as error:
            self._failed(error)
            raise
        self._ended("ended")

    def _seed(self) -> None:
        """The first process has the seed of a run alone; the others have others, as if nobody had seeded them."""
        import torch

        seed = self._order.seed + self._journal.rank
        random.seed(seed)
        torch.manual_seed(seed)
        try:
            import numpy as np
        except ImportError:
            return
        np.random.seed(seed)  # noqa: NPY002 - what scripts draw from

    def _limit(self) -> None:
        """End the run when its time is over, with the line that it stands at."""
        main = threading.main_thread().ident

        def expire() -> None:
            gc.disable()  # what is collected there may wait for a thread that waits for this one
            frame = sys._current_frames().get(main or 0)  # noqa: SLF001 - there is no other way to see it
            self._journal.end("time", place=self._journal.place(frame) if frame else "")
            os._exit(0)

        timer = threading.Timer(self._order.limit_s, expire)
        timer.daemon = True
        timer.start()

    def _ended(self, how: str, status: int = 0, message: str = "") -> None:
        self._output.finish()
        self._journal.end(how, status=status, message=message)
        (self._journal.folder / f"done{self._journal.rank}").touch()  # nobody waits for a process that is gone

    def _failed(self, error: BaseException) -> None:
        self._output.finish()
        message = "".join(traceback.format_exception_only(type(error), error)).strip()
        self._journal.end("exception", status=1, message=message, place=self._place(error.__traceback__))

    def _place(self, found: TracebackType | None) -> str:
        place = ""
        while found is not None:
            name = found.tb_frame.f_code.co_filename
            if name.startswith(self._order.root + os.sep):
                place = f"{os.path.relpath(name, self._order.root)}:{found.tb_lineno}"
            found = found.tb_next
        return place


def _status(code: object) -> int:
    return code & 0xFF if isinstance(code, int) else int(code is not None)


def _as_it_is(source: bytes, _path: str) -> tuple[bytes, dict[str, object]]:
    """A script, which finds no names but Python's."""
    return source, {}
