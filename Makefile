# make course   build the book and the labs, grade the sample class
# make test     lint, types and the tests that go with every change
# make proof    the exhaustive tests: every attack with its twin, the built site in every look, whole terms of a class
# make bench    speed and memory of the package, against its limits; bench-judge, soak: of the judge; bench-queue
# make pdf      the whole book as a PDF, from the built site; make epub: as an EPUB; make kit: slides and question bank
# Both set up .venv first, if it is missing or its pins changed.

PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
INSTALLED := .venv/.installed
# A file of tests stays together: what it grades or builds once, its tests share.
# Beside others each has one thread: more would spin while they wait for one another.
TOGETHER := OMP_NUM_THREADS=1 pytest --maxprocesses 8 --dist loadfile
# Only files that mark a test as alone are read for those: reading all takes half a minute.
ALONE = pytest $$(grep -rl --include='test_*.py' 'mark\.alone' tests)

.PHONY: help course test proof setup system labs book pdf epub kit grade lint types bench bench-judge bench-queue soak canary edition redteam new-chapter translation translated screenshots site-speed clean

help:
	@sed -n 's/^# //p' Makefile | head -6

course: system setup labs book grade
	@echo "Site      _build/html/index.html"

test: system setup lint types labs
	$(TOGETHER) -n auto -m "not proof and not alone"
	$(ALONE) -m "alone and not proof"

# A worker more than cores: classes and browsers wait more than they compute.
proof: system setup labs book
	$(TOGETHER) -n $$(($$(nproc) + 1)) -m "proof and not alone"
	$(ALONE) -m "proof and alone"

setup: $(INSTALLED)

system:
	@PYTHON=$(PYTHON) scripts/system-packages

$(INSTALLED): requirements.txt pyproject.toml | system
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version); the course needs Python 3.11 or later: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 2; }
	@$(PYTHON) -m venv .venv
	@echo "Packages  installing those of requirements.txt into .venv: about 3 minutes the first time"
	@.venv/bin/python -m pip install --quiet -r requirements.txt
	@.venv/bin/python -m pip install --quiet --no-deps --editable .
	@touch $@

labs: setup
	@echo "Labs      releasing what students get"
	@mlsys release

# A page with an error would count as read: without what was read, the next build says it again.
book: setup labs
	@echo "Book      building the site: 4 to 8 minutes the first time, in which the chapters run"
	@jupyter-book build . --warningiserror --nitpick --keep-going --quiet >/dev/null || { rm -rf _build/.doctrees; exit 2; }

# The whole book as files, from the site as it is built.
pdf: setup
	@mlsys kit pdf

epub: setup
	@mlsys kit epub

kit: setup
	@mlsys kit questions
	@mlsys kit slides

grade: setup labs
	@echo "Class     grading a sample class of the tiling lab"
	@mlsys grade tiling --sample-class

lint: setup
	ruff check .
	lint-imports --no-logo >/dev/null || lint-imports --no-logo
	deptry mlsys book/_ext book/_figures book/_interactive
	ruff format --check .
	codespell

types: setup
	mypy

bench: setup
	@mkdir -p _build/bench
	pytest benchmarks/test_*.py --benchmark-json=_build/bench/package.json --benchmark-columns=min,median,iqr,rounds

bench-judge: setup
	python benchmarks/judge.py

bench-queue: setup
	python benchmarks/submit_queue.py

soak: setup
	python benchmarks/soak.py

edition: book
	@python scripts/make_edition.py "$(VERSION)"

canary: book
	python scripts/run_canary.py

redteam: setup
	pytest tests/redteam

new-chapter: setup
	@python scripts/new_chapter.py "$(NAME)"

# A chapter in another language: begin it, or note that it says what its English page says now.
translation: setup
	@python scripts/translation.py begin "$(NAME)" "$(LANGUAGE)"

translated: setup
	@python scripts/translation.py done "$(NAME)"

screenshots: course
	python scripts/screenshots.py

site-speed: setup
	python scripts/site_speed.py

clean:
	rm -rf _build
