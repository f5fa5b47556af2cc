# make demo: a crawl for a topic, beside one without, on a small web of its own      make test: everything that CI runs
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.PHONY: demo test wheel-test clean

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "inlink needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/python demo/demo.py

test: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto
	$(MAKE) --no-print-directory wheel-test

# the wheel, as a user gets it: an empty environment, no sources beside it
wheel-test: $(VENV)/ready
	rm -rf dist .cache/wheel && mkdir -p .cache
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv .cache/wheel
	.cache/wheel/bin/pip install --quiet dist/inlink-*.whl
	cd .cache && wheel/bin/python ../demo/check.py

clean:
	rm -rf $(VENV) .cache dist demo/out
