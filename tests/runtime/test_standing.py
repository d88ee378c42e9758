"""What a process has set of itself, and another takes on: `runtime/launch/standing.py`."""

import logging
import pickle
import sys
import warnings

import numpy as np
import pytest
import torch

from runtime.launch.standing import settings, take_on


@pytest.fixture
def as_before():
    """The settings that the tests change are as they were, afterwards."""
    printed, dtype, root = np.get_printoptions(), torch.get_default_dtype(), logging.root
    level, handlers = root.level, [*root.handlers]
    with warnings.catch_warnings():
        yield
    np.set_printoptions(**printed)
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(True)
    torch.set_printoptions(profile="default")
    torch.backends.cudnn.benchmark = False
    root.setLevel(level)
    root.handlers[:] = handlers


def travelled():
    return pickle.loads(pickle.dumps(settings()))  # noqa: S301  our own


@pytest.mark.usefixtures("as_before")
def test_what_is_set_is_set_again():
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_printoptions(precision=2)
    torch.backends.cudnn.benchmark = True
    kept = travelled()
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.set_printoptions(profile="default")
    torch.backends.cudnn.benchmark = False

    take_on(kept)

    assert torch.zeros(1).dtype is torch.float64
    assert not torch.is_grad_enabled()
    assert str(torch.tensor(1 / 3)) == "tensor(0.33)"
    assert torch.backends.cudnn.benchmark


def test_what_nobody_has_set_does_not_travel():
    names = {name for name, _ in settings()}

    assert names.isdisjoint({"dtype", "device", "deterministic", "matmul", "gradients", "anomalies"})


@pytest.mark.usefixtures("as_before")
def test_functions_among_the_settings_stay_behind():
    np.set_printoptions(formatter={"float": lambda x: f"<{x}>"}, precision=3)

    kept = dict(travelled())

    assert kept["numpy"][0]["precision"] == 3
    assert "formatter" not in kept["numpy"][0]


@pytest.mark.usefixtures("as_before")
def test_loggers_have_their_levels_and_handlers_again(tmp_path, capsys):
    logging.basicConfig(level=logging.INFO, format="told %(message)s", stream=sys.stdout, force=True)
    file = logging.FileHandler(tmp_path / "log.txt")
    file.setLevel(logging.WARNING)
    logging.root.addHandler(file)
    kept = travelled()
    file.close()
    logging.root.handlers.clear()
    logging.root.setLevel(logging.ERROR)

    take_on(kept)
    logging.getLogger().info("one")
    logging.getLogger().warning("two")
    next(each for each in logging.root.handlers if isinstance(each, logging.FileHandler)).close()

    assert capsys.readouterr().out == "told one\ntold two\n"
    assert (tmp_path / "log.txt").read_text() == "two\n"


@pytest.mark.usefixtures("as_before")
def test_filters_of_warnings_are_those_of_before():
    warnings.filterwarnings("error", "this one", RuntimeWarning)
    kept = travelled()
    warnings.resetwarnings()

    take_on(kept)

    with pytest.raises(RuntimeWarning):
        warnings.warn("this one fails", RuntimeWarning, stacklevel=1)
