/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The only header the policy includes: fixed-width types and bool, from the kernel when built
 * into a module and from the compiler when built into the tests.
 */
#ifndef K2_TYPES_H
#define K2_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
#endif

#endif /* K2_TYPES_H */
