/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * REQ_ATOMIC, since 6.11: a write that reaches the device as one command or not at all
 * (RWF_ATOMIC). 6.1 has none.
 */
#ifndef K2_COMPAT_REQUEST_ATOMIC_H
#define K2_COMPAT_REQUEST_ATOMIC_H

#include <linux/blk_types.h>

#ifndef REQ_ATOMIC
#define REQ_ATOMIC ((__force blk_opf_t)0)
#endif

#endif /* K2_COMPAT_REQUEST_ATOMIC_H */
