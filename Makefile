# make demo | make test are all a newcomer needs: each sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Files of tests side by side; those of one file in turn, because they share fixtures.
# One thread each for BLAS and torch: the files have the cores already.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: setup demo test test-fast fuzz lint docs wheel bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup
	$(BIN)/stct demo -o demo-output --overwrite

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(PYTEST)

test-fast: setup
	$(PYTEST) -m "not slow"

# 10,000 mutated inputs, every fault of the disk, 100 kills; goes on where it stopped.
fuzz: setup
	$(BIN)/python tests/fuzz/run.py --cases 10000
	$(BIN)/python tests/fuzz/kill.py --kills 100
	STCT_FUZZ=1 $(PYTEST) tests/fuzz

# The documentation, examples included, into site/; a warning is an error.
docs: setup
	$(BIN)/sphinx-build -q -W --keep-going -b html -c docs . site

# The wheel in an empty environment without extras: what `pip install` gives a user.
wheel:
	$(PYTHON) .ci/light_install.py

bench: setup
	$(BIN)/python benchmarks/correct.py

clean:
	rm -rf $(VENV) demo-output build dist site docs/gallery docs/generated .mypy_cache .pytest_cache .ruff_cache
