/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The remove() of a platform driver that returns nothing: .remove_new on 6.1 and 6.12, .remove
 * since 6.17.
 */
#ifndef COMPAT_PLATFORM_REMOVE_H
#define COMPAT_PLATFORM_REMOVE_H

#include "linux_6_17.h"

#ifdef COMPAT_LINUX_6_17
#define compat_remove remove
#else
#define compat_remove remove_new
#endif

#endif /* COMPAT_PLATFORM_REMOVE_H */
