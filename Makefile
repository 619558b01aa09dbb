# `make help` lists what there is. Everything runs in .venv, which the first target that needs it creates.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
HUDI_VENV ?= .venv-hudi
S3_VENV ?= .venv-s3
DBT ?= 1.10
DBT_TESTS ?= tests/dbt
DBT_VENV ?= .venv-dbt-$(DBT)
HUDI_JARS ?= .cache/hudi
HBASE ?= .cache/hbase
S3A_JARS ?= .cache/s3a
EMULATORS ?= .cache/emulators
AZURITE ?= 3.37.0
FAKE_GCS_SERVER ?= v1.56.1
HUDI_VERSIONS ?= 0.15.0 1.2.0
PYTEST_ARGS ?=

BIN := $(abspath $(VENV))/bin
PYTEST := $(BIN)/python -m pytest $(PYTEST_ARGS)
SOURCES := $(wildcard lakehouse_engine dbt tests integration_tests benchmarks)
HUDI_BUNDLE := hudi-spark3.5-bundle_2.12
DEMO := examples/demo
STORE_ENGINE := $(addprefix tests/,$(addprefix unit/,write read undo services commit repair) model_based conformance)
STORE_DBT := tests/dbt/functional

.DEFAULT_GOAL := help
.PHONY: help java setup demo run check test nightly deep units writes-large writes-small spark-merged crash-pairs core spark cluster connect dbt dbt-side-by-side dbt-versions packages integration interop object-store object-store-engine object-store-hudi object-store-others object-store-others-setup object-store-setup interop-setup lint types format wheel lock bench bench-scale bench-growth bench-skipping bench-cloning hbase hbase-setup docs clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##  -- use
setup: $(VENV)/.installed ## create .venv with the locked dependencies and this project

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed; set PYTHON=python3.11 or the like")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

java:
	@command -v java >/dev/null || { echo "Java 17 is needed on the PATH (Debian: apt-get install openjdk-17-jre-headless)"; exit 1; }

demo: setup java ## build a small dbt project on embedded Spark, twice, and query the result
	@cd $(DEMO) && rm -rf lakehouse target && export DBT_PROFILES_DIR=. && \
	echo "-- first day: seeds, views, Hudi tables, tests" && \
	$(BIN)/dbt build --vars '{through: "2026-01-01"}' && \
	echo "-- second day: changed and new orders go into the same tables" && \
	$(BIN)/dbt build --exclude resource_type:seed --vars '{through: "2026-01-02"}' && \
	$(BIN)/dbt show --limit 10 --inline "select * from {{ ref('revenue_by_country') }} order by revenue desc"

run: demo ## the same as demo

##  -- check
# A lane is a suite of tests that need the same things. Alone it is run whole; with LIMITED=1, as `make test` runs it, for about so many
# seconds by tests/durations.json: those of tests/support/smoke.py, then those nearest to the changed files (CHANGED="a.py b.py" names them), then
# others in turn (tests/support/selection.py).
limit = $(if $(LIMITED),--seconds=$(1) $(if $(CHANGED),--changed="$(CHANGED)"))
# `test` has looked for Java; a prerequisite that is still being made would move a lane behind all others.
java-of-lane = $(if $(LIMITED),,java)

check: lint types ## lint, types, and what of the tests without a JVM is nearest to the changed files: five minutes
	$(PYTEST) tests/unit tests/dbt/unit tests/contracts tests/test_*.py --seconds=150 $(if $(CHANGED),--changed="$(CHANGED)")

# Every lane is run, also after one has failed; make's own exit status then says so. Two run side by side: most of a lane on Spark waits.
test: setup java ## lint, types and every lane, limited to 40 minutes in all (lanes of what cannot be fetched are skipped)
	-@$(MAKE) --no-print-directory --keep-going interop-setup object-store-setup
	@status=0; \
	$(MAKE) --no-print-directory --keep-going lint types || status=1; \
	$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=line LIMITED=1 core dbt interop spark integration object-store connect cluster || status=1; \
	exit $$status

# A night on two cores. Parts run two side by side, each into .nightly/<part>.log; PARTS="deep spark" runs some of them, as after one failed.
PARTS ?= deep units dbt interop spark connect object-store object-store-engine integration cluster writes-large writes-small spark-merged crash-pairs \
	object-store-others dbt-side-by-side
nightly: setup java ## every lane whole, and as deep as tests go, by both implementations of what has two: a night
	-@$(MAKE) --no-print-directory --keep-going interop-setup object-store-setup object-store-others-setup
	@export LAKEHOUSE_DEPTH=full LAKEHOUSE_EXPLORER_SCHEDULES=$${LAKEHOUSE_EXPLORER_SCHEDULES:-60} LAKEHOUSE_KILLS=300 LAKEHOUSE_KILLED_RUNS=3; \
	$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target lint types $(addprefix night-,$(PARTS))

night-%: setup
	@mkdir -p .nightly; begun=$$(date +%s); status=0; \
	$(MAKE) --no-print-directory $* > .nightly/$*.log 2>&1 || status=$$?; \
	echo "$*: exit $$status after $$(( ($$(date +%s) - begun) / 60 )) minutes: $$(grep -E '[0-9]+ (passed|failed)' .nightly/$*.log | tr '\n' ' ')"; \
	exit $$status

DEEP := $(addprefix tests/,crash damage explorer histories model_based)
deep: setup
	$(PYTEST) $(DEEP)

units: setup
	$(PYTEST) tests $(addprefix --ignore=,$(DEEP) $(addprefix tests/,spark cluster connect dbt interop object_store))

writes-large: setup
	LAKEHOUSE_ROUTE=LARGE LAKEHOUSE_COPIED=ALL LAKEHOUSE_JOINED=ALL $(PYTEST) tests/unit/write tests/model_based

writes-small: setup
	LAKEHOUSE_ROUTE=SMALL LAKEHOUSE_COPIED=LARGE LAKEHOUSE_JOINED=LARGE $(PYTEST) tests/unit/write tests/model_based

spark-merged: setup
	@status=0; for way in ALL NONE; do LAKEHOUSE_MERGED=$$way $(PYTEST) tests/spark || status=1; done; exit $$status

crash-pairs: setup
	$(PYTEST) tests/crash/pairs.py

core: setup ## tests that need no JVM: units, formats, models, crashes, explorer, histories
	$(PYTEST) tests --ignore=tests/spark --ignore=tests/cluster --ignore=tests/connect --ignore=tests/dbt --ignore=tests/interop \
		--ignore=tests/object_store $(call limit,1100)

spark: setup $(java-of-lane) ## the engine on embedded Spark
	$(PYTEST) tests/spark $(call limit,500)

cluster: setup $(java-of-lane) ## the engine, and the demo, on a standalone Spark cluster of two worker processes
	$(PYTEST) tests/cluster $(call limit,200)

connect: setup $(java-of-lane) ## the engine and the adapter over a Spark Connect server of the tests' own
	LAKEHOUSE_CONNECT=1 $(PYTEST) tests/connect tests/spark tests/dbt/functional $(call limit,250)

dbt: setup $(java-of-lane) ## the adapter, with dbt's own adapter suite
	$(PYTEST) tests/dbt $(call limit,700)

# Not part of `test`. Warnings are errors, and click deprecates what dbt-core 1.10 imports of it. `python -m` finds this directory's code.
dbt-versions: $(DBT_VENV)/.installed java ## the same suite on another dbt-core: DBT=1.10 or 1.12
	PYTHONPATH=$(CURDIR) $(DBT_VENV)/bin/python -m pytest $(PYTEST_ARGS) -W "ignore:'parser.:DeprecationWarning" $(DBT_TESTS)

# The versions of requirements.lock, but for those that this dbt-core does not go with. From 1.12.1 on dbt-core asks for
# dbt-core-experimental-parser of 2.0.0b1 or newer, which is a source distribution only: its build downloads a wheel from releases on
# github.com, and fails where that cannot be reached. Nothing but --use-v2-parser runs it, so it is left out, and pip told to take the list as
# it is. --no-config: pyproject.toml keeps the lock itself below 1.12.
$(DBT_VENV)/.installed: requirements.lock pyproject.toml | setup
	$(PYTHON) -m venv $(DBT_VENV)
	cp requirements.lock $(DBT_VENV)/requirements.txt
	echo "dbt-core~=$(DBT).0" > $(DBT_VENV)/constraints.txt
	echo "dbt-core-experimental-parser ; python_version < '0'" > $(DBT_VENV)/overrides.txt
	$(BIN)/uv pip compile --quiet --no-config --python $(DBT_VENV)/bin/python --generate-hashes --no-strip-extras --no-annotate \
		--no-emit-index-url --no-emit-find-links pyproject.toml --extra test --constraint $(DBT_VENV)/constraints.txt \
		--override $(DBT_VENV)/overrides.txt -o $(DBT_VENV)/requirements.txt
	$(DBT_VENV)/bin/python -m pip install --quiet --no-deps --require-hashes -r $(DBT_VENV)/requirements.txt
	@touch $@

# As long as LAKEHOUSE_MINUTES says; not part of `test`.
dbt-side-by-side: setup java ## two dbt processes and a session in one warehouse, every strategy at once, for half an hour
	LAKEHOUSE_MINUTES=$${LAKEHOUSE_MINUTES:-30} $(PYTEST) tests/dbt/side_by_side

# A quarter of an hour on two cores; not part of `test`, as nothing of the packages is kept here.
packages: setup java ## the integration projects of dbt packages, from copies in LAKEHOUSE_PACKAGES (.cache/packages)
	LAKEHOUSE_PACKAGES=$${LAKEHOUSE_PACKAGES:-.cache/packages} $(PYTEST) tests/dbt/packages

integration: setup $(java-of-lane) ## a whole dbt project on TPC-H data, compared with plain Spark, hudi-rs and Hudi
	$(PYTEST) integration_tests

object-store: setup $(java-of-lane) ## tables and dbt in a bucket of a local S3 server (after object-store-setup)
	@status=0; \
	$(PYTEST) tests/object_store --ignore=tests/object_store/others $(call limit,250) || status=1; \
	LAKEHOUSE_STORE=s3 $(PYTEST) $(if $(LIMITED),$(STORE_ENGINE)) $(STORE_DBT) $(call limit,120) || status=1; \
	exit $$status

# Whole over a store in memory: an hour and a half on two cores. The server that speaks as S3 takes four times as long, and gets a share.
object-store-engine: setup object-store-setup ## the suites of the engine over an object store
	@status=0; \
	LAKEHOUSE_STORE=memory $(PYTEST) $(STORE_ENGINE) || status=1; \
	LAKEHOUSE_STORE=s3 $(PYTEST) $(STORE_ENGINE) --seconds=900 || status=1; \
	exit $$status

# Half an hour on two cores; not part of `test`. Where a server cannot be had its tests are skipped. Of the suites over a bucket a share is run.
object-store-others: setup java object-store-others-setup ## the same over servers that speak as Azure and Google do
	@status=0; \
	LAKEHOUSE_EMULATORS=$(EMULATORS) $(PYTEST) tests/object_store/others || status=1; \
	for store in az gs; do LAKEHOUSE_EMULATORS=$(EMULATORS) LAKEHOUSE_STORE=$$store $(PYTEST) $(STORE_ENGINE) $(STORE_DBT) --seconds=600 || status=1; done; \
	exit $$status

# A quarter of an hour on two cores, and 280 MB; not part of `test`.
object-store-hudi: setup interop-setup object-store-setup $(S3A_JARS)/hadoop-aws-3.3.4.jar $(S3A_JARS)/aws-java-sdk-bundle-1.12.262.jar ## Hudi reads and writes tables in a bucket beside us
	LAKEHOUSE_HUDI_S3A_JARS=$(abspath $(S3A_JARS)) $(PYTEST) tests/object_store/test_hudi.py

# Four minutes on two cores, and 110 MB of jars; not part of `test`. Without `make interop-setup` the tests beside Hudi are skipped.
hbase: setup hbase-setup ## the HBASE index over a real HBase that is killed, beside Hudi 0.15; not part of test
	PYTHONPATH=$(abspath $(HBASE)/python) HBASE_JARS=$(abspath $(HBASE)/jars) $(PYTEST) tests/hbase

interop: setup ## Apache Hudi itself reads and continues our tables (after interop-setup)
	$(PYTEST) tests/interop $(call limit,450)

lint: setup ## ruff: rules and format of imports
	$(BIN)/ruff check $(SOURCES)

types: setup ## mypy: strict over what is installed; over tests that their calls fit it
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests integration_tests benchmarks

format: setup ## let ruff repair what it can
	$(BIN)/ruff check --fix $(SOURCES)

##  -- prepare
interop-setup: $(HUDI_VENV)/.installed $(foreach v,$(HUDI_VERSIONS),$(HUDI_JARS)/$(HUDI_BUNDLE)-$(v).jar) ## fetch PySpark 3.5 and the Hudi bundles of the interop lane

$(HUDI_VENV)/.installed: tests/interop/requirements.lock
	$(PYTHON) -m venv $(HUDI_VENV)
	$(HUDI_VENV)/bin/python -m pip install --quiet --require-hashes -r tests/interop/requirements.lock
	@touch $@

hbase-setup: $(HBASE)/.installed ## fetch HBase with its Thrift server (Maven, 110 MB) and happybase

$(HBASE)/.installed: tests/hbase/pom.xml tests/hbase/requirements.lock | setup
	@command -v mvn >/dev/null || { echo "HBase comes from Maven Central: mvn is needed on the PATH"; exit 1; }
	mvn --batch-mode --quiet -f tests/hbase/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(HBASE))/jars
	$(BIN)/python -m pip install --quiet --require-hashes --upgrade --target $(HBASE)/python -r tests/hbase/requirements.lock
	@touch $@

object-store-setup: $(S3_VENV)/.installed ## fetch the S3 server of the object-store lane

$(S3_VENV)/.installed: tests/object_store/requirements.lock
	$(PYTHON) -m venv $(S3_VENV)
	$(S3_VENV)/bin/python -m pip install --quiet --require-hashes -r tests/object_store/requirements.lock
	@touch $@

object-store-others-setup: ## fetch Azurite (npm, 370 MB) and fake-gcs-server (Go, 50 MB), where npm and go are there
	@if [ -x $(EMULATORS)/node_modules/.bin/azurite-blob ]; then :; \
	elif command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix $(EMULATORS) azurite@$(AZURITE); \
	else echo "Azurite comes from npm, which is not on the PATH: tests of Azure are skipped"; fi
	@if [ -x $(EMULATORS)/fake-gcs-server ]; then :; \
	elif command -v go >/dev/null; then GOBIN=$(abspath $(EMULATORS)) go install github.com/fsouza/fake-gcs-server@$(FAKE_GCS_SERVER); \
	else echo "fake-gcs-server comes from the Go module proxy, and go is not on the PATH: tests of Google are skipped"; fi

define from-maven
@command -v mvn >/dev/null || { echo "$(1) comes from Maven Central: mvn is needed on the PATH"; exit 1; }
mvn --batch-mode --quiet dependency:copy -Dartifact=$(1) -DoutputDirectory=$(abspath $(@D))
@test -s $@
endef

$(HUDI_JARS)/$(HUDI_BUNDLE)-%.jar:
	$(call from-maven,org.apache.hudi:$(HUDI_BUNDLE):$*)

# S3A of the Hadoop that Spark 3.5 has, and its client of S3.
$(S3A_JARS)/hadoop-aws-%.jar:
	$(call from-maven,org.apache.hadoop:hadoop-aws:$*)

$(S3A_JARS)/aws-java-sdk-bundle-%.jar:
	$(call from-maven,com.amazonaws:aws-java-sdk-bundle:$*)

bench-growth: setup ## storage calls and CPU of small actions as a table grows (BENCH_ARGS=--full: 20,000 files, 3,000 commits)
	$(BIN)/python -m benchmarks.growth $(BENCH_ARGS)

# Half an hour on two cores, with Iceberg and Delta.
bench-skipping: setup java ## time reads of a part of a table of 1,000 partitions, and count the files that they open
	$(BIN)/python -m benchmarks.skipping $(BENCH_ARGS)

bench-cloning: setup ## time clones by links and by copies, beside a table written anew of what is read
	$(BIN)/python -m benchmarks.cloning $(BENCH_ARGS)

bench: setup java ## time the engine beside other writers and readers of the same rows
	$(BIN)/python -m benchmarks

# Half an hour on two cores; BENCH_ARGS="--rows 50000000 --files 20 200 2000 --contenders ours iceberg hudi" is the whole, of some hours.
bench-scale: setup java ## time batches and tables of many sizes, with the memory that they take
	$(BIN)/python -m benchmarks.scale --files 20 200 --batches 100000 1000000 10000000 $(BENCH_ARGS)

docs: setup ## write docs/options.md from the options, docs/conformance.md, docs/packages.md, and the table of docs/interop.md from the zoo
	$(BIN)/python -m lakehouse_engine.cli.options_doc > docs/options.md
	$(BIN)/python -m tests.dbt.conformance
	$(BIN)/python -m tests.dbt.packages.page
	$(BIN)/python -m tests.interop.zoo.report

wheel: setup ## build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist

# Hashes only: no index, file or host stands in a lock.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-strip-extras --no-annotate \
	--no-emit-index-url --no-emit-find-links
lock: setup ## resolve requirements.lock and the locks of the lanes again
	$(LOCK) pyproject.toml --extra test --extra bench --extra dev --custom-compile-command "make lock" -o requirements.lock
	$(LOCK) tests/interop/requirements.in --custom-compile-command "make lock" -o tests/interop/requirements.lock
	$(LOCK) tests/object_store/requirements.in --custom-compile-command "make lock" -o tests/object_store/requirements.lock
	$(LOCK) tests/hbase/requirements.in --custom-compile-command "make lock" -o tests/hbase/requirements.lock

clean: ## remove what builds and runs leave behind (not the virtual environments)
	rm -rf build dist .nightly .pytest_cache .mypy_cache .ruff_cache .hypothesis $(DEMO)/lakehouse $(DEMO)/target $(DEMO)/logs
