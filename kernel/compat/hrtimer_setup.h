/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets up an hrtimer: by hrtimer_init() and an assignment on 6.1 and 6.12, and by hrtimer_setup()
 * with the function since 6.17, which has no hrtimer_init().
 */
#ifndef COMPAT_HRTIMER_SETUP_H
#define COMPAT_HRTIMER_SETUP_H

#include <linux/hrtimer.h>

#include "linux_6_17.h"

static inline void compat_hrtimer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*fired)(struct hrtimer *),
					enum hrtimer_mode mode)
{
#ifdef COMPAT_LINUX_6_17
	hrtimer_setup(timer, fired, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = fired;
#endif
}

#endif /* COMPAT_HRTIMER_SETUP_H */
