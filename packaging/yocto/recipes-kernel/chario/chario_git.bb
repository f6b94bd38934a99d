# SPDX-License-Identifier: MIT OR Apache-2.0
SUMMARY = "eMMC and SD cards as character devices"
DESCRIPTION = "Reads and writes a card, or a partition beside its block device, without the block \
layer, in the order of real-time priorities."

require recipes-kernel/steadyio-module.inc

RPROVIDES:${PN} += "kernel-module-chario"
