# Two commands do everything on a fresh machine that has Python 3.10+, make and pip:
#   make demo   convert a training script, run it before and after, compare the losses
#   make test   lint, types and tests
# Both create .venv when it is missing. Another interpreter: make PYTHON=python3.12 test
#   make bench  run the benchmarks and write docs/performance.md (takes long; pip install accelerate lightning to compare)

PYTHON ?= python3
FIXTURE ?= fixtures/classifier/before.py
# For the run on two processes: half the batch on each, so that a step sees the samples it saw on one.
HALF ?= --batch-size 16
WORKERS ?= 2
# Only some benchmarks: make bench BENCH="step start"
BENCH ?=

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo bench test lint types unit format clean help

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.runtime
	@$(PY) docs/demo.py $(FIXTURE) -- $(HALF)

test: lint types unit

lint: $(VENV)/.dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(VENV)/.dev
	$(PY) -m mypy

# One thread a process: the tests start processes of their own, and sums must not depend on the machine.
unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS)

bench: $(VENV)/.dev
	$(PY) bench/report.py $(BENCH)

format: $(VENV)/.dev
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

clean:
	rm -rf $(VENV) .demo build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed, and $(PYTHON) is %d.%d; try: make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

# Stamps: an install is repeated when what it depends on changes. Editable in both, so that the demo never runs an old copy.
$(VENV)/.runtime: pyproject.toml constraints.txt | $(PY)
	@echo "installing (once; torch is large) ..."
	@$(PIP) -e '.[runtime]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(PY)
	@echo "installing (once; torch is large) ..."
	@$(PIP) -e '.[runtime,dev]'
	@touch $@ $(VENV)/.runtime
