"""MLflow: one run of the experiment that has the project's name."""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any

from runtime.config import OFF
from runtime.tracking.base import GeneralTracker, Omissions, plain


class MLflowTracker(GeneralTracker):
    """Settings become parameters, numbers metrics.

    MLFLOW_EXPERIMENT_NAME, MLFLOW_RUN_ID, MLFLOW_TAGS and MLFLOW_NESTED_RUN go before the arguments, as in Accelerate.

    Args:
        logging_dir: where a new experiment keeps its artifacts.
        run_id: a run to go on with.
        tags: of the run and of a new experiment; a text is read as JSON.
    """

    name = "mlflow"
    requires_logging_directory = False
    packages = ("mlflow",)

    def __init__(
        self,
        experiment_name: str | None = None,
        logging_dir: str | os.PathLike[str] | None = None,
        run_id: str | None = None,
        tags: dict[str, Any] | str | None = None,
        nested_run: bool = False,
        run_name: str | None = None,
        description: str | None = None,
    ) -> None:
        super().__init__()
        environ = os.environ
        tags = environ.get("MLFLOW_TAGS", tags)
        nested = environ.get("MLFLOW_NESTED_RUN")
        self._experiment = environ.get("MLFLOW_EXPERIMENT_NAME", experiment_name)
        self._tags = json.loads(tags) if isinstance(tags, str) else tags
        self._place = None if logging_dir is None else os.fspath(logging_dir)
        self._run = {
            "run_id": environ.get("MLFLOW_RUN_ID", run_id),
            "run_name": run_name,
            "nested": nested_run if nested is None else nested.lower() not in OFF,
            "tags": self._tags,
            "description": description,
        }
        self._omissions = Omissions(self.name)
        self._mlflow: Any = None
        self.active_run: Any = None

    @property
    def tracker(self) -> Any:
        """The active run."""
        return self.active_run

    def start(self) -> None:
        self._mlflow = mlflow = import_module("mlflow")
        found = mlflow.get_experiment_by_name(self._experiment)
        if found is None:
            identity = mlflow.create_experiment(name=self._experiment, artifact_location=self._place, tags=self._tags)
        else:
            identity = found.experiment_id
        self.active_run = mlflow.start_run(experiment_id=identity, **self._run)

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Settings as parameters, in as many calls as the server's limits ask for."""
        limits = import_module("mlflow.utils.validation")
        kept: list[tuple[str, Any]] = []
        for key, value in values.items():
            if len(str(value)) <= limits.MAX_PARAM_VAL_LENGTH:
                kept.append((key, value))
            else:
                self._omissions.tell(key, f"a parameter has at most {limits.MAX_PARAM_VAL_LENGTH} characters.")
        most = limits.MAX_PARAMS_TAGS_PER_BATCH
        for start in range(0, len(kept), most):
            self._mlflow.log_params(dict(kept[start : start + most]))

    def log(self, values: dict[str, Any], step: int | None = None, **options: Any) -> None:
        metrics = {}
        for key, value in plain(values).items():
            if isinstance(value, (int, float)):
                metrics[key] = value
            else:
                self._omissions.tell(key, f"{type(value).__name__} is no number, and metrics are numbers.")
        self._mlflow.log_metrics(metrics, step=step, **options)

    def log_figure(self, figure: Any, artifact_file: str, **options: Any) -> None:
        """A figure as an artifact of the run."""
        self._mlflow.log_figure(figure=figure, artifact_file=artifact_file, **options)

    def log_artifact(self, local_path: str, artifact_path: str | None = None) -> None:
        """A file as an artifact of the run."""
        self._mlflow.log_artifact(local_path=local_path, artifact_path=artifact_path)

    def log_artifacts(self, local_dir: str, artifact_path: str | None = None) -> None:
        """All files of a folder as artifacts of the run."""
        self._mlflow.log_artifacts(local_dir=local_dir, artifact_path=artifact_path)

    def finish(self) -> None:
        self._mlflow.end_run()
