"""Trackers: which are chosen, what they write, who writes, and what is said when one is missing."""

from __future__ import annotations

import csv
import json
import signal
import sys
import types
import warnings
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from ranks import run_ranks

from runtime import Accelerator, GeneralTracker, LoggerType, ProfileKwargs, ProjectConfiguration
from runtime.errors import ConfigurationError, UnsupportedArgument
from runtime.tracking import CSVTracker, JSONLTracker, on_main_process


class Memory(GeneralTracker):
    """Keeps what it is told, in order."""

    name = "memory"
    requires_logging_directory = False

    def __init__(self, run_name="", **options):
        super().__init__()
        self.heard = [("made", run_name, options)]

    @property
    def tracker(self):
        return self.heard

    def start(self):
        self.heard.append(("start",))

    def store_init_configuration(self, values):
        self.heard.append(("config", values))

    def log(self, values, step=None, **options):
        self.heard.append(("log", values, step, options))

    def finish(self):
        self.heard.append(("finish",))


class Everywhere(Memory):
    name = "everywhere"
    main_process_only = False


@pytest.fixture
def without(monkeypatch):
    """Make packages look as if they were not installed."""

    def remove(*packages):
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return remove


@pytest.fixture
def stand_in(monkeypatch):
    """Put modules in the place of a package; every call of a function of theirs is recorded."""

    def put(name, **contents):
        module = types.ModuleType(name)
        module.__dict__.update(contents)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return put


def rows(path):
    with Path(path).open(newline="") as file:
        return [{k: v for k, v in row.items() if k != "time"} for row in csv.DictReader(file)]


def lines(path):
    found = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert all(line.pop("time") > 1e9 for line in found)
    return found


# which


def test_a_tracker_of_ones_own_hears_everything_in_order():
    own = Memory()
    accelerator = Accelerator(cpu=True, log_with=[own, own])
    accelerator.init_trackers("digits", {"lr": 0.1}, init_kwargs={"wandb": {"tags": ["x"]}})
    accelerator.log({"loss": 1.0}, step=3, log_kwargs={"memory": {"commit": True}, "wandb": {"commit": False}})
    assert accelerator.get_tracker("memory") is own
    assert accelerator.get_tracker("memory", unwrap=True) is own.heard
    accelerator.end_training()
    assert own.heard == [
        ("made", "", {}),
        ("start",),
        ("config", {"lr": 0.1}),
        ("log", {"loss": 1.0}, 3, {"commit": True}),
        ("finish",),
    ]
    assert accelerator.trackers == []


def test_a_class_is_made_with_the_projects_name_and_its_arguments():
    accelerator = Accelerator(cpu=True, log_with=Memory)
    accelerator.init_trackers("digits", init_kwargs={"memory": {"tags": ["x"]}})
    assert accelerator.get_tracker("memory").heard[0] == ("made", "digits", {"tags": ["x"]})


def test_trackers_that_are_started_again_finish_first():
    own = Memory()
    accelerator = Accelerator(cpu=True, log_with=own)
    accelerator.init_trackers("one")
    accelerator.init_trackers("two")
    assert [word for word, *_ in own.heard] == ["made", "start", "finish", "start"]


def test_all_takes_what_is_installed(tmp_path, without):
    without("wandb", "mlflow", "tensorboard", "tensorboardX")
    with_folder = Accelerator(cpu=True, log_with=["all", Memory], project_dir=tmp_path)
    assert [choice.name for choice in with_folder.log_with] == ["csv", "jsonl", "memory"]
    assert Accelerator(cpu=True, log_with=LoggerType.ALL).log_with == []  # both need a folder


@pytest.mark.parametrize("name", ["wandb", LoggerType.MLFLOW])
def test_a_missing_package_is_told_and_the_others_stay(tmp_path, without, name):
    without("wandb", "mlflow")
    with pytest.warns(UserWarning, match=f"{name} is not installed. Run: pip install {name}"):
        accelerator = Accelerator(cpu=True, log_with=[name, "csv"], project_dir=tmp_path)
    assert accelerator.log_with == [CSVTracker]


@pytest.mark.parametrize(
    ("log_with", "error", "message"),
    [
        ("tensorbord", ConfigurationError, "'tensorbord' is not known. Known: all, tensorboard"),
        ("comet_ml", UnsupportedArgument, "comet_ml.*GeneralTracker of your own"),
        (["csv"], ConfigurationError, r"'csv' needs a folder. Pass Accelerator\(project_dir"),
        (3, ConfigurationError, "3 is no tracker"),
    ],
)
def test_what_cannot_be_used_is_an_error(log_with, error, message):
    with pytest.raises(error, match=message):
        Accelerator(cpu=True, log_with=log_with)


def test_a_class_that_lacks_something_is_named():
    class Half(GeneralTracker):
        name = "half"

    with pytest.raises(NotImplementedError, match="Half lacks requires_logging_directory, tracker"):
        Half()
    with pytest.raises(ConfigurationError, match="lacks requires_logging_directory, tracker"):
        Accelerator(cpu=True, log_with=Half)


def test_logging_too_early_and_to_unknown_trackers_is_an_error():
    accelerator = Accelerator(cpu=True, log_with=Memory())
    for call in (lambda: accelerator.log({"loss": 1.0}), lambda: accelerator.get_tracker("memory")):
        with pytest.raises(ConfigurationError, match="before init_trackers"):
            call()
    with pytest.raises(ConfigurationError, match=r"no tracker 'csv'\. There are: memory"):
        accelerator.get_tracker("csv")


def test_without_trackers_nothing_is_kept_and_nothing_fails():
    accelerator = Accelerator(cpu=True)
    accelerator.init_trackers("digits", {"lr": 1})
    accelerator.log({"loss": 1.0})
    accelerator.end_training()
    assert accelerator.trackers == []


def test_every_tracker_finishes_before_the_first_error_is_raised():
    class Broken(Memory):
        name = "broken"

        def finish(self):
            raise OSError("disk full")

    own = Memory()
    accelerator = Accelerator(cpu=True, log_with=[Broken(), own])
    accelerator.init_trackers("digits")
    before = signal.getsignal(signal.SIGTERM)
    accelerator.on_termination()
    with pytest.raises(OSError, match="disk full"):
        accelerator.end_training()
    assert own.heard[-1] == ("finish",)
    assert signal.getsignal(signal.SIGTERM) == before  # else nothing would end the process any more


# files


def test_rows_of_csv_and_jsonl(tmp_path):
    accelerator = Accelerator(cpu=True, log_with=["csv", "jsonl"], project_config=ProjectConfiguration(".", tmp_path))
    accelerator.init_trackers("digits", {"lr": 0.5, "sizes": [1, 2], "path": Path("data")})
    accelerator.log({"loss": torch.tensor(0.25, requires_grad=True)}, step=1)
    accelerator.log({"loss": torch.tensor([0.5], dtype=torch.bfloat16), "name": 'a, "b"\nc'}, step=2)
    accelerator.log({"accuracy": torch.tensor([1, 2])})
    table = [
        {"step": "1", "loss": "0.25", "name": "", "accuracy": ""},
        {"step": "2", "loss": "0.5", "name": 'a, "b"\nc', "accuracy": ""},
        {"step": "", "loss": "", "name": "", "accuracy": "[1, 2]"},
    ]
    assert rows(tmp_path / "digits" / "metrics.csv") == table  # also before the end
    assert lines(tmp_path / "digits" / "metrics.jsonl") == [
        {"step": 1, "loss": 0.25},
        {"step": 2, "loss": 0.5, "name": 'a, "b"\nc'},
        {"step": None, "accuracy": [1, 2]},
    ]
    settings = json.loads((tmp_path / "digits" / "config.json").read_text())
    assert settings == {"lr": 0.5, "sizes": [1, 2], "path": "data"}
    with pytest.raises(ConfigurationError, match="'csv': it takes none, and got mode"):
        accelerator.log({}, log_kwargs={"csv": {"mode": "w"}})
    accelerator.end_training()
    assert {path.name for path in (tmp_path / "digits").iterdir()} == {"metrics.csv", "metrics.jsonl", "config.json"}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_names_may_be_numbers(tmp_path, kind):
    """Those of classes, say. A table with such a column took no new one any more, and nothing after that."""
    accelerator = Accelerator(cpu=True, log_with=kind, project_dir=tmp_path)
    accelerator.init_trackers("run", {3: 4})
    for values in ({1: 0.5}, {1: 0.25, "loss": 2.0}):
        accelerator.log(values)
    accelerator.end_training()
    read = rows if kind == "csv" else lines
    assert [float(row["1"]) for row in read(tmp_path / "run" / f"metrics.{kind}")] == [0.5, 0.25]
    assert json.loads((tmp_path / "run" / "config.json").read_text()) == {"3": 4}


def test_a_table_with_a_large_field_takes_new_columns(tmp_path):
    """`csv` reads no field of more than 128 KB unless told so: a new key after such a row ended the run."""
    limit = csv.field_size_limit()
    accelerator = Accelerator(cpu=True, log_with="csv", project_dir=tmp_path)
    accelerator.init_trackers("run")
    for values in ({"table": torch.zeros(300, 100)}, {"loss": 0.5}):
        accelerator.log(values)
    accelerator.end_training()
    assert csv.field_size_limit() == limit
    first, second = (tmp_path / "run" / "metrics.csv").read_text().splitlines()[1:]
    assert (len(first) > limit, second.rpartition(",")[2]) == (True, "0.5")


def test_numbers_that_json_does_not_know_are_texts(tmp_path):
    tracker = JSONLTracker("digits", tmp_path)
    tracker.start()
    tracker.store_init_configuration({"limit": float("inf")})
    tracker.log({"loss": torch.tensor(float("nan")), "parts": {"a": [-float("inf"), 1.5]}}, step=1)
    tracker.finish()

    def refuse(name):
        raise AssertionError(name)

    row = json.loads(tracker.path.read_text(), parse_constant=refuse)
    assert (row["loss"], row["parts"]) == ("nan", {"a": ["-inf", 1.5]})
    assert json.loads(tracker.path.with_name("config.json").read_text(), parse_constant=refuse) == {"limit": "inf"}


class Settings(Mapping):
    """As libraries of settings have them: no dictionary, and no constructor that takes pairs."""

    def __init__(self, **values):
        self.values_of = values

    def __getitem__(self, name):
        return self.values_of[name]

    def __iter__(self):
        return iter(self.values_of)

    def __len__(self):
        return len(self.values_of)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "tensorboard"])
def test_settings_may_be_of_any_kind(tmp_path, kind):
    if kind == "tensorboard":
        pytest.importorskip("tensorboard")
    accelerator = Accelerator(cpu=True, log_with=kind, project_dir=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what tensorboard's own dependencies deprecate
        accelerator.init_trackers("run", {"sizes": {(3, 4): 5, None: 6}, "model": Settings(depth=2), "rate": 0.5})
    accelerator.end_training()
    paths = (tmp_path / "run").glob("config.json" if kind != "tensorboard" else "*/hparams.yml")
    (text,) = [path.read_text() for path in paths]
    assert '"(3, 4)": 5' in text
    assert '"null": 6' in text
    assert '"depth": 2' in text


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_step_may_be_a_tensor(tmp_path, kind):
    accelerator = Accelerator(cpu=True, log_with=kind, project_dir=tmp_path)
    accelerator.init_trackers("run")
    accelerator.log({"loss": 1.0}, step=torch.tensor(3))
    accelerator.end_training()
    (row,) = (rows if kind == "csv" else lines)(tmp_path / "run" / f"metrics.{kind}")
    assert int(row["step"]) == 3


@pytest.mark.parametrize("kind", [CSVTracker, JSONLTracker])
def test_a_run_that_goes_on_appends_and_drops_half_a_line(tmp_path, kind):
    for step in (1, 2):
        tracker = kind("digits", tmp_path)
        tracker.start()
        tracker.log({"loss": step / 2, f"only{step}": 1}, step=step)
        tracker.finish()
        with tracker.path.open("a") as file:
            file.write('{"step": 3, "lo')  # the machine went down
    tracker.start()
    read = rows if kind is CSVTracker else lines
    assert [float(row["loss"]) for row in read(tracker.path)] == [0.5, 1.0]
    tracker.finish()
    with pytest.raises(ConfigurationError, match="is not open"):
        tracker.log({"loss": 1.0})


# packages


def test_tensorboard_writes_events_and_settings(tmp_path):
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what its own dependencies deprecate
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        accelerator = Accelerator(cpu=True, log_with="tensorboard", project_dir=tmp_path)
        accelerator.init_trackers("digits", {"lr": 0.5, "sizes": [1, 2]}, {"tensorboard": {"flush_secs": 1}})
        accelerator.log({"loss": torch.tensor(0.25), "note": "fine", "both": {"a": 1, "b": 2.0}}, step=4)
        accelerator.get_tracker("tensorboard", unwrap=True).add_scalar("own", 7, 5)
    with pytest.warns(UserWarning, match="tensorboard leaves out 'sizes': list is no number"):
        accelerator.log({"sizes": [1, 2]})
    accelerator.log({"sizes": [1, 2]})  # told once: a second warning would be an error here
    with pytest.warns(UserWarning, match="tensorboard leaves out 'both/name': str is no number"):
        accelerator.log({"both": {"c": 3, "name": "best"}})
    accelerator.end_training()
    events = EventAccumulator(str(tmp_path / "digits"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(4, 0.25)]
    assert [(e.step, e.value) for e in events.Scalars("own")] == [(5, 7.0)]
    assert "note/text_summary" in events.Tags()["tensors"]
    (settings,) = (tmp_path / "digits").glob("*/hparams.yml")
    assert settings.read_text() == '"lr": 0.5\n"sizes": [1, 2]\n'


def test_wandb_gets_a_run(stand_in):
    run = types.SimpleNamespace(
        config=types.SimpleNamespace(update=lambda *a, **k: calls.append(("config", a, k))),
        log=lambda *a, **k: calls.append(("log", a, k)),
        finish=lambda: calls.append(("finish",)),
    )
    calls = []

    def init(**options):
        calls.append(("init", options))
        return run

    stand_in("wandb", init=init, Image=lambda image: ("image", image), Table=lambda **parts: ("table", parts))
    accelerator = Accelerator(cpu=True, log_with="wandb")
    accelerator.init_trackers("digits", {"lr": 0.5}, {"wandb": {"name": "first"}})
    accelerator.log({"loss": 1.0}, step=2, log_kwargs={"wandb": {"commit": False}})
    accelerator.get_tracker("wandb").log_images({"samples": [1, 2]}, step=3)
    accelerator.get_tracker("wandb").log_table("t", ["a"], [[1]])
    assert accelerator.get_tracker("wandb", unwrap=True) is run
    accelerator.end_training()
    assert calls == [
        ("init", {"project": "digits", "name": "first"}),
        ("config", ({"lr": 0.5},), {"allow_val_change": True}),
        ("log", ({"loss": 1.0},), {"step": 2, "commit": False}),
        ("log", ({"samples": [("image", 1), ("image", 2)]},), {"step": 3}),
        ("log", ({"t": ("table", {"columns": ["a"], "data": [[1]], "dataframe": None})},), {"step": None}),
        ("finish",),
    ]


def test_mlflow_gets_parameters_in_portions_and_metrics(stand_in, monkeypatch):
    calls = []

    def function(name, result=None):
        return lambda *a, **k: calls.append((name, a, k)) or result

    stand_in(
        "mlflow",
        get_experiment_by_name=function("find"),
        create_experiment=function("create", "7"),
        start_run=function("start", "the run"),
        **{name: function(name) for name in ("log_params", "log_metrics", "log_artifact", "end_run")},
    )
    stand_in("mlflow.utils")
    stand_in("mlflow.utils.validation", MAX_PARAM_VAL_LENGTH=5, MAX_PARAMS_TAGS_PER_BATCH=2)
    monkeypatch.setenv("MLFLOW_TAGS", '{"a": "b"}')
    monkeypatch.setenv("MLFLOW_NESTED_RUN", "True")
    accelerator = Accelerator(cpu=True, log_with="mlflow")
    with pytest.warns(UserWarning, match="leaves out 'long'"):
        accelerator.init_trackers("digits", {"lr": 1, "long": "x" * 6, "b": 2, "c": 3}, {"mlflow": {"run_name": "r"}})
    with pytest.warns(UserWarning, match="leaves out 'note': str is no number"):
        accelerator.log({"loss": torch.tensor(0.5), "note": "x"}, step=1)
    assert accelerator.get_tracker("mlflow", unwrap=True) == "the run"
    accelerator.get_tracker("mlflow").log_artifact("file")
    accelerator.end_training()
    run = {"run_id": None, "run_name": "r", "nested": True, "tags": {"a": "b"}, "description": None}
    assert calls == [
        ("find", ("digits",), {}),
        ("create", (), {"name": "digits", "artifact_location": None, "tags": {"a": "b"}}),
        ("start", (), {"experiment_id": "7", **run}),
        ("log_params", ({"lr": 1, "b": 2},), {}),
        ("log_params", ({"c": 3},), {}),
        ("log_metrics", ({"loss": 0.5},), {"step": 1}),
        ("log_artifact", (), {"local_path": "file", "artifact_path": None}),
        ("end_run", (), {}),
    ]


# processes


def on_two_processes(folder):
    """One run: the main process writes, the others only where a tracker asks for it."""
    accelerator = Accelerator(cpu=True, log_with=["csv", Memory, Everywhere], project_dir=folder)
    accelerator.init_trackers("digits", {"lr": 1})
    accelerator.log({"rank": accelerator.process_index}, step=0)
    accelerator.get_tracker("csv").log({"rank": 10 + accelerator.process_index}, step=1)
    silent = accelerator.get_tracker("memory", unwrap=True)
    if not accelerator.is_main_process:
        silent.add_images("x", 1).flush()
    heard = accelerator.get_tracker("everywhere", unwrap=True)
    result = {"names": [tracker.name for tracker in accelerator.trackers], "heard": heard}
    try:
        accelerator.get_tracker("wandb")
    except ConfigurationError as error:
        result["unknown"] = str(error)
    result["marked"] = Marked().where()
    with accelerator.profile(ProfileKwargs(output_trace_dir=f"{folder}/all")):
        torch.ones(2).add(1)
    if accelerator.is_main_process:  # nobody waits for the others
        with accelerator.profile(ProfileKwargs(output_trace_dir=f"{folder}/main")):
            torch.ones(2).mul(1)
    accelerator.end_training()
    return result


class Marked(Memory):
    @on_main_process
    def where(self):
        return "here"


def test_only_the_main_process_writes_and_each_its_trace(tmp_path):
    main, other = run_ranks(on_two_processes, 2, str(tmp_path))
    assert rows(tmp_path / "digits" / "metrics.csv") == [{"step": "0", "rank": "0"}, {"step": "1", "rank": "10"}]
    assert main["names"] == ["csv", "memory", "everywhere"]
    assert other["names"] == ["everywhere"]
    assert other["heard"][-2:] == [("log", {"rank": 1}, 0, {}), ("finish",)]
    assert main["unknown"] == other["unknown"] == "there is no tracker 'wandb'. There are: csv, memory, everywhere."
    assert (main["marked"], other["marked"]) == ("here", None)
    traces = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("profile_*.json")}
    assert traces == {"all/profile_0.json", "all/profile_1.json", "main/profile_0.json"}
    events = json.loads((tmp_path / "all" / "profile_1.json").read_text())["traceEvents"]
    assert "aten::add" in {event["name"] for event in events}
