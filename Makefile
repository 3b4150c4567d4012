# Everything runs from .venv; the two commands for a fresh machine are `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-spark-long check format lint types contracts tidy bench bench-spark clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "python3 (3.11 or newer) is needed"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

install: $(STAMP) ## make .venv with everything the other targets need

demo: install ## a five-server cluster on loopback, real data in, the reports out (KEEP=1 leaves it up)
	$(BIN)/python -m jsctl.demo $(if $(KEEP),--keep)

test: install ## all tests
	$(BIN)/python -m pytest -q

test-spark-long: install ## the long Spark tests: kills, clusters, other versions
	$(BIN)/python -m pytest -q -m spark_long tests/spark

check: format lint types contracts tidy ## what CI checks besides the tests

format: install ## formatting, checked
	$(BIN)/ruff format --check .

lint: install ## ruff
	$(BIN)/ruff check .

types: install ## mypy --strict
	$(BIN)/mypy

contracts: install ## who may import whom
	$(BIN)/lint-imports --no-cache

tidy: install ## the house rules
	$(BIN)/python -m pytest -q tests/test_tidy.py

bench: install ## ratios against nats-server on this machine
	$(BIN)/python -m benchmarks

bench-spark: install ## Spark beside nats-py, on both servers
	$(BIN)/python -m benchmarks.spark

clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
