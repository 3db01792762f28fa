# Every target creates the virtual environment when it is missing, and updates it when pyproject.toml has changed.
# PyBullet has wheels for CPython 3.10 and 3.11; 3.12 and 3.13 have everything but gcb's own environments.
DEFAULT := $(firstword $(foreach p,python3.11 python3.10 python3,$(shell command -v $(p) 2>/dev/null)))
PYTHON ?= $(DEFAULT)
# A shim of pyenv whose version is installed but not active.
ifneq ($(shell $(PYTHON) --version >/dev/null 2>&1 || echo missing),)
export PYENV_VERSION := $(shell pyenv whence $(notdir $(PYTHON)) 2>/dev/null | tail -n 1)
endif
# Another Python than the default has a virtual environment of its own: make test PYTHON=python3.12
VENV   := .venv$(if $(filter $(notdir $(PYTHON)),$(notdir $(DEFAULT)) python python3),,-$(notdir $(PYTHON)))
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
# One thread per process: several processes share the cores better than several thread pools do.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test lint docs notebook wheel bench faults inputs browser setup clean

demo: $(STAMP)
	$(BIN)/gcb demo

test: $(STAMP) browser
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) tests

lint: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

# The documentation as a site that can be read without a server: build/docs/index.html.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open build/docs/index.html"

# Run the notebook from top to bottom (about five minutes) and keep its outputs.
notebook: $(STAMP)
	$(BIN)/python -m scripts.run_notebook examples/paper.ipynb

# Build the wheel, install it into a new environment and use it there.
wheel: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m scripts.check_wheel

bench: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m benchmarks

# The fault-injection tests at full length (about ten minutes); rewrites the table in docs/reliability.md.
faults: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest tests/faults --full --table docs/reliability.md

# Bad input at full length (a few minutes); rewrites its table in docs/reliability.md.
inputs: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest tests/faults -k inputs --full --table docs/reliability.md

# The explorer's tests use Debian's Chromium; they are skipped where it cannot be installed.
browser:
	@command -v chromium >/dev/null || { \
	  echo "installing chromium for the explorer's tests"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	    >/dev/null 2>&1 || echo "chromium could not be installed; the tests that need it are skipped"; }

setup: $(STAMP)

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "No python3 on the PATH; install CPython 3.10 to 3.13." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not ((3, 10) <= sys.version_info[:2] <= (3, 13)))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version); gcb is tested on CPython 3.10 to 3.13: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 12))' || \
	  echo "$$($(PYTHON) --version): PyBullet has no wheels for it, so gcb's own environments are missing (docs/guide.md)" >&2
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

clean:
	rm -rf .venv .venv-* build *.egg-info .pytest_cache .ruff_cache
