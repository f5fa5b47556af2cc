# make demo: a crawl for a topic, beside one without, on a small web of its own      make test: everything that CI runs
# make search SECONDS=600: random search for counterexamples to the tests' properties, until one is found
# make man: the manual pages of all commands, in the folder man
# make bounds: the tests of kernels, with kernels that check each index; make bench-test: the tests of the benchmarks
# make torture MINUTES=5 SEED=1: kill -9, damaged files, crafted logs and mutated inputs, with a table of what came of them
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SECONDS := 600
MINUTES := 5
SEED := 1
CODE := $(CURDIR)/.cache/machinecode
CHECKED := $(CURDIR)/.cache/checkedcode
# Tests spend a quarter of their time waiting for other processes. Two more workers than processors use that time. Each
# worker takes ten seconds and half a gigabyte to collect all tests.
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
# Tests start hundreds of processes. Without bytecode files, each process would compile all modules that it imports.
# Python writes these files when it first imports a module. pip would compile all modules, most of which are never imported.
unexport PYTHONDONTWRITEBYTECODE
# tests with targets of their own
APART := --ignore=tests/bench --ignore=tests/install
.PHONY: demo dashboard docs man test lint collected soak bench-test bounds mutants mutants-python quick coverage search torture tables changelog proto wheel wheel-test clean

$(VENV)/made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "inlink needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	touch $@

$(VENV)/ready: $(VENV)/made pyproject.toml
	$(BIN)/pip install --quiet --no-compile --editable '.[dev]'
	touch $@ $(VENV)/demo-ready

$(VENV)/demo-ready: $(VENV)/made pyproject.toml
	$(BIN)/pip install --quiet --no-compile --editable '.[jit,plot,scrapy]'
	touch $@

demo: $(VENV)/demo-ready
	$(BIN)/python demo/demo.py

# the picture of the dashboard, in Debian's Chromium, of a crawl that three spiders work on
dashboard: $(VENV)/ready
	$(BIN)/python demo/dashboard.py docs/dashboard.png

test: $(VENV)/ready
ifeq ($(shell uname -s),Linux)
	$(MAKE) --no-print-directory --jobs=3 --output-sync lint collected wheel
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --ignore=tests/bench -m "not soak"
else
	$(MAKE) --no-print-directory --jobs=3 lint collected machinecode
	@echo "tests/install is skipped: machine code is made for Linux only, and a wheel without it needs Numba"
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(APART) -m "not soak"
endif
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/python -m bench house

# format, lint and types
lint: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# pytest rewrites the assertions of all test modules and caches the result. Without the cache, each worker does this itself.
collected: $(VENV)/ready
	mkdir -p .cache
	$(BIN)/python -m pytest --collect-only -qq --ignore=tests/bench > .cache/collected || (cat .cache/collected; exit 1)

# The tests of the benchmarks, which run small ones beside their peers. They take some minutes, so they are a job of their own in CI.
bench-test: machinecode
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/bench

# The tests of kernels, each of which raises an error at an index outside of its array. This takes four minutes, so it is a
# job of its own in CI. `make bounds BOUNDS=tests` runs all tests but the slow ones.
BOUNDS := $(addprefix tests/,$(addsuffix .py, \
	archives/test_scanner archives/test_wat base/test_bounds base/test_order factors/test_adoption \
	frontier/test_queue frontier/test_traps frontier/test_waiting graph/test_build graph/test_build_merge \
	graph/test_coded_rows graph/test_compressed graph/test_derive graph/test_graph_checks graph/test_parts \
	graph/test_rows graph/test_sorting rank/test_betweenness rank/test_closeness rank/test_closest rank/test_eigenvector \
	rank/test_hyperball rank/test_linkrank rank/test_loops rank/test_mcmc rank/test_opic rank/test_pagerank rank/test_pathsampling \
	rank/test_percolation rank/test_rank_kernels rank/test_salsa rank/test_spam rank/test_structure \
	replaying/test_replay_lines reranking/test_crawl_ranking reranking/test_live_ranking \
	sources/test_archive_parts sources/test_bvgraph \
	sources/test_bvgraph_write sources/test_edgelist store/test_checkpoint store/test_index_damage store/test_spill \
	store/test_store store/test_store_checks store/test_store_wild store/test_url_table store/test_verify \
	urls/test_plain_urls))
bounds: $(VENV)/ready
	mkdir -p $(CHECKED)
	INLINK_CHECK_BOUNDS=1 $(BIN)/python -m ahead build $(CHECKED)
	INLINK_CHECK_BOUNDS=1 INLINK_MACHINE_CODE=$(CHECKED) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(BOUNDS)

# Random faults in kernels, which must end in a failed test and never in a crash: make mutants COUNT=30 SEED=1
# Faults in Python code, and how many of them the tests notice: make mutants-python COUNT=60 SEED=1
COUNT := 30
mutants: $(VENV)/ready
	cd tests && ../$(BIN)/python -m torture.mutants --mutants $(COUNT) --seed $(SEED)
mutants-python: machinecode
	cd tests && INLINK_MACHINE_CODE=$(CODE) ../$(BIN)/python -m torture.mutants --python --mutants $(COUNT) --seed $(SEED)

# the share of lines that the tests run; kernels are machine code and do not count
coverage: $(VENV)/ready
	$(BIN)/python -m pytest -n auto --cov=inlink --cov-report=term

$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@

# the documentation as a website, in the folder site; any warning or broken link is an error
docs: $(VENV)/docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python -m website.check site
	@echo "To read it: $(BIN)/python -m http.server -d site"

# the manual pages of all commands, in the folder man: man -l man/inlink.1
man: $(VENV)/ready
	$(BIN)/python -m website.man man

# All tests but those marked slow, with five examples of each property test. They rarely wait for
# other processes, so one worker more than processors is enough.
quick: machinecode
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/python -m pytest -n $$(( $(WORKERS) - 1 )) --dist worksteal $(APART) -m "not slow and not soak" --hypothesis-profile=quick

# More examples, rounds, sites and faults than `make test` has time for, which runs a third of each property test's
# examples. CI runs this as a separate job.
soak: machinecode
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(APART) -m "soak or hypothesis" --hypothesis-profile=soak
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/python -m pytest -n 2 -m soak tests/install

# the tables of settings in the docs, from the one table in the code
tables: $(VENV)/ready
	$(BIN)/python tests/settingsdocs.py

# move the files of `changes` to CHANGELOG.md as a new release: make changelog VERSION=0.2.0
changelog: $(VENV)/ready
	$(BIN)/towncrier build --yes --version $(VERSION)

# the messages of URLFrontier, as protobuf's compiler reads them
proto: $(VENV)/ready
	$(BIN)/python -m grpc_tools.protoc -Isrc/inlink/server/urlfrontier urlfrontier.proto \
		--descriptor_set_out=src/inlink/server/urlfrontier/urlfrontier.binpb

# Attacks for MINUTES: kill -9, damaged files, crafted logs, mutated inputs; each must end in the right answer or one line.
torture: $(VENV)/ready
	cd tests && ../$(BIN)/python -m torture --minutes $(MINUTES) --seed $(SEED)
	cd tests && ../$(BIN)/python -m torture.many

# Rounds of the tests that use Hypothesis, each with new random examples, until a test fails or SECONDS have passed.
# Hypothesis prints the input that failed: keep it as an @example of its test.
search: $(VENV)/ready
	export INLINK_TEST_PATIENCE=9000 SEARCH_UNTIL=$$(($$(date +%s) + $(SECONDS))); \
	while [ $$(date +%s) -lt $$SEARCH_UNTIL ]; do \
		$(BIN)/python -m pytest -n auto -m hypothesis --hypothesis-profile=search || exit; \
	done

# machine code of all kernels for the tests, the same as in the wheel; it is made again if a kernel has changed
machinecode: $(VENV)/ready
	mkdir -p $(CODE)
	$(BIN)/python -m ahead build $(CODE) $(INLINK_WHEEL_MACHINE)

# the wheel, with machine code of all kernels; ahead/linking.py has the other machines: make wheel INLINK_WHEEL_MACHINE=aarch64
wheel: machinecode
	rm -rf dist
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# installs of that wheel and from git (make soak: of the clone and of the sdist), in empty environments and without compiling
wheel-test: wheel
	INLINK_MACHINE_CODE=$(CODE) $(BIN)/python -m pytest -n 2 -m "not soak" tests/install

clean:
	rm -rf $(VENV) .cache dist site man demo/out
