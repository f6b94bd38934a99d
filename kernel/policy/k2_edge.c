// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_edge.h"

/* The least number of times in a half, and the least time it lasts. */
#define HALF_COUNT 128U
#define HALF_NS	   8000000000ULL
/* The first halves are shorter: programs behave differently when they start. */
#define SHORT_HALVES 3
/* One time in this many may be an outlier. */
#define OUTLIER_COUNT 8
#define MARGIN	      20U

/* Returns whether @key is now one of the largest. */
static bool keep(u32 *largest, u32 key)
{
	u32 i;

	if (key <= largest[K2_EDGE_KEPT - 1])
		return false;
	for (i = 0; i < K2_EDGE_KEPT; i++) {
		u32 other = largest[i];

		largest[i] = (u32)k2_max(key, other);
		key = (u32)k2_min(key, other);
	}
	return true;
}

static u32 low_distance(const struct k2_half *half)
{
	return half->count < K2_EDGE_KEPT ? 0 : half->low[0] - half->low[K2_EDGE_KEPT - 1];
}

/*
 * The limit lies as far above the longest time as that lies above the fourth longest. A single time
 * far above many others is an outlier, such as the start of a program.
 */
static u32 upper(const struct k2_half *half)
{
	const u32 *high = half->high;
	u32 rest = high[1] - high[K2_EDGE_KEPT - 1];

	if (half->count < K2_EDGE_KEPT)
		return high[0];
	if (half->count >= OUTLIER_COUNT && high[0] - high[1] > 4 * rest + MARGIN)
		return high[1] + rest;
	return high[0] + high[0] - high[K2_EDGE_KEPT - 1];
}

static void draw(struct k2_edge *edge)
{
	const struct k2_half *half = edge->half;
	u32 low = (u32)k2_max(low_distance(&half[0]), low_distance(&half[1])) + MARGIN;
	u32 shortest = k2_edge_shortest(edge);

	/* A wider margin would make the limit useless. */
	edge->earliest = low < shortest / 3 ? shortest - low : 0;
	edge->latest = (u32)k2_min(k2_max(upper(&half[0]), upper(&half[1])) + MARGIN, K2_TIME_MAX);
}

void k2_edge_add(struct k2_edge *edge, u32 time, u64 now_ns)
{
	struct k2_half *half = edge->half;
	u32 short_halves = SHORT_HALVES - edge->turned;
	bool is_kept;

	if (half->count >= HALF_COUNT >> short_halves &&
	    now_ns - edge->since_ns >= HALF_NS >> 2 * short_halves) {
		edge->turned += !!short_halves;
		half[1] = half[0];
		half[0] = (struct k2_half){};
	}
	if (!half->count++)
		edge->since_ns = now_ns;
	is_kept = keep(half->low, ~time) | keep(half->high, time);
	if (k2_edge_count(edge) >= K2_EDGE_KEPT && (is_kept || half->count <= OUTLIER_COUNT))
		draw(edge);
}
