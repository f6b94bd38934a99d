/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When may the next of a sequence of requests come?
 *
 * These limits are learned from those before, and the narrowest counts:
 *  - of the gap between two requests;
 *  - of the time over several, which is better known where they come in bursts;
 *  - of a grid: periodic requests, or the first of each burst, come a little before or after a
 *    place, and no more so after a hundred places than after one.
 * A request that is late says nothing about those after it, which may catch up: nothing is learned
 * from them, and nothing is forgotten.
 */
#ifndef K2_PATTERN_H
#define K2_PATTERN_H

#include "k2_edge.h"

/* The time over 4, 5, 6 and 8 requests. */
#define K2_SPANS 4
#define K2_PAST	 8
#define K2_NEVER (~0ULL)

struct k2_grid {
	u64 last_ns; /* when the last request would have come at the latest */
	u64 period_ns; /* 0: not known */
	struct k2_edge early; /* how long before that they come */
	/* The period is measured from the anchor, so many places ago, later from the middle. */
	u64 anchor_ns, middle_ns;
	u32 places, middle_places; /* since the anchor; 0: no middle */
	u32 late; /* requests in a row */
	u32 distrust; /* so many more places are needed before it counts */
};

struct k2_pattern {
	u64 arrival_ns, end_ns; /* the last */
	u32 outstanding;
	u32 known; /* requests in past_ns, and multiples of K2_PAST */
	u32 late; /* so many requests may be catching up */
	u64 past_ns[K2_PAST];
	struct k2_edge gap, pause, span[K2_SPANS];
	struct k2_grid grid;
};

void k2_pattern_arrival(struct k2_pattern *pattern, u64 now_ns);
void k2_pattern_end(struct k2_pattern *pattern, u64 now_ns);

struct k2_window {
	u64 earliest_ns; /* now or later */
	u64 latest_ns; /* after now; 0: there is no telling */
	u64 since_ns; /* the last request */
	bool is_known; /* some limit counts */
};

struct k2_window k2_pattern_next(const struct k2_pattern *pattern, u64 now_ns);

#endif /* K2_PATTERN_H */
