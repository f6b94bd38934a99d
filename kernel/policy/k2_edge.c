// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_edge.h"

/* A half has so many times and lasts so long, */
#define HALF_COUNT 128U
#define HALF_NS	   8000000000ULL
/* but the first halves are shorter: programs start unlike they go on. */
#define SHORT_HALVES 3
/* One of so many may be an outlier. */
#define OUTLIER_COUNT 8
#define MARGIN	      20U

u32 k2_edge_shortest(const struct k2_edge *edge)
{
	u32 now = edge->count[0] ? edge->low[0][0] : ~0U;
	u32 before = edge->count[1] ? edge->low[1][0] : ~0U;

	return now < before ? now : before;
}

u32 k2_edge_longest(const struct k2_edge *edge)
{
	u32 now = edge->count[0] ? edge->high[0][0] : 0;
	u32 before = edge->count[1] ? edge->high[1][0] : 0;

	return now > before ? now : before;
}

static void turn_half(struct k2_edge *edge, u64 now_ns)
{
	u32 i;

	if (!k2_edge_count(edge))
		edge->short_halves = SHORT_HALVES;
	if (edge->count[0] >= HALF_COUNT >> edge->short_halves &&
	    now_ns - edge->since_ns >= HALF_NS >> 2 * edge->short_halves) {
		edge->short_halves -= !!edge->short_halves;
		for (i = 0; i < K2_EDGE_KEPT; i++) {
			edge->low[1][i] = edge->low[0][i];
			edge->high[1][i] = edge->high[0][i];
		}
		edge->count[1] = edge->count[0];
		edge->count[0] = 0;
	}
	if (!edge->count[0])
		edge->since_ns = now_ns;
}

/* Returns whether it is one of the shortest or the longest. */
static bool keep(struct k2_edge *edge, u32 time)
{
	u32 low = time, high = time, count = edge->count[0]++, i;

	if (count >= OUTLIER_COUNT && time >= edge->low[0][K2_EDGE_KEPT - 1] &&
	    time <= edge->high[0][K2_EDGE_KEPT - 1])
		return false;
	for (i = 0; i < K2_EDGE_KEPT; i++) {
		u32 *at_low = &edge->low[0][i], *at_high = &edge->high[0][i], other;

		if (i >= count) {
			*at_low = low;
			*at_high = high;
			break;
		}
		other = *at_low;
		if (low < other) {
			*at_low = low;
			low = other;
		}
		other = *at_high;
		if (high > other) {
			*at_high = high;
			high = other;
		}
	}
	return true;
}

/*
 * As far beyond the longest as that is from the fourth. One of many that is far above all others is
 * an exception: a program starts.
 */
static u32 upper(const struct k2_edge *edge, u32 half)
{
	const u32 *high = edge->high[half];
	u32 rest;

	if (edge->count[half] < K2_EDGE_KEPT)
		return edge->count[half] ? high[0] : 0;
	rest = high[1] - high[K2_EDGE_KEPT - 1];
	if (edge->count[half] >= OUTLIER_COUNT && high[0] - high[1] > 4 * rest + MARGIN)
		return high[1] + rest;
	return high[0] + high[0] - high[K2_EDGE_KEPT - 1];
}

/* The larger of the distances of both halves. */
static u32 low_distance(const struct k2_edge *edge)
{
	u32 most = 0, half;

	for (half = 0; half < 2; half++) {
		u32 apart = edge->low[half][K2_EDGE_KEPT - 1] - edge->low[half][0];

		if (edge->count[half] >= K2_EDGE_KEPT && apart > most)
			most = apart;
	}
	return most;
}

void k2_edge_add(struct k2_edge *edge, u32 time, u64 now_ns)
{
	u32 low, latest;

	turn_half(edge, now_ns);
	if (!keep(edge, time))
		return;
	edge->earliest = 0;
	if (k2_edge_count(edge) < K2_EDGE_KEPT)
		return;
	low = low_distance(edge) + MARGIN;
	/* A wider margin would be no limit. */
	if (low < k2_edge_shortest(edge) / 3)
		edge->earliest = k2_edge_shortest(edge) - low;
	latest = (u32)k2_max(upper(edge, 0), upper(edge, 1)) + MARGIN;
	edge->latest = (u32)k2_min(latest, K2_TIME_MAX);
}
