# SPDX-License-Identifier: MIT OR Apache-2.0
include $(sort $(wildcard $(BR2_EXTERNAL_STEADYIO_PATH)/package/*/*.mk))
