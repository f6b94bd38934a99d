// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_edge.h"

/* A half has so many times and lasts so long, */
#define HALF_COUNT 128U
#define HALF_NS	   8000000000ULL
/* but the first halves are shorter: programs start unlike they go on. */
#define SHORT_HALVES 3
/* Of fewer times nothing is known, and of few the edge is chance. */
#define KNOWN_MIN 4
#define FEW_COUNT 16
#define EDGE_FEW  128
#define MARGIN	  20U
/* One of so many may be an outlier. */
#define OUTLIER_COUNT 8

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

static void keep(struct k2_edge *edge, u32 time)
{
	u32 low = time, high = time, i;

	for (i = 0; i < K2_EDGE_KEPT; i++) {
		u32 *at_low = &edge->low[0][i], *at_high = &edge->high[0][i], other;

		if (i >= edge->count[0]) {
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
	edge->count[0]++;
}

/*
 * The limit of the longest. One of many that is far above all others is an exception: a program
 * starts, or is late once.
 */
static u32 upper(const struct k2_edge *edge, u32 half, u32 margin)
{
	const u32 *high = edge->high[half];
	u32 rest;

	if (edge->count[half] < K2_EDGE_KEPT)
		return edge->count[half] ? high[0] + margin : 0;
	rest = high[1] - high[K2_EDGE_KEPT - 1];
	if (edge->count[half] >= OUTLIER_COUNT && high[0] - high[1] > 4 * rest + margin)
		return high[1] + rest + margin;
	return high[0] + high[0] - high[K2_EDGE_KEPT - 1] + margin;
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

void k2_edge_add(struct k2_edge *edge, u32 time, u32 scale, u64 now_ns)
{
	u32 count, margin, low, high, before;

	turn_half(edge, now_ns);
	keep(edge, time);
	edge->earliest = 0;
	count = k2_edge_count(edge);
	if (count < KNOWN_MIN)
		return;
	margin = MARGIN + (count < FEW_COUNT ? (scale >> 9) * (FEW_COUNT - count) : 0);
	low = (count < EDGE_FEW ? 4 : 3) * low_distance(edge) + margin;
	/* A wider margin would be no limit. */
	if (low < k2_edge_shortest(edge) / 3)
		edge->earliest = k2_edge_shortest(edge) - low;
	high = upper(edge, 0, margin);
	before = upper(edge, 1, margin);
	high = high > before ? high : before;
	edge->latest = high < K2_TIME_MAX ? high : K2_TIME_MAX;
}
