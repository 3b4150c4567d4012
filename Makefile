# Everything runs from .venv; the two commands for a fresh machine are `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install browser shells nats-tool demo demo-super test test-quick test-pythons test-spark-long test-spark-oldest
.PHONY: fuzz-lane wheels test-mutants
.PHONY: fuzz check format lint types contracts tidy bench bench-spark pictures man conformance clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

LANE := $(patsubst %,jsctl/broker/accel/_%.c,lane columns sockets syncs)

$(STAMP): pyproject.toml constraints.txt $(LANE)
	@command -v $(PYTHON) >/dev/null || { echo "python3 (3.11 or newer) is needed"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

BROWSERS := chromium chromium-browser google-chrome google-chrome-stable

install: $(STAMP) ## make .venv with everything the other targets need

APT := apt-get -qq -o Acquire::Retries=3
MAY_INSTALL := [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null
DEBIAN := $(APT) update && DEBIAN_FRONTEND=noninteractive $(APT) -y install --no-install-recommends

browser: ## a Chromium for the test of the dashboard's page, from Debian's packages if there is none
	@for name in "$$JSCTL_CHROMIUM" $(BROWSERS); do \
		command -v "$$name" && exit 0; \
	done; \
	{ $(MAY_INSTALL); } || { \
		echo "install a Chromium, or name one in JSCTL_CHROMIUM; without, its test is skipped"; \
		exit 1; \
	}; \
	$(DEBIAN) chromium >/dev/null

shells: ## zsh and fish for the tests of completion, from Debian's packages if they are not there
	@command -v zsh && command -v fish && exit 0; \
	{ $(MAY_INSTALL); } || { \
		echo "install zsh and fish; without, their completion is not tested"; \
		exit 1; \
	}; \
	$(DEBIAN) zsh fish >/dev/null

NATS_TOOL := 0.5.1

nats-tool: install ## the real `nats` command for the parity tests, built where Go is
	@if [ "$$($(BIN)/nats --version 2>/dev/null)" = "v$(NATS_TOOL)" ]; then \
		exit 0; \
	fi; \
	command -v go >/dev/null \
		|| { echo "Go is needed; without it the parity tests are skipped"; exit 1; }; \
	CGO_ENABLED=0 GOBIN=$(abspath $(BIN)) go install \
		-ldflags "-X main.version=v$(NATS_TOOL)" \
		github.com/nats-io/natscli/nats@v$(NATS_TOOL) && $(BIN)/nats --version

demo: install ## a five-server cluster on loopback, real data in, the reports out (KEEP=1 leaves it up)
	$(BIN)/python -m jsctl.demo $(if $(KEEP),--keep)

demo-super: install ## two clusters of three servers as a super-cluster: a stream that moves, a cluster that dies
	$(BIN)/python -m jsctl.demo_super

# Python's own cache of compiled modules: without it every process that a test starts, and every
# worker, compiles all that it imports again.
unexport PYTHONDONTWRITEBYTECODE

# Four workers more than there are processors, as most tests wait for servers most of the time. A file
# stays with one worker, so that its tests share servers; so do those with a Spark session.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 4)
PARALLEL := -n $(JOBS) --dist loadfile --no-loadscope-reorder

COMPILED := $(VENV)/.compiled

# In a fresh clone each worker would compile each test, all of them at the same time.
$(COMPILED): $(STAMP)
	@$(BIN)/python -m pytest -q --collect-only -p no:xdist tests/broker >/dev/null & \
		$(BIN)/python -m pytest -q --collect-only -p no:xdist --ignore tests/broker >/dev/null; \
		wait; touch $@

test: install $(COMPILED) ## all tests
	$(BIN)/python -m pytest -q $(PARALLEL)

# Nothing in it waits, so one worker for each processor.
test-quick: install ## the tests without servers, in a minute
	$(BIN)/python -m pytest -q --quick $(PARALLEL) -n $$(getconf _NPROCESSORS_ONLN)

# The venv of each is kept beside .venv; a Python that is not there is said, not passed over.
PYTHONS := 3.11 3.12 3.13 3.14
TLS_TESTS := tests/broker/server/test_tls.py tests/client/test_tls.py tests/spark/test_login.py

test-pythons: ## the quick tests and those of TLS on each Python from 3.11 to 3.14 that is found
	@status=0; for version in $(PYTHONS); do \
		found=$$(command -v python$$version) && "$$found" -c '' 2>/dev/null \
			|| { echo "== Python $$version: not found"; continue; }; \
		venv=.venv-$$version; echo "== $$("$$found" --version)"; \
		"$$found" -m venv $$venv \
			&& $$venv/bin/pip install --quiet --disable-pip-version-check \
				-c constraints.txt -e '.[dev]' \
			&& $$venv/bin/python -m pytest -q --quick $(PARALLEL) \
			&& $$venv/bin/python -m pytest -q $(TLS_TESTS) || status=1; \
	done; exit $$status

SECONDS ?= 60

fuzz: install ## hostile input for every port and format, SECONDS=60 in all
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

# With warnings as errors, which an installation must not depend on.
SANITIZED := $(patsubst jsctl/broker/accel/%.c,build/sanitized/%.abi3.so,$(LANE))
SANITIZERS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all \
	-DTIGHT
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Werror -Wno-missing-field-initializers \
	-Wno-cast-function-type

build/sanitized/%.abi3.so: jsctl/broker/accel/%.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -fPIC -shared $(WARNINGS) $(SANITIZERS) \
		-I"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')" \
		$< -o $@

fuzz-lane: install $(SANITIZED) ## the compiled loops with sanitizers: their tests, and hostile input
	export LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc JSCTL_LANE_BUILD=build/sanitized; \
	$(BIN)/python -m pytest -q -p tests.support.lane_build -p no:xdist tests/broker/accel \
		tests/broker/sessions/test_lane_twins.py \
		tests/broker/sessions/test_lane_crowd.py tests/broker/server/test_looks.py \
	&& $(BIN)/python -m tests.fuzz --seconds $(SECONDS) --target lane --target lane-tables \
		--target columns

wheels: install ## a wheel for this machine and Python 3.11 and later, in dist/
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -w dist .
	@ls dist/*.whl

test-spark-long: install ## the long Spark tests: kills, clusters, the oldest PySpark
	$(BIN)/python -m pytest -q -m spark_long tests/spark
	$(MAKE) test-spark-oldest

test-mutants: install ## planted bugs and fixed seeds for which `make test` has no time in the simulator
	$(BIN)/python -m pytest -q -m mutants $(PARALLEL) tests/simulation

OLDEST := .venv-oldest
SHORT_KILLS := not twenty and not many and not counts

test-spark-oldest: ## reading, kills and places, also Connect, with the oldest PySpark
	$(PYTHON) -m venv $(OLDEST)
	grep -v '^pyspark==' constraints.txt > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check \
		-c $(OLDEST)/constraints.txt -e '.[dev]' 'pyspark[connect]==4.2.0'
	$(OLDEST)/bin/python -m pytest -q -m "" -k "$(SHORT_KILLS)" tests/spark/test_places.py \
		tests/spark/test_reading.py tests/spark/test_kills.py tests/spark/pipeline/test_kills.py

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
	$(BIN)/python -m pytest -q tests/test_tidy.py tests/test_architecture.py tests/test_whole_parts.py

bench: install ## ratios against nats-server on this machine
	$(BIN)/python -m benchmarks

# nats.py's suites ask for a newer Python than the package does.
SUITES_PYTHON ?= python3.13

conformance: install ## clients' suites on both servers: make conformance CHECKOUT=nats.py [C=nats.c] [JS=nats.js] [JAVA=nats.java] [RS=nats.rs] [RUNS=3]
	@test -n "$(CHECKOUT)$(C)$(JS)$(JAVA)$(RS)" \
		|| { echo "CHECKOUT=DIR of nats.py is needed, or C=DIR, JS=DIR, JAVA=DIR, RS=DIR"; exit 1; }
	$(BIN)/python -m tests.conformance --python $(SUITES_PYTHON) $(if $(RUNS),--runs $(RUNS)) \
		$(if $(C),--c $(C)) $(if $(JS),--js $(JS)) $(if $(RS),--rs $(RS)) \
		$(if $(JAVA),--java $(JAVA)) $(if $(JAVA_RUNNER),--java-runner $(JAVA_RUNNER)) $(CHECKOUT)

pictures: install ## the pictures of the dashboard in docs/pictures
	TZ=UTC COLORTERM=truecolor $(BIN)/python -m tests.dashboard.pictures docs/pictures

man: install ## manual pages, a file for each command, in build/man
	@mkdir -p build/man
	@$(BIN)/jsctl --help-man > build/man/jsctl.1
	@for name in $$($(BIN)/jsctl __complete -- "" | cut -f1); do \
		$(BIN)/jsctl $$name --help-man > build/man/jsctl-$$name.1 || exit 1; \
	done; ls build/man

bench-spark: install ## Spark beside nats-py, on both servers
	$(BIN)/python -m benchmarks.spark

clean: ## remove .venv and caches
	rm -rf $(VENV) $(OLDEST) .venv-conformance .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
