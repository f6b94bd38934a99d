/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Predicts the limits of the next of a series of times.
 *
 * Problem: the shortest time seen is not the shortest time possible.
 *
 * Model: the four shortest and the four longest times are kept. Their distance shows how sharp the
 * edge is, and the limit lies beyond the edge by this distance. An epoch has two halves. A time is
 * forgotten unless it was seen in the current half or in the last one.
 *
 * Times are in units of K2_TIME_NS, and no longer than K2_TIME_MAX, 18 minutes.
 */
#ifndef K2_EDGE_H
#define K2_EDGE_H

#include "k2_types.h"

#define K2_TIME_SHIFT 10
#define K2_TIME_NS    1024ULL
#define K2_TIME_MAX   (~0U >> 2)
#define K2_EDGE_KEPT  4

struct k2_half {
	u32 count;
	/* The shortest times as their complements, and the longest; largest first; 0: none. */
	u32 low[K2_EDGE_KEPT], high[K2_EDGE_KEPT];
};

struct k2_edge {
	struct k2_half half[2]; /* the current half and the last one */
	u32 turned; /* short halves that have ended */
	u64 since_ns; /* the start of this half */
	/* Limits of the next time. earliest is 0 without a limit, or below four known times. */
	u32 earliest, latest;
};

static inline u32 k2_time(u64 ns)
{
	return ns >> K2_TIME_SHIFT < K2_TIME_MAX ? (u32)(ns >> K2_TIME_SHIFT) : K2_TIME_MAX;
}

void k2_edge_add(struct k2_edge *edge, u32 time, u64 now_ns);

static inline u32 k2_edge_count(const struct k2_edge *edge)
{
	return edge->half[0].count + edge->half[1].count;
}

/* The shortest and longest time kept; ~0 and 0 without times. */
static inline u32 k2_edge_shortest(const struct k2_edge *edge)
{
	return ~(u32)k2_max(edge->half[0].low[0], edge->half[1].low[0]);
}

static inline u32 k2_edge_longest(const struct k2_edge *edge)
{
	return (u32)k2_max(edge->half[0].high[0], edge->half[1].high[0]);
}

#endif /* K2_EDGE_H */
