/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * COMPAT_LINUX_6_17 is defined on 6.17 or newer, for differences that no macro of their own shows.
 * It tests a macro that 6.1 and 6.12, the older releases that Kbuild accepts, do not have. Where it
 * is wrong, the module does not compile. For changes since 6.17, see found.mk.
 */
#ifndef COMPAT_LINUX_6_17_H
#define COMPAT_LINUX_6_17_H

#include <linux/timer.h>

#ifdef timer_container_of
#define COMPAT_LINUX_6_17
#endif

#endif /* COMPAT_LINUX_6_17_H */
