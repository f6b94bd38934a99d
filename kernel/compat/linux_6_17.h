/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * COMPAT_LINUX_7_3: built for 7.3. For the differences that no macro of their own tells; what tells
 * is a macro that, of the releases that Kbuild lets through, only 7.3 has. Where it is wrong the
 * module does not compile.
 */
#ifndef COMPAT_LINUX_7_3_H
#define COMPAT_LINUX_7_3_H

#include <linux/timer.h>

#ifdef timer_container_of
#define COMPAT_LINUX_7_3
#endif

#endif /* COMPAT_LINUX_7_3_H */
