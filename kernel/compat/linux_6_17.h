/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * COMPAT_LINUX_6_17: built for 6.17 or newer. For the differences that no macro of their own tells;
 * what tells is a macro that, of the releases that Kbuild lets through, 6.1 and 6.12 do not have.
 * Where it is wrong the module does not compile. For changes since 6.17 see found.mk.
 */
#ifndef COMPAT_LINUX_6_17_H
#define COMPAT_LINUX_6_17_H

#include <linux/timer.h>

#ifdef timer_container_of
#define COMPAT_LINUX_6_17
#endif

#endif /* COMPAT_LINUX_6_17_H */
