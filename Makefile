# Two commands: `make run` chats, `make test` checks. Each sets up what it needs; a second call is quick.
# Choose another Python with `make PYTHON=python3.13 run`. Only relative paths here, so that spaces in the folder's name work.

.NOTPARALLEL:
.PHONY: run test test-all lint words bundle-check bundle-index clean libraries test-libraries starter

python = .venv/bin/python
pip = $(python) -m pip --disable-pip-version-check install --quiet

# PYTHON counts when given to make, not when it happens to be in the environment.
ifneq ($(origin PYTHON),command line)
PYTHON :=
endif

# The stamps mark finished steps. An environment of a moved folder or a removed Python counts as none.
$(shell [ "$$(cat .venv/.created 2>/dev/null)" = "$$(pwd)" ] && $(python) -c "" 2>/dev/null || rm -f .venv/.created)

run: libraries .venv/.installed starter
	@$(python) -m app

test: test-libraries .venv/.dev starter lint
	@$(python) -m pytest -m "not slow" --ignore=tests/perf -n 2 --dist loadfile

test-all: test-libraries .venv/.dev starter lint
	@$(python) -m pytest --hypothesis-profile=fresh

lint: .venv/.dev
	@$(python) -m ruff check .
	@$(python) -m mypy
	@$(python) -c "from importlinter.cli import lint_imports_command as run; run()"

# The catalogues of resources/locale after a change of the window's texts; it ends with 1 while a translation is missing.
words: .venv/.dev
	@PYTHONPATH=packaging $(python) -m words

# Slipstream.app, as far as it can be built and checked without a Mac: downloads about 220 MB once, into build/bundle.
# Whether macOS packages can be had at all: one small one from the lock.
bundle-index: .venv/.created
	@$(python) -m pip --disable-pip-version-check --quiet download --no-deps --only-binary=:all: --python-version 3.12 \
	  --platform macosx_14_0_arm64 --dest build/bundle/probe "$$(grep -o '^pyobjc-core==[0-9.]*' packaging/bundle/constraints-macos.txt)"

bundle-check: test-libraries .venv/.bundle starter
	@PYTHONPATH=packaging:. $(python) -m bundle.check

libraries:
	@sh packaging/system_libraries.sh

test-libraries:
	@sh packaging/system_libraries.sh test

starter: .venv/.installed
	@$(python) -m engine.models.starter

.venv/.created:
	@python=$$(sh packaging/find_python.sh $(if $(PYTHON),"$(PYTHON)")) || exit 1; \
	  echo "Making .venv with $$python"; \
	  rm -rf .venv && "$$python" -m venv .venv && pwd > .venv/.created

.venv/.installed: pyproject.toml .venv/.created
	@echo "Installing Slipstream into .venv"
	@$(pip) -e .
	@touch .venv/.installed

.venv/.dev: pyproject.toml .venv/.created
	@echo "Installing Slipstream and its test tools into .venv"
	@$(pip) -e ".[dev]"
	@touch .venv/.installed .venv/.dev

.venv/.bundle: pyproject.toml .venv/.created
	@echo "Installing the tools that build the bundle into .venv"
	@$(pip) -e ".[dev,bundle]"
	@touch .venv/.installed .venv/.dev .venv/.bundle

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
