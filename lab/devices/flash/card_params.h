/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Module parameters of the timing model of managed flash, for the devices that are made of it.
 * Compiled into each of them.
 */
#ifndef STEADY_CARD_PARAMS_H
#define STEADY_CARD_PARAMS_H

#include "flash_model.h"

/* Longest of any time: 10 minutes, as in profiles. */
#define CARD_TIME_NS_MAX    600000000000ull
#define CARD_PER_KIB_NS_MAX 10000000ull /* 10 ms per KiB: 0.1 MiB/s */

/*
 * Sets all of *flash but depth and the time of an erase. -EINVAL, with a line in the log, if a
 * relation between numbers does not hold or a fault is invalid. Called once, by module init.
 */
int card_params_load(struct flash_params *flash);

#endif
