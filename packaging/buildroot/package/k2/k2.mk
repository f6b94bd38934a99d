# SPDX-License-Identifier: MIT OR Apache-2.0
################################################################################
#
# k2
#
################################################################################

K2_VERSION = 0.1.0
K2_SITE = $(BR2_EXTERNAL_STEADYIO_PATH)/../..
K2_SITE_METHOD = local
K2_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = --exclude /build
K2_LICENSE = GPL-2.0
K2_LICENSE_FILES = LICENSES/GPL-2.0-only.txt

K2_MODULE_SUBDIRS = kernel/k2
ifeq ($(BR2_PACKAGE_K2_CHARIO),y)
K2_MODULE_SUBDIRS += kernel/chario
endif

$(eval $(kernel-module))
$(eval $(generic-package))
