# SPDX-License-Identifier: MIT OR Apache-2.0
SUMMARY = "Measure, tune and record with bounded storage latency"
DESCRIPTION = "The command steady: latency under fio workloads, the time of each I/O by layer, \
recording without blocking the caller, extents without a file system."
SECTION = "utils"
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSES/MIT.txt;md5=ae4f3b0cc527bbf84ca22873c35bd307 \
                    file://LICENSES/Apache-2.0.txt;md5=3b83ef96387f14655fc854ddc3c6bd57"

inherit cargo externalsrc useradd

# Who may declare tasks at /dev/k2.
USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "--system steadyio"

SRC_URI = ""
require steadyio-crates.inc
EXTERNALSRC = "${STEADYIO_CLONE}"
EXTERNALSRC_BUILD = "${WORKDIR}/build"
CARGO_SRC_DIR = "device"
CARGO_BUILD_FLAGS += "--package steady"

# Edition 2024. Scarthgap has 1.75; the branch scarthgap/rust of meta-lts-mixins brings a newer one.
python () {
    version = (d.getVar("RUSTVERSION") or "").rstrip("%").split(".")[:2]
    if version != [""] and [int(number) for number in version] < [1, 85]:
        raise bb.parse.SkipRecipe("needs Rust 1.85, the layer has %s: add meta-lts-mixins, "
            "branch scarthgap/rust" % ".".join(version))
}

do_install:append() {
    ${S}/scripts/install-share ${D}${prefix}
    install -d ${D}${mandir}/man4
    install -m 644 ${S}/packaging/man/k2.4 ${D}${mandir}/man4/
}
FILES:${PN} += "${datadir}/steadyio ${nonarch_libdir}/sysusers.d ${nonarch_libdir}/udev"

RRECOMMENDS:${PN} += "fio k2"
