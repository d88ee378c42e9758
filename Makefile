# Two commands do everything on a fresh machine that has Python 3.10+, make and pip:
#   make demo   convert a training script, run it before and after, compare the losses
#   make test   lint, types and tests
#   make test-long   the tests that take minutes: verifications, several machines, kills, the tutorial, the stand-in for a TPU
# Both create .venv when it is missing. Another interpreter: make PYTHON=python3.12 test
#   make torture   20,000 programs that nobody would write, kills, full disks, hostile files; writes docs/reliability.md (half an hour;
#               a part of it: make torture INPUTS=1000)
#   make test-xla, make test-tpu-contract   in environments of their own (1 to 2 GB each): torch_xla on XLA's CPU client,
#               and whether the real torch_tpu is what the stand-in for it imitates; neither needs a TPU
#   make test-gpu   the runtime and the fixtures on a GPU, which torch in .venv must be built for; one GPU is enough
#   make test-wheel PYTHON=python3.13 WITH='libcst==1.8.0 typer==0.24.2 torch==2.6.0'   the tests on the wheel, in a fresh
#               environment of that Python, with these versions; without WITH the newest that are allowed
#   make coverage   which branches of analysis, edits, rules and the runtime's data the tests go through (half an hour)
#   make docs   the documentation as a site, in site/: opens from the disk
#   make bench  run the benchmarks and write docs/performance.md (takes long; pip install accelerate lightning to compare)

PYTHON ?= python3
FIXTURE ?= fixtures/classifier/before.py
# For the run on two processes: half the batch on each, so that a step sees the samples it saw on one.
HALF ?= --batch-size 16
WORKERS ?= 2
# How many programs `make torture` makes up; which ones follows from the seed.
INPUTS ?= 20000
SEED ?= 0
# What `make test-wheel` installs beside the wheel, and the tests that it runs: those that do not change our sources.
WITH ?=
ON_WHEEL ?= $(addprefix tests/,migrate runtime end_to_end compat) --ignore tests/migrate/wrong
# Only some benchmarks: make bench BENCH="step start"
BENCH ?=

# What the tests of `make coverage` are: those of the parts that it looks at, and whole conversions.
COVERING := $(addprefix tests/migrate/,analysis edits programs rules test_bad_input.py test_explain_role.py test_fixtures.py \
	test_likely.py test_outsiders.py test_parts.py test_reviewing.py test_trainer_families.py test_unnamed_files.py test_views.py) \
	$(addprefix tests/runtime/test_,accelerator.py dispatch.py evaluation.py filling.py pieces.py plan.py prefetch.py project.py \
	replicas.py resume.py seeded.py state.py streams.py training.py uneven.py workers.py)

# torch_xla and torch_tpu want versions of torch of their own.
XLA_VENV ?= .venv-xla
TPU_VENV ?= .venv-tpu
# The wheel, an environment for it, and the tests.
WHEEL := .wheel

VENV := .venv
PY := $(VENV)/bin/python
INSTALL := $(PY) -m pip --disable-pip-version-check install --quiet
# LOCKED=1, as in CI: all but torch is installed by its hash first, and nothing is fetched to build with.
LOCKED ?=
PIP := $(INSTALL) $(if $(LOCKED),--no-build-isolation) -c constraints.txt

.PHONY: demo docs bench coverage test test-long test-gpu torture test-xla test-tpu-contract test-wheel lint types unit format clean help

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

# One process: what it starts (ranks, workers) is measured as well.
coverage: $(VENV)/.dev
	@rm -rf .coverage
	OMP_NUM_THREADS=1 $(PY) -m coverage run -m pytest -q $(COVERING)
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage json --quiet -o .coverage/branches.json
	@$(PY) tests/branches.py .coverage/branches.json

test-xla: $(VENV)/.dev $(XLA_VENV)/.ready
	TORCH_XLA_PYTHON=$(abspath $(XLA_VENV))/bin/python $(PY) -m pytest -n $(WORKERS) --dist worksteal tests/xla

test-tpu-contract: $(VENV)/.dev $(TPU_VENV)/.ready
	TORCH_TPU_PYTHON=$(abspath $(TPU_VENV))/bin/python $(PY) -m pytest tests/tpu_contract

test-long: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) -m long

test-gpu: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) tests/gpu
	OMP_NUM_THREADS=1 FIXTURES_ON=gpu $(PY) -m pytest -n $(WORKERS) tests/end_to_end

# The tests and what they read lie in a repository of their own without the packages: only the wheel has these.
test-wheel:
	@rm -rf $(WHEEL) && mkdir -p $(WHEEL)/tree
	$(PYTHON) -m venv $(WHEEL)/venv
	$(WHEEL)/venv/bin/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	$(WHEEL)/venv/bin/python -m pip --disable-pip-version-check install --quiet "$$(ls -d $(abspath $(WHEEL))/*.whl)[runtime,dev]" $(WITH)
	git archive HEAD | tar -x -C $(WHEEL)/tree
	rm -r $(WHEEL)/tree/migrate $(WHEEL)/tree/runtime
	git init --quiet $(WHEEL)/tree
	cd $(WHEEL)/tree && OMP_NUM_THREADS=1 ../venv/bin/pytest -n $(WORKERS) $(ON_WHEEL)

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "site/index.html"

# Beside its own tests those of the same kind that `make test` runs, too.
torture: $(VENV)/.dev
	@rm -rf .torture
	OMP_NUM_THREADS=1 TORTURE_INPUTS=$(INPUTS) TORTURE_SEED=$(SEED) TORTURE_PAGE=1 $(PY) -m pytest -n $(WORKERS) --dist worksteal \
		-m "torture or not long" tests/torture tests/migrate/test_kill.py tests/migrate/test_files.py \
		tests/migrate/test_bad_input.py tests/migrate/analysis/test_robustness.py tests/migrate/edits/test_properties.py

bench: $(VENV)/.dev
	$(PY) bench/report.py $(BENCH)

format: $(VENV)/.dev
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

clean:
	rm -rf $(VENV) $(XLA_VENV) $(TPU_VENV) $(WHEEL) .demo build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

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
	@$(if $(LOCKED),$(INSTALL) --require-hashes -r .ci/requirements.txt)
	@$(PIP) -e '.[runtime,dev,docs]'
	@touch $@ $(VENV)/.runtime

# Without torch's own dependencies: its build of 2.9 brings gigabytes of CUDA libraries, in whose place empty ones stand.
$(XLA_VENV)/.ready: tests/xla/requirements.txt tests/xla/nvidia.py
	$(PYTHON) -m venv $(XLA_VENV)
	$(XLA_VENV)/bin/python -m pip install --quiet --no-deps torch==2.9.0 torch_xla==2.9.0
	$(XLA_VENV)/bin/python -m pip install --quiet -r tests/xla/requirements.txt
	$(XLA_VENV)/bin/python tests/xla/nvidia.py
	@touch $@

$(TPU_VENV)/.ready: tests/tpu_contract/requirements.txt
	$(PYTHON) -m venv $(TPU_VENV)
	$(TPU_VENV)/bin/python -m pip install --quiet -r tests/tpu_contract/requirements.txt
	@touch $@
