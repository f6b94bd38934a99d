# SPDX-License-Identifier: MIT OR Apache-2.0
SUMMARY = "Measure, tune and record with bounded storage latency"
DESCRIPTION = "The command steady: latency under fio workloads, the time of each I/O by layer, \
recording without blocking the caller, extents without a file system."
SECTION = "utils"
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSES/MIT.txt;md5=ae4f3b0cc527bbf84ca22873c35bd307 \
                    file://LICENSES/Apache-2.0.txt;md5=3b83ef96387f14655fc854ddc3c6bd57"

inherit cargo externalsrc

SRC_URI = ""
EXTERNALSRC = "${STEADYIO_CLONE}"
EXTERNALSRC_BUILD = "${WORKDIR}/build"
CARGO_SRC_DIR = "device"
CARGO_BUILD_FLAGS += "--package steady"

# Cargo fetches what Cargo.lock names, with its hashes, while it builds.
CARGO_DISABLE_BITBAKE_VENDORING = "1"
do_compile[network] = "1"

RRECOMMENDS:${PN} += "fio k2"
