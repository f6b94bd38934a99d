/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The only header the policy includes: fixed-width types and bool, from the kernel when built
 * into a module and from the compiler when built into the tests, and what each file needs.
 */
#ifndef K2_TYPES_H
#define K2_TYPES_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/types.h>

/* Divides a 64-bit number, for which 32-bit machines have no instruction. */
static inline u64 k2_div(u64 a, u32 b)
{
	return div_u64(a, b);
}
#else
#include <stdbool.h>
#include <sys/cdefs.h> /* __always_inline */

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT64_TYPE__ s64;

static inline u64 k2_div(u64 a, u32 b)
{
	return a / b;
}
#endif

static inline u64 k2_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 k2_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* @a - @b, or 0 if @b is larger. */
static inline u64 k2_minus(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

#endif /* K2_TYPES_H */
