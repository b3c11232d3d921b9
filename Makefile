# `make` lists the commands. `make demo` and `make test` do all their own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test check fix bench setup setup-dev clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "evalharness needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.base: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[track,sim]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@ $(VENV)/.base

setup: $(VENV)/.base ## Install the command with MLflow and numba into .venv (no torch)

setup-dev: $(VENV)/.dev ## Install what recording, tests and checks need (torch for CPU included)

demo: $(VENV)/.base ## Run the reference diagnosers on the shipped cases and walk through two
	@$(BIN)/python -m harness.demo

test: $(VENV)/.dev ## Set up what the tests need and run them
	$(BIN)/python -m pytest

check: $(VENV)/.dev ## Format, lint, types and import direction, without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(VENV)/.dev ## Format and mend what can be mended automatically
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev ## Measure the project's own speed as ratios
	$(BIN)/python -m tests.bench

clean: ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
