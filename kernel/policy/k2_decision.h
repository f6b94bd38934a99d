/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The decision at each dispatch: how much of a request goes to the device now, or until when it
 * is held.
 *
 * Split by size (split_kib), look-ahead (rt_block_us), the pace of writes and the exceptions from
 * them meet here and nowhere else. k2_guard.c calls this in the kernel, lab/simulate and
 * tests/policy in simulations: what they simulate is what the kernel does.
 *
 * No allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_DECISION_H
#define K2_DECISION_H

#include "k2_lookahead.h"
#include "k2_policy.h"

/* Without a stream, one command in so many is watched, so that the device is known to the first. */
#define K2_WATCHED_EVERY 16

/* A request at the head of its queue. */
struct k2_offer {
	u32 queue;
	u32 op; /* 0: read, 1: write */
	u32 bytes;
	u32 block_bytes; /* of the device */
	bool may_split;
	bool is_timed; /* a read or write: how long it takes is known */
};

struct k2_decision {
	u32 bytes; /* 0: nothing now */
	/*
	 * With 0 bytes: when to ask again. Earlier if a real-time request comes or a command ends;
	 * 0: only then.
	 */
	u64 hold_until_ns;
	bool is_watched; /* k2_lookahead_watch(), else k2_lookahead_unwatched() */
	bool is_unguarded; /* the bound does not cover it, see k2_policy.h */
	bool is_cut; /* these two were computed */
	u64 room_ns; /* for how long the device may work on it */
	u64 piece_ns; /* for how long it is believed to */
};

/* Does rt_block_us apply? split_kib comes first. */
static inline bool k2_looks_ahead(const struct k2_lookahead *ahead, const struct k2_policy *policy)
{
	return ahead->rt_block_ns && !policy->split_bytes;
}

/* Before which real-time level's requests must one of @queue be out of the way? */
static inline u32 k2_guarded_level(u32 queue)
{
	return queue < K2_RT_LEVELS ? queue : K2_RT_LEVELS;
}

/* Does k2_decide() need the time? */
static inline bool k2_decision_needs_time(const struct k2_lookahead *ahead,
					  const struct k2_policy *policy)
{
	return (k2_looks_ahead(ahead, policy) && ahead->streams.used) || ahead->declared.used;
}

/* Is there no real-time process of a level before @level that look-ahead guards? */
static inline bool k2_guards_nobody(const struct k2_lookahead *ahead, u32 level, u64 now_ns)
{
	return !ahead->streams.used || !k2_lookahead_guards(ahead, level, now_ns);
}

/*
 * Then k2_decide() would have a request of @queue go as a whole, unless there are declared tasks.
 * Returns whether it is watched: real-time always, as background joins it only if its time is
 * known, and as the pace of writes depends on whether those of real-time stall.
 */
static inline bool k2_decide_whole(struct k2_lookahead *ahead, u32 queue)
{
	if (queue < K2_RT_LEVELS)
		return true;
	k2_pace_untold(&ahead->pace);
	return ++ahead->unwatched % K2_WATCHED_EVERY == 0;
}

/*
 * Called before k2_policy_dispatch(). @now_ns: monotonic; anything unless
 * k2_decision_needs_time().
 * Changes what look-ahead keeps about holding back, never the policy.
 */
struct k2_decision k2_decide(struct k2_lookahead *ahead, const struct k2_policy *policy,
			     const struct k2_offer *offer, u64 now_ns);

#endif /* K2_DECISION_H */
