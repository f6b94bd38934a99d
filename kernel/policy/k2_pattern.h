/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Predicts when the next of a sequence of requests may come.
 *
 * Requests come in bursts, each after a long gap. If all gaps are alike, each burst has one
 * request. The pattern of which requests begin a burst is assumed to repeat. k2 learns limits from
 * past requests, and the narrowest one applies:
 *  - limits of the gap between two requests;
 *  - limits of the time from the begin of a burst to that of the next, of the one after it, and so
 *    on. Periodic requests come slightly before or after their place, and no more so after many
 *    places than after one: the more of these limits there are, the narrower they are together.
 * A late request says nothing about the next ones, which may catch up. k2 learns nothing from them,
 * and forgets nothing.
 */
#ifndef K2_PATTERN_H
#define K2_PATTERN_H

#include "k2_edge.h"

/* The time over 1, 2, 3, 4, 6, 8, 12 and 16 bursts. */
#define K2_SPANS 8
#define K2_PAST	 16
#define K2_NEVER (~0ULL)

struct k2_pattern {
	u64 arrival_ns, end_ns; /* of the last request */
	u32 outstanding;
	u32 late; /* not 0: requests since a late one, which may be catching up */
	u32 early; /* the last gap was shorter than this, unlike all before; 0: it was not */
	u32 begins; /* bit i: the i-th request before the last began a burst */
	u64 begins_known;
	u64 known; /* number of bursts, the last K2_PAST of them in past_ns */
	u64 past_ns[K2_PAST];
	struct k2_edge gap, pause, span[K2_SPANS];
};

void k2_pattern_arrival(struct k2_pattern *pattern, u64 now_ns);
void k2_pattern_end(struct k2_pattern *pattern, u64 now_ns);

struct k2_window {
	u64 earliest_ns; /* now or later */
	u64 latest_ns; /* after now; 0: unknown */
	u64 since_ns; /* when the last request came */
	bool is_known; /* some limit applies */
};

struct k2_window k2_pattern_next(const struct k2_pattern *pattern, u64 now_ns);

#endif /* K2_PATTERN_H */
