// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_latency.h"

u32 k2_latency_bucket(u64 ns)
{
	u64 units = ns ? (ns - 1) >> K2_LATENCY_SHIFT : 0;
	u32 octave, part;

	if (!units)
		return 0;
	if (units >> K2_LATENCY_OCTAVES)
		return K2_LATENCY_LAST;
	octave = 31 - __builtin_clz((u32)units);
	part = (ns - 1) >> (octave + K2_LATENCY_SHIFT - 2) & (K2_LATENCY_PARTS - 1);
	return 1 + octave * K2_LATENCY_PARTS + part;
}

u64 k2_latency_bound_ns(u32 bucket)
{
	u32 octave, part;

	if (!bucket)
		return 1ULL << K2_LATENCY_SHIFT;
	octave = (bucket - 1) / K2_LATENCY_PARTS;
	part = (bucket - 1) % K2_LATENCY_PARTS;
	return (u64)(K2_LATENCY_PARTS + part + 1) << (octave + K2_LATENCY_SHIFT - 2);
}
