# Every entry point of the project; `make` or `make help` lists them.
# All that is made lies in .venv/ and build/ of this checkout.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
READY := $(VENV)/.ready
RECIPES := build/recipes
DOCS := build/docs-venv
UNPACKED := --config-settings-package=pyspark:--build-option=--compression=stored
PLATFORMS := --constraint tests/recipes-constraints.txt --editable '.[dev]' apache-airflow-providers-cncf-kubernetes apache-airflow-providers-google
SITE := --constraint constraints.txt --group docs

DEPLOY := build/deploy
# $(call program,NAME,GO_PACKAGE): a link to the program on the PATH, or the program made by Go.
program = @mkdir -p $(DEPLOY)/bin; if command -v $(1) >/dev/null; then ln -sf "$$(command -v $(1))" $@; elif command -v go >/dev/null; then echo "compiling $(1), once"; GOBIN=$(CURDIR)/$(DEPLOY)/bin go install $(2); else echo "$(1) is needed: put it on the PATH, or Go to compile it"; exit 1; fi
BASE ?= python:3.13-slim
IMAGE ?= airflow-mm2-offsets

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-disaster up down spark-cluster test unit integration recipes e2e long soak mutants bench bench-spark bench-api bench-xcom compat compat-ci jar-lists record check lint types contracts format clean docs man release installed image chart workflows

help:  ## List the entry points
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Make the virtual environment from constraints.txt

$(DEMO): pyproject.toml constraints.txt
	@$(PYTHON) -m stack.setup demo
	@touch $@

$(READY): $(DEMO)
	@$(PYTHON) -m stack.setup dev
	@touch $@

demo: $(DEMO)  ## Move a running Spark job between two real clusters, and print the proof
	@$(BIN)/python -m demo

demo-disaster: $(DEMO)  ## Lose the source in mid-stream, and show what was told beside the truth
	@$(BIN)/python -m demo disaster

up: $(DEMO)  ## Start clusters, MirrorMaker 2, Airflow and the job, to look around in
	@$(BIN)/python -m demo up

down: $(DEMO)  ## Stop what `make up` started
	@$(BIN)/python -m demo down

spark-cluster: $(READY)  ## Run a Spark standalone cluster, one master and two workers, until Ctrl-C
	@$(BIN)/python -m stack.spark_cluster

# The failovers wait most of the time: what starts no server runs beside them.
test: $(READY) $(RECIPES)/.ready  ## Run all tests but the longest, in less than half an hour
	@$(MAKE) --no-print-directory --jobs 2 e2e unit recipes
	@$(MAKE) --no-print-directory integration

unit: $(READY)  ## Run the tests without I/O
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile tests/unit

# They wait more than they work: three processes for two cores.
integration: $(READY)  ## Run the tests on real Kafka and MirrorMaker 2 (containers, or local JVMs)
	@$(BIN)/python -m pytest --numprocesses 3 -m "not long" tests/integration

recipes: $(RECIPES)/.ready  ## Run the recipes whose providers need an environment of their own
	@$(RECIPES)/bin/python -m pytest -W default tests/integration/test_recipes.py -k "kubernetes or dataproc"

$(RECIPES)/.ready: $(READY) tests/recipes-constraints.txt
	@echo "making the environment of Kubernetes' and Google's providers (once, about a minute)"
	@$(BIN)/uv venv --quiet --clear --seed --python $(BIN)/python $(RECIPES)
	@$(BIN)/uv pip install --quiet --python $(RECIPES)/bin/python $(UNPACKED) $(PLATFORMS) || $(RECIPES)/bin/python -m pip install --quiet $(PLATFORMS)
	@touch $@

e2e: $(READY)  ## Run the failover on real Airflow, Spark, Kafka and MirrorMaker 2
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m "not long" tests/e2e

long: $(READY)  ## Run the longest tests, which make test leaves out (three quarters of an hour)
	@$(BIN)/python -m pytest -m long tests/integration tests/e2e

soak: $(READY)  ## Run the soaks that are not proved on this code, or those of NAME (hours)
	@$(BIN)/python -m tests.soaks $(NAME)

mutants: $(READY)  ## Change the rule in 60 small ways, and print which changes no test notices (hours)
	@nice $(BIN)/python -m tests.support.mutants

bench: $(READY)  ## Measure accuracy and speed beside MirrorMaker 2's own OffsetSyncStore
	@$(BIN)/python -m benchmarks

bench-spark: $(READY)  ## Measure the translation of columns in Spark, beside a pandas UDF
	@$(BIN)/python -m benchmarks.spark_bulk

bench-api: $(READY)  ## Measure the REST API under load, with wrk
	@$(BIN)/python -m benchmarks.api

bench-xcom: $(READY)  ## Measure what a failover of 10,000 partitions leaves in Airflow's database
	@$(BIN)/python -m benchmarks.xcom

compat: $(READY)  ## Test every version of docs/versions.md, and rewrite its table (hours)
	@$(BIN)/python -m nox; status=$$?; $(BIN)/python -m benchmarks.versions; exit $$status

compat-ci: $(READY)  ## Test the oldest and newest libraries that need no server
	@$(BIN)/python -m nox --tags ci

jar-lists: $(READY)  ## Write stack/jar_lists again, after a change of the Ivy files
	@$(BIN)/python -m stack.ivy

record: $(READY)  ## Record runs of each MirrorMaker 2 version into tests/golden
	@$(BIN)/python -m tests.support.recording

docs: $(DOCS)/.ready  ## Build the documentation site into build/site; warnings are errors
	@$(DOCS)/bin/python -m docsite

$(DOCS)/.ready: pyproject.toml constraints.txt
	@echo "making the environment of the documentation site (once, a few seconds)"
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(DOCS)/bin/uv pip install --quiet --python $(DOCS)/bin/python $(SITE) || { $(DOCS)/bin/python -m pip install --quiet --upgrade 'pip>=25.1' && $(DOCS)/bin/python -m pip install --quiet $(SITE); }
	@touch $@

man: $(READY)  ## Write the manual pages of the command line into build/man
	@$(BIN)/python -m airflow_mm2_offsets.cli.man build/man

release: $(READY)  ## Write wheel, sdist, checksums and bill of materials into build/release
	@$(BIN)/python -m release

installed: $(READY)  ## Install the wheel with Airflow and without constraints, and import the example DAGs
	@$(BIN)/python -m release.installed

image: $(READY)  ## Build the image of the REST API from BASE, start it without rights, and ask it
	@docker build --build-arg BASE=$(BASE) --tag $(IMAGE) .
	@IMAGE=$(IMAGE) $(BIN)/python -m pytest -s tests/deploy/test_image.py

chart: $(READY) $(DEPLOY)/bin/helm $(DEPLOY)/schemas/.ready  ## Lint the Helm chart, and compare all its variants with Kubernetes' schemas
	@$(BIN)/python -m pytest --numprocesses 2 tests/deploy/test_chart.py

# Where the program is not on the PATH, Go compiles it; the bill is some minutes, once.
$(DEPLOY)/bin/helm:
	$(call program,helm,helm.sh/helm/v4/cmd/helm@v4.3.1)

$(DEPLOY)/schemas/.ready: $(READY) release/constraints.txt
	@$(BIN)/uv pip install --quiet --no-deps --constraints release/constraints.txt --target $(DEPLOY)/schemas kubernetes-validate
	@touch $@

workflows: $(READY) $(DEPLOY)/bin/actionlint  ## Check the files of .github/workflows
	@$(DEPLOY)/bin/actionlint
	@$(BIN)/uv tool run --quiet --constraints release/constraints.txt zizmor --offline --quiet --pedantic .github/workflows

$(DEPLOY)/bin/actionlint:
	$(call program,actionlint,github.com/rhysd/actionlint/cmd/actionlint@v1.7.12)

check: lint types contracts  ## Run linters, types and the contracts between rooms

lint: $(READY)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/vermin --quiet --no-tips --violations --target=3.9- airflow_mm2_offsets/job

types: $(READY)
	@$(BIN)/mypy

contracts: $(READY)
	@$(BIN)/lint-imports

format: $(READY)  ## Format the code
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean:  ## Remove what was made
	@rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
