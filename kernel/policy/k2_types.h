/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The only header the policy includes: fixed-width types and bool, from the kernel when built
 * into a module and from libc when built into the tests.
 */
#ifndef K2_TYPES_H
#define K2_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#endif /* K2_TYPES_H */
