/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The policy as the scheduler calls it: each transition is noted, and the clock is read only when
 * the policy needs the time. The file that includes this defines clock_ns().
 */
#ifndef CLOCKED_H
#define CLOCKED_H

#include "expect.h"
#include "k2_policy.h"

static u64 clock_ns(void);

static inline u32 next_queue(const struct k2_policy *policy)
{
	return k2_policy_next(policy, k2_policy_next_needs_time(policy) ? clock_ns() : 0);
}

/* What the scheduler's timer does, when it is time. */
static inline void look(struct k2_policy *policy)
{
	k2_policy_look(policy, clock_ns());
}

static inline void note_waits(struct k2_policy *policy)
{
	if (k2_policy_waits_changed(policy))
		k2_policy_note_waits(policy, clock_ns());
}

static inline void insert(struct k2_policy *policy, u32 queue)
{
	k2_policy_insert(policy, queue);
	note_waits(policy);
}

static inline void merge(struct k2_policy *policy, u32 queue)
{
	k2_policy_merge(policy, queue);
	note_waits(policy);
}

static inline void dispatch(struct k2_policy *policy, u32 queue)
{
	k2_policy_dispatch(policy, queue);
	note_waits(policy);
}

/* Dispatches from the queue that the policy chooses, and returns that queue. */
static inline u32 dispatch_next(struct k2_policy *policy)
{
	u32 queue = next_queue(policy);

	EXPECT(k2_policy_has_work(policy), queue != K2_QUEUE_NONE);
	if (queue != K2_QUEUE_NONE)
		dispatch(policy, queue);
	return queue;
}

static inline void give_back(struct k2_policy *policy, u32 queue, enum k2_back why)
{
	k2_policy_give_back(policy, queue, why);
	note_waits(policy);
}

static inline void complete(struct k2_policy *policy, u32 queue)
{
	k2_policy_complete(policy, queue);
	note_waits(policy);
}

#endif /* CLOCKED_H */
