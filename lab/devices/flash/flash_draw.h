/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Random numbers from a seed, a stream and a count. */
#ifndef STEADY_FLASH_DRAW_H
#define STEADY_FLASH_DRAW_H

#include "flash_model.h"

/*
 * The n-th number of a stream, uniform in 0..limit-1. Random access instead of a generator with
 * state, so that time alone selects an episode. Mixing function: splitmix64 (Steele, Lea, Flood,
 * "Fast splittable pseudorandom number generators", 2014).
 */
static inline u64 flash_draw(u64 seed, u64 stream, u64 n, u64 limit)
{
	u64 x = seed + (stream << 48) + n * 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	x ^= x >> 31;
	return x % limit;
}

#endif
