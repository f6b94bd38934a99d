# SPDX-License-Identifier: MIT OR Apache-2.0
# How tests in C are run, included by the Makefiles of policy/ and devices/: each unless it has
# passed as it is now. Of one that fails, the lines that say so are shown, and not those of the
# tests that passed. With STEADYIO_TEST_CACHE=0 all run.

PASSED := $(TESTS:%=$(BUILD)/%.passed)

.PHONY: again
ifeq ($(STEADYIO_TEST_CACHE),0)
$(PASSED): again
endif

$(PASSED): $(BUILD)/%.passed: $(BUILD)/%
	@$< >$(BUILD)/$*.log 2>&1 || { grep -v '^ok ' $(BUILD)/$*.log; exit 1; }
	@echo "ok   $* ($$(grep -c '^ok ' $(BUILD)/$*.log) passed)"
	@touch $@
