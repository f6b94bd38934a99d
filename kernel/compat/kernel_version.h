/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The elevator interface is private to the kernel and changes between releases without a word to
 * the compiler. k2 therefore builds for the releases it was tested on, and for no other.
 */
#ifndef K2_COMPAT_KERNEL_VERSION_H
#define K2_COMPAT_KERNEL_VERSION_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#error "k2 supports Linux 6.1"
#endif

#endif /* K2_COMPAT_KERNEL_VERSION_H */
