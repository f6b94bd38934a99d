/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Anticipation: leaves the device idle for a real-time request that comes soon.
 *
 * Problem: pieces that end within rt_block_us still block a request that comes shortly after their
 * dispatch, and are so short that the device spends its time on commands, not data. If the time of
 * the request is well known, the background loses little by stopping before it.
 *
 * The device may be left idle for 1/K2_IDLE_PARTS of the gap between two requests, for
 * 1/K2_IDLE_PARTS_ALL of the time since the last decision for another request, and for
 * K2_IDLE_NS_MAX. There is one decision for each request.
 */
#ifndef K2_ANTICIPATION_H
#define K2_ANTICIPATION_H

#include "k2_pattern.h"

#define K2_IDLE_PARTS	  6
#define K2_IDLE_PARTS_ALL 1
#define K2_IDLE_NS_MAX	  4000000ULL

struct k2_anticipation {
	u64 since_ns; /* the decision is for the request after this one, */
	u64 decided_ns; /* was made at this time, */
	u64 gap_ns; /* and this long after the last one */
	bool waits;
	u64 count; /* requests that the device was left idle for */
};

/* Should the device stay idle for @next, where a piece takes @piece_ns otherwise? */
static inline bool k2_anticipates(struct k2_anticipation *anticipation,
				  const struct k2_window *next, u64 piece_ns, u64 now_ns)
{
	u64 window_ns = next->latest_ns - next->earliest_ns;

	if (anticipation->since_ns == next->since_ns)
		return anticipation->waits;
	anticipation->gap_ns = now_ns - anticipation->decided_ns;
	anticipation->since_ns = next->since_ns;
	anticipation->decided_ns = now_ns;
	anticipation->waits = window_ns * K2_IDLE_PARTS <= next->latest_ns - next->since_ns &&
			      window_ns * K2_IDLE_PARTS_ALL <= anticipation->gap_ns &&
			      window_ns + piece_ns <= K2_IDLE_NS_MAX;
	anticipation->count += anticipation->waits;
	return anticipation->waits;
}

#endif /* K2_ANTICIPATION_H */
