# SPDX-License-Identifier: GPL-2.0-only
#
# Included by the Kbuild of k2 and of chario, whose name is in compat_module. Rejects releases with
# other interfaces. Sets compat_found to macros for the interfaces that a kernel has. Its version does
# not show them, because stable releases and distributions backport changes.

# A module that compiles may still be wrong. The authors read the interfaces of 6.1, 6.12 and 6.17 to
# 7.3, and compiled for them. docs/reference/tested.md lists the kernels on which the modules ran.
compat_release := $(VERSION)$(shell printf %03d $(PATCHLEVEL))
compat_newest := 7003

ifeq ($(filter 6001 6012,$(compat_release))$(shell [ $(compat_release) -ge 6017 ] && echo new),)
$(error $(compat_module) supports Linux 6.1, 6.12, and 6.17 or newer, not $(VERSION).$(PATCHLEVEL))
endif
ifeq ($(shell [ $(compat_release) -gt $(compat_newest) ] && echo newer),newer)
$(warning $(compat_module) was tried up to Linux 7.3 only, not on $(VERSION).$(PATCHLEVEL))
endif

# $(call compat_has,NAME,PATTERN,HEADER): all white space in the header counts as single blanks.
compat_has = $(if $(shell cat $(3) 2>/dev/null | tr -s '[:space:]' ' ' | grep -E '$(2)'),-DCOMPAT_HAS_$(1))

compat_found := $(call compat_has,ASYNC_DEPTH,unsigned int async_depth;,$(srctree)/include/linux/blkdev.h)
compat_found += $(call compat_has,END_IO_BATCH,\(rq_end_io_fn\)[^;]*io_comp_batch,$(srctree)/include/linux/blk-mq.h)
ifdef K2_BLOCK_DIR
compat_found += $(call compat_has,SCHED_DATA,\(\*alloc_sched_data\),$(K2_BLOCK_DIR)/elevator.h)
endif
