/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Anticipation: is the device left idle for a real-time request that is about to come?
 *
 * Problem: pieces that are cut to rt_block_us shortly before a request block it all the same, and
 * are so short that the device spends its time on commands, not on data. Where the time of the
 * request is well known, the background loses little if it stops before that.
 *
 * The device is left idle if that takes at most 1/K2_IDLE_PARTS of the gap between two requests,
 * 1/K2_IDLE_PARTS_ALL of the time since it was decided for another one, and K2_IDLE_NS_MAX. Decided
 * once for each request.
 */
#ifndef K2_ANTICIPATION_H
#define K2_ANTICIPATION_H

#include "k2_pattern.h"

#define K2_IDLE_PARTS	  6
#define K2_IDLE_PARTS_ALL 1
#define K2_IDLE_NS_MAX	  4000000ULL

struct k2_anticipation {
	u64 since_ns; /* decided for the request that follows this one, */
	u64 decided_ns; /* at this time, */
	u64 gap_ns; /* and so long after the last decision */
	bool waits;
	u64 count; /* of requests that the device is left idle for */
};

/* Is the device to be left idle for @next, where a piece takes @piece_ns otherwise? */
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
