# Two commands do everything: `make demo` and `make test`. Both set up what they need, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_ROOT ?= .geode-demo

# Bytecode is worth having: without it every start costs two to three times as much.
export PYTHONDONTWRITEBYTECODE :=
unexport PYTHONPATH

.PHONY: demo test check bench crash truth calibrate setup clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "GEODE needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
		uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@$(BIN)/python -m compileall -q -x 'suites/.*/fixtures/' geode experiments judges analysis hydra_plugins
	@touch $@

demo: setup
	@$(BIN)/geode sweep --root $(DEMO_ROOT) experiment=hook_ablation
	@$(BIN)/geode compare --root $(DEMO_ROOT) hook_ablation

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q -m 'not slow' -n 2 --dist worksteal -p no:cacheprovider

bench: setup
	@for script in benchmarks/*.py; do echo "== $$script"; PYTHONPATH=. $(BIN)/python $$script || exit 1; done

# What the simulator really does to each variant of hook_ablation: a long run (about 10 minutes), by a seed of its own.
truth: setup
	$(BIN)/geode sweep --root .geode-truth experiment=hook_ablation name=hook_ablation_truth seeds=[1] repeats=400 tracking=none
	$(BIN)/geode truth --root .geode-truth hook_ablation_truth -o experiments/simulator_truth.json

# How often the gate errs: real sweeps of placebos on the simulator, in still weather and in bad (half an hour of two cores
# each; stopped, they go on), then thousands by outcome alone (as long again).
calibrate: setup
	$(BIN)/geode gate calibrate --root .geode-calibrate
	$(BIN)/geode gate calibrate --root .geode-calibrate --drift 1 --heavy-tails
	PYTHONPATH=. $(BIN)/python benchmarks/error_rates.py --sweeps 4000

# Every point of persistence x every fault x SEEDS seeds (about 15 s of CPU a seed), and a control for each invariant.
SEEDS ?= 20
crash: setup
	$(BIN)/python -m tests.crash.matrix --seeds $(SEEDS) --jobs 2

clean:
	rm -rf $(VENV) $(DEMO_ROOT) .geode-truth .geode-calibrate .mypy_cache .ruff_cache .pytest_cache .hypothesis
