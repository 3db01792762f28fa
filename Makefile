# Every target creates .venv when it is missing, and updates it when pyproject.toml has changed.
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PYTHON ?= $(firstword $(foreach p,python3.11 python3.10 python3,$(shell command -v $(p) 2>/dev/null)))
JOBS   ?= 2
# One thread per process: several processes share the cores better than several thread pools do.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test lint wheel bench faults browser setup clean

demo: $(STAMP)
	$(BIN)/gcb demo

test: $(STAMP) browser
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) tests

lint: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

# Build the wheel, install it into a new environment and use it there.
wheel: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m scripts.check_wheel

bench: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m benchmarks

# The fault-injection tests at full length (about ten minutes); rewrites the table in docs/reliability.md.
faults: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest tests/faults --full --table docs/reliability.md

# The explorer's tests use Debian's Chromium; they are skipped where it cannot be installed.
browser:
	@command -v chromium >/dev/null || { \
	  echo "installing chromium for the explorer's tests"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	    >/dev/null 2>&1 || echo "chromium could not be installed; the tests that need it are skipped"; }

setup: $(STAMP)

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "No python3 on the PATH; install CPython 3.10 or 3.11." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not ((3, 10) <= sys.version_info[:2] <= (3, 11)))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version); PyBullet has wheels for CPython 3.10 and 3.11 only: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache
