/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The bounds of a histogram of latencies: each power of two from 4096 ns (2^12) to 17.2 s (2^34) is
 * cut into four equal parts, so that no bucket is wider than a quarter of what it holds. Below and
 * above there is one bucket each.
 */
#ifndef K2_LATENCY_H
#define K2_LATENCY_H

#include "k2_types.h"

#define K2_LATENCY_SHIFT   12
#define K2_LATENCY_OCTAVES 22
#define K2_LATENCY_PARTS   4
#define K2_LATENCY_LAST	   (1 + K2_LATENCY_OCTAVES * K2_LATENCY_PARTS)
#define K2_LATENCY_BUCKETS (K2_LATENCY_LAST + 1)

/* The bucket whose bound is the first that is not below @ns, which is not 0. */
static inline u32 k2_latency_bucket(u64 ns)
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

/* The bound of @bucket, which it holds itself; not of K2_LATENCY_LAST, which has none. */
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
