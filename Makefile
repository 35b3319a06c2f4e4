# Two commands do everything: `make demo` and `make test`. Both set up what they need, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_ROOT ?= .geode-demo

# Bytecode is worth having: without it every start costs two to three times as much.
export PYTHONDONTWRITEBYTECODE :=
unexport PYTHONPATH

.PHONY: demo test check bench attacks crash truth calibrate killed-workers mcp-postgres setup clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "GEODE needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setting up $(VENV): one to three minutes, and no output until it is done"
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
		uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@$(BIN)/python -m compileall -q -x 'suites/.*/fixtures/' geode experiments judges analysis hydra_plugins
	@touch $@
	@echo "ready; activate it with: . $(BIN)/activate"

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

# 1,000 episodes in worker processes, one killed every 5 seconds, beside a sweep that nobody disturbs (some minutes).
killed-workers: setup
	$(BIN)/python -m tests.done.killed_workers

# How often the gate errs: real sweeps of placebos on the simulator, in still weather and in bad (half an hour of two cores
# each; stopped, they go on), then thousands by outcome alone (as long again).
calibrate: setup
	$(BIN)/geode gate calibrate --root .geode-calibrate
	$(BIN)/geode gate calibrate --root .geode-calibrate --drift 1 --heavy-tails
	PYTHONPATH=. $(BIN)/python benchmarks/error_rates.py --sweeps 4000

# Every point of persistence x every fault x SEEDS seeds (about 20 s of CPU a seed), and a control for each invariant.
SEEDS ?= 20
crash: setup
	$(BIN)/python -m tests.crash.matrix --seeds $(SEEDS) --jobs 2

# Every phrasing of 27 attacks, and of what only looks like one, by a model that obeys them (about 1 minute on 2 cores).
attacks: setup
	$(BIN)/python -m tests.attacks.table

# A server of others on a real database: PostgreSQL from Debian's package, started on loopback. postgres-mcp has an
# environment of its own, since it needs Python 3.12 and an older SDK than ours; its pin of pglast, 7.2.0, is not in every
# index, so what it needs is named here.
POSTGRES_MCP := .cache/postgres-mcp
PYTHON312 ?= python3.12

mcp-postgres: setup $(POSTGRES_MCP)/.ready
	$(BIN)/python -m pytest -q tests/done/test_mcp_postgres.py

$(POSTGRES_MCP)/.ready:
	@$(PYTHON312) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || \
		{ echo "postgres-mcp needs Python 3.12 or newer; name one with: make mcp-postgres PYTHON312=..." >&2; exit 1; }
	@$(PYTHON312) -m venv $(POSTGRES_MCP)
	@$(POSTGRES_MCP)/bin/python -m pip install --quiet --disable-pip-version-check 'mcp[cli]>=1.5,<2' 'pglast>=7.2,<8' \
		'psycopg[binary]>=3.2.6' 'psycopg-pool>=3.2.6' 'humanize>=4.8' 'attrs>=25.3' 'instructor>=1.7.9'
	@$(POSTGRES_MCP)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps postgres-mcp==0.3.0
	@touch $@

clean:
	rm -rf $(VENV) $(POSTGRES_MCP) $(DEMO_ROOT) .geode-truth .geode-calibrate .mypy_cache .ruff_cache .pytest_cache .hypothesis
