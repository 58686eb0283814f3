# One environment, made on first use; every target stands on it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable ".[plot,gurobi,toulbar2,cpsat]"
	@touch $@

$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@

.PHONY: demo
demo: $(VENV)/ready ## Set up and run the main job on embedded data
	$(BIN)/hasten demo

.PHONY: test
test: $(VENV)/ready ## Set up and run the tests
	$(BIN)/python -m pytest -n 2

.PHONY: lint
lint: $(VENV)/ready ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: coverage
coverage: $(VENV)/ready ## Run the tests and list the lines that none of them reaches
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term-missing

.PHONY: docs
docs: $(VENV)/docs-ready ## Build the documentation's site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: format
format: $(VENV)/ready ## Rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: fuzz
fuzz: $(VENV)/ready ## Compare answers with the truth on random problems: make fuzz [COUNT=2000] [SEED=0]
	$(BIN)/python tests/campaign/proofs.py --count $(or $(COUNT),2000) --seed $(or $(SEED),0)
	$(BIN)/python tests/campaign/certificates.py --count $(or $(COUNT),2000) --seed $(or $(SEED),0)
	$(BIN)/python tests/campaign/certificates.py --large 45 --seed $(or $(SEED),0)

.PHONY: test-ray
test-ray: ## Set up an environment with Ray and run the tests on a cluster of this machine
	test -d .venv-ray || $(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	.venv-ray/bin/python -m pip install --quiet --disable-pip-version-check --group dev --editable ".[ray]"
	.venv-ray/bin/python -m pytest tests/on_ray tests/scale

.PHONY: test-torch
test-torch: ## Set up an environment with PyTorch (a CPU build), and JAX where it installs; run the tests that need them
	test -d .venv-torch || $(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	.venv-torch/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-torch/bin/python -m pip install --quiet --disable-pip-version-check --group dev --editable ".[torch,neural]"
	-.venv-torch/bin/python -m pip install --quiet --disable-pip-version-check jax
	.venv-torch/bin/python -m pytest tests/on_torch tests/test_jax.py tests/test_examples.py tests/test_docs.py -k "torch or jax or skip_a_cross_encoder"

.PHONY: test-page
test-page: $(VENV)/ready ## Run the tests of the server's page in Chromium, with its driver (Debian: chromium chromium-driver)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group browser
	$(BIN)/python -m pytest tests/page

.PHONY: wheel
wheel: $(VENV)/ready ## Build a wheel that carries its compiled kernels, for this Python and kind of machine
	$(BIN)/python tools/wheel.py

.PHONY: test-wheel
test-wheel: wheel ## Install that wheel into an empty environment and see that nothing is compiled there
	$(BIN)/python tools/wheel.py --check $$(ls -t dist/hasten-*-cp*.whl | head -1)

.PHONY: bench
bench: $(VENV)/ready ## Measure search, bound and solvers side by side
	HASTEN_TIER=compiled $(BIN)/python benchmarks/engine.py --out results/engine.json

.PHONY: bench-peers
bench-peers: $(VENV)/ready ## Measure hasten and other solvers side by side (installs them)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group peers
	$(BIN)/hasten bench --out results/peers

.PHONY: reproduce
reproduce: $(VENV)/ready ## Run the paper's experiment: make reproduce CORPUS=conll04.corp [UNLABELED="a b"] [SOLVER=gurobi] [SEEDS=5]
	@test -n "$(CORPUS)" || { echo "Say where the corpus is: make reproduce CORPUS=path/to/conll04.corp.gz"; exit 1; }
	$(BIN)/hasten reproduce $(CORPUS) $(foreach file,$(UNLABELED),--unlabeled $(file)) \
		--solver $(or $(SOLVER),highs) --seeds $(or $(SEEDS),5) --black-box structured --out results/structured
	$(BIN)/hasten reproduce $(CORPUS) $(foreach file,$(UNLABELED),--unlabeled $(file)) \
		--solver $(or $(SOLVER),highs) --seeds $(or $(SEEDS),5) --black-box independent --out results/independent

.PHONY: clean
clean: ## Remove the environment and everything built
	rm -rf $(VENV) .venv-ray .venv-torch results site dist .coverage* .pytest_cache .hypothesis .mypy_cache .ruff_cache
