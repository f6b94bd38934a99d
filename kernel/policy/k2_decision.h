/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The decision at each dispatch: how many bytes of a request go to the device now, or until when
 * the request is held.
 *
 * This file alone combines splitting by size (split_kib), look-ahead (rt_block_us), the pace of
 * writes and their exceptions. k2_guard.c calls it in the kernel; lab/simulate and tests/policy
 * call it in simulations, which therefore decide as the kernel does.
 *
 * No allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_DECISION_H
#define K2_DECISION_H

#include "k2_lookahead.h"
#include "k2_policy.h"

/* While no process is guarded, one command in this many is measured, to learn the device. */
#define K2_WATCHED_EVERY 16

/* A request at the head of its queue. */
struct k2_offer {
	u32 queue;
	u32 op; /* 0: read, 1: write */
	u32 bytes;
	u32 block_bytes; /* of the device */
	bool may_split;
	bool is_timed; /* a read or write, whose time can be predicted */
};

struct k2_decision {
	u32 bytes; /* 0: nothing now */
	/*
	 * With 0 bytes: when to ask again, or earlier, when a real-time request comes or a command
	 * ends. 0: only then.
	 */
	u64 hold_until_ns;
	bool is_watched; /* k2_lookahead_watch(), else k2_lookahead_unwatched() */
	bool is_unguarded; /* the bound does not cover it, see k2_policy.h */
	bool is_cut; /* room_ns and piece_ns were computed */
	u64 room_ns; /* the longest time that the device may work on it */
	u64 piece_ns; /* the predicted time of the piece */
};

/* Does rt_block_us apply? A set split_kib disables it. */
static inline bool k2_looks_ahead(const struct k2_lookahead *ahead, const struct k2_policy *policy)
{
	return ahead->rt_block_ns && !policy->split_bytes;
}

/* Requests of real-time levels before this one must not wait long for a request of @queue. */
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

/* Does look-ahead guard no real-time process of a level before @level? */
static inline bool k2_guards_nobody(const struct k2_lookahead *ahead, u32 level, u64 now_ns)
{
	return !ahead->streams.used || !k2_lookahead_guards(ahead, level, now_ns);
}

/*
 * If it guards none, k2_decide() dispatches requests of @queue whole, unless there are declared
 * tasks. Returns whether to measure this one. Real-time always is: background runs alongside it
 * only if its time is known, and the pace of writes depends on real-time stalls.
 */
static inline bool k2_decide_whole(struct k2_lookahead *ahead, u32 queue)
{
	if (queue < K2_RT_LEVELS) {
		/* The background that follows begins elsewhere. */
		ahead->left_bytes = 0;
		return true;
	}
	k2_pace_untold(&ahead->pace);
	return ++ahead->unwatched % K2_WATCHED_EVERY == 0;
}

/*
 * The caller calls this before k2_policy_dispatch(). @now_ns: monotonic; it may be anything if
 * k2_decision_needs_time() is false. This changes the state of look-ahead about held requests, but
 * never the policy.
 */
struct k2_decision k2_decide(struct k2_lookahead *ahead, const struct k2_policy *policy,
			     const struct k2_offer *offer, u64 now_ns);

#endif /* K2_DECISION_H */
