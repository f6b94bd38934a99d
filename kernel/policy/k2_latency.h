/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The buckets of a latency histogram. Each power of two from 4096 ns (2^12) to 17.2 s (2^34) has
 * four equal buckets, so a bucket is at most a quarter as wide as its values. One bucket lies below
 * this range, and one above.
 */
#ifndef K2_LATENCY_H
#define K2_LATENCY_H

#include "k2_types.h"

#define K2_LATENCY_SHIFT   12
#define K2_LATENCY_OCTAVES 22
#define K2_LATENCY_PARTS   4
#define K2_LATENCY_LAST	   (1 + K2_LATENCY_OCTAVES * K2_LATENCY_PARTS)
#define K2_LATENCY_BUCKETS (K2_LATENCY_LAST + 1)

/* The first bucket whose bound is not below @ns, which is not 0. */
static __always_inline u32 k2_latency_bucket(u64 ns)
{
	u64 units = (ns - 1) >> K2_LATENCY_SHIFT;
	u32 octave, part;

	if (!units)
		return 0;
	if (units >> K2_LATENCY_OCTAVES)
		return K2_LATENCY_LAST;
	octave = 31 ^ __builtin_clz((u32)units);
	part = (ns - 1) >> (octave + K2_LATENCY_SHIFT - 2) & (K2_LATENCY_PARTS - 1);
	return 1 + octave * K2_LATENCY_PARTS + part;
}

/* The largest value of @bucket; not for K2_LATENCY_LAST, which has no bound. */
static inline u64 k2_latency_bound_ns(u32 bucket)
{
	u32 octave, part;

	if (!bucket)
		return 1ULL << K2_LATENCY_SHIFT;
	octave = (bucket - 1) / K2_LATENCY_PARTS;
	part = (bucket - 1) % K2_LATENCY_PARTS;
	return (u64)(K2_LATENCY_PARTS + part + 1) << (octave + K2_LATENCY_SHIFT - 2);
}

#endif /* K2_LATENCY_H */
