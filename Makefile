# SPDX-License-Identifier: MIT OR Apache-2.0
# Thin entries; each does its own set-up, needs root or sudo only to install packages.

LAB := build/bin/steady-lab

.PHONY: help setup demo test test-all test-stock test-stock-all test-races test-packages soak lint bench packages wheels kernel-patches clean

help:
	@echo "make demo        the main result: real-time latency next to a background load, 10 schedulers"
	@echo "make test        the tests of a change: all kernel tests on 6.12, those of differences on 6.1"
	@echo "make test-all    every test on 6.1 and 6.12, kernel tests on 7.3 too; nothing from the cache"
	@echo "make test-stock  k2 on Debian's own 6.1, 6.12 (also 64-bit ARM) and 7.3 under QEMU, three CPUs"
	@echo "make test-stock-all  the same, and on those with PREEMPT_RT and for 32-bit ARM"
	@echo "make test-races  k2 and chario on kernels that look for races and broken locking, three CPUs"
	@echo "make test-packages  the Debian packages installed, upgraded and purged in Debian 12 and 13"
	@echo "make soak        more random inputs and power cuts, seeded faults, in parts (scripts/soak --list)"
	@echo "make lint        formatting and static checks"
	@echo "make bench       CPU cost, which virtual time cannot show: instructions, then real clock"
	@echo "make packages    Debian packages of k2 (DKMS), steady and libsteadyio, in build/packages"
	@echo "make wheels      Python packages of the recorder and of this lab, in build/wheels"
	@echo "make kernel-patches TREE=DIR  k2 as a patch series for that tree of Linux 7.3, in OUT [build/kernel-patches]"
	@echo "make setup       only install and build what the demo needs"
	@echo "make clean       remove build/ (the kernel cache stays, see ARCHITECTURE.md)"

setup:
	scripts/setup

demo: setup
	$(LAB) demo

test:
	scripts/test

test-all:
	scripts/test --all

STOCK_TESTS := tests/stock/stock_kernels.py tests/stock/registered_cost.py tests/stock/emulated_card.py

test-stock:
	scripts/setup stock
	build/venv/bin/pytest -n 2 -c lab/pyproject.toml --rootdir . $(STOCK_TESTS) -k 'not -rt and not -armhf' \
		--junitxml build/tests/stock.xml

test-stock-all:
	scripts/setup stock-all
	build/venv/bin/pytest -n 2 -c lab/pyproject.toml --rootdir . $(STOCK_TESTS) \
		--junitxml build/tests/stock.xml

test-races:
	scripts/setup test
	build/venv/bin/pytest -n 2 -c lab/pyproject.toml --rootdir . tests/races/race_kernels.py \
		tests/races/lock_times.py --junitxml build/tests/races.xml

test-packages:
	scripts/setup packages
	scripts/packages
	build/venv/bin/pytest -s -x -c lab/pyproject.toml --rootdir . tests/packages/release.py tests/packages/in_a_root.py \
		tests/packages/installed.py --durations 0 --junitxml build/tests/packages.xml

soak:
	scripts/soak

lint:
	scripts/setup lint
	scripts/lint

bench:
	scripts/setup test
	scripts/bench

packages: setup
	scripts/packages

wheels:
	scripts/setup test
	scripts/wheels

OUT ?= build/kernel-patches

kernel-patches:
	@test -n "$(TREE)" || { echo "make kernel-patches TREE=DIR: name a tree of Linux 7.3" >&2; exit 2; }
	python3 kernel/upstream/series.py "$(TREE)" "$(OUT)"

clean:
	rm -rf build
