/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions of the mmc core that have other names since 6.17. */
#ifndef CHARIO_COMPAT_MMC_NAMES_H
#define CHARIO_COMPAT_MMC_NAMES_H

#include "linux_6_17.h"

#ifndef COMPAT_LINUX_6_17
#define mmc_host_can_cmd23(host) mmc_host_cmd23(host)
#define mmc_card_can_erase(card) mmc_can_erase(card)
#endif

#endif /* CHARIO_COMPAT_MMC_NAMES_H */
