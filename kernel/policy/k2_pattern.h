/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When may the next of a sequence of requests come?
 *
 * Requests come in bursts, each after a long gap; of one request, if all gaps are alike. Which
 * requests begin one is expected to go on as it was. These limits are learned from those before,
 * and the narrowest counts:
 *  - of the gap between two requests;
 *  - of the time from the begin of a burst to that of the next, of the one after it, and so on.
 *    Periodic requests come a little before or after a place, and no more so after many places than
 *    after one: the more of these times there are, the narrower they are together.
 * A request that is late says nothing about those after it, which may catch up: nothing is learned
 * from them, and nothing is forgotten.
 */
#ifndef K2_PATTERN_H
#define K2_PATTERN_H

#include "k2_edge.h"

/* The time over 1, 2, 3, 4, 6, 8, 12 and 16 bursts. */
#define K2_SPANS 8
#define K2_PAST	 16
#define K2_NEVER (~0ULL)

struct k2_pattern {
	u64 arrival_ns, end_ns; /* the last */
	u32 outstanding;
	u32 late; /* so many requests may be catching up */
	u32 early; /* the last gap was shorter than this, as none before; 0: it was not */
	u32 begins; /* bit i: the request i before the last has begun a burst; of so many */
	u64 begins_known;
	u64 known; /* so many bursts, the last K2_PAST in past_ns */
	u64 past_ns[K2_PAST];
	struct k2_edge gap, pause, span[K2_SPANS];
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
