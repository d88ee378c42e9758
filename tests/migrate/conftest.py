"""Files in, what becomes of them out."""

import textwrap

import pytest

from migrate.options import Mode, Options
from migrate.pipeline import run


@pytest.fixture
def converted(tmp_path, monkeypatch):
    """Gives back the report and the files after a run over files by name."""
    monkeypatch.chdir(tmp_path)

    def convert(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        report = run(["."], Options(mode=Mode.WRITE))
        return report, {name: (tmp_path / f"{name}.py").read_text() for name in files}

    return convert
