# SPDX-License-Identifier: MIT OR Apache-2.0
################################################################################
#
# steadyio
#
################################################################################

STEADYIO_VERSION = 0.1.0
STEADYIO_SITE = $(BR2_EXTERNAL_STEADYIO_PATH)/../..
STEADYIO_SITE_METHOD = local
STEADYIO_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = --exclude /build
STEADYIO_LICENSE = MIT or Apache-2.0
STEADYIO_LICENSE_FILES = LICENSES/MIT.txt LICENSES/Apache-2.0.txt
STEADYIO_DEPENDENCIES = host-rustc

# Not cargo-package, which is offline and vendors the crates of downloaded archives only: here
# cargo fetches what Cargo.lock names, with its hashes, while it builds.
define STEADYIO_BUILD_CMDS
	cd $(@D) && $(TARGET_MAKE_ENV) $(TARGET_CONFIGURE_OPTS) $(PKG_CARGO_ENV) \
		cargo build --release --locked --package steady \
		--manifest-path device/Cargo.toml --target-dir build
endef

define STEADYIO_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(@D)/build/$(RUSTC_TARGET_NAME)/release/steady \
		$(TARGET_DIR)/usr/bin/steady
	$(@D)/scripts/install-share $(TARGET_DIR)/usr
endef

# Who may declare tasks at /dev/k2: a group without a user.
define STEADYIO_USERS
	- -1 steadyio -1 - - - -
endef

$(eval $(generic-package))
