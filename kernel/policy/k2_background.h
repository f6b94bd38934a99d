/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which of the background is next: metadata of file systems, best effort, idle.
 *
 * Metadata first. A file system locks a block of metadata while it is being written, and whoever
 * has to change that block waits, a real-time fsync among others. Behind all that the flusher has
 * queued, such a block would be locked for seconds. But any process can have metadata read: after
 * K2_METADATA_STREAK_MAX in a row that went before the rest, one of the rest is next.
 *
 * Best effort by process. One that has much queued would be in front of all others, for a while.
 * So requests of one process form a flow, first in first out, and flows take turns, one request or
 * piece each. A flow is a process's while that has something queued or in flight. There are
 * K2_FLOWS; while more processes have, some share one.
 *
 * Idle last, as ionice(1) has it: it gives way while there is anything else, and for
 * K2_GIVE_WAY_NS after, for a process that makes one request after the other is between two of
 * them most of the time that one looks. Real-time is not meant: how background goes beside that is
 * not decided here. But idle does not wait without end: after K2_BEST_EFFORT_STREAK_MAX in a row
 * that went before it, one of idle is next.
 *
 * A part of k2_policy.h, which calls this; tests and the module do not. What is asked several times
 * for each request is inline.
 */
#ifndef K2_BACKGROUND_H
#define K2_BACKGROUND_H

#include "k2_types.h"

#define K2_RT_LEVELS 8
#define K2_FLOWS     16

/* Queues: 0 to 7 are real-time's levels. A flow of best effort is a queue. */
#define K2_QUEUE_METADATA    K2_RT_LEVELS
#define K2_QUEUE_BEST_EFFORT (K2_QUEUE_METADATA + 1)
#define K2_QUEUE_IDLE	     (K2_QUEUE_BEST_EFFORT + K2_FLOWS)
#define K2_QUEUES	     (K2_QUEUE_IDLE + 1)
/* Nothing may be dispatched now. */
#define K2_QUEUE_NONE K2_QUEUES

/* The same as bits. */
#define K2_QUEUE_BIT(queue) (1U << (queue))
#define K2_RT_BITS	    (K2_QUEUE_BIT(K2_RT_LEVELS) - 1)
#define K2_METADATA_BIT	    K2_QUEUE_BIT(K2_QUEUE_METADATA)
#define K2_BEST_EFFORT_BITS (K2_QUEUE_BIT(K2_QUEUE_IDLE) - K2_QUEUE_BIT(K2_QUEUE_BEST_EFFORT))
#define K2_IDLE_BIT	    K2_QUEUE_BIT(K2_QUEUE_IDLE)

/* Groups of queues, as users see them: the flows are one group. */
#define K2_GROUP_METADATA    K2_QUEUE_METADATA
#define K2_GROUP_BEST_EFFORT K2_QUEUE_BEST_EFFORT
#define K2_GROUP_IDLE	     (K2_GROUP_BEST_EFFORT + 1)
#define K2_GROUPS	     (K2_GROUP_IDLE + 1)

/* A flusher submits metadata in bursts of a few dozen blocks: it would gain little from more. */
#define K2_METADATA_STREAK_MAX 16
/* Fewer than one request in a hundred waits for one of idle: it is not seen in the p99. */
#define K2_BEST_EFFORT_STREAK_MAX 128
/* Several times what a process needs between two requests if it only copies what it has read. */
#define K2_GIVE_WAY_NS 2000000ULL

struct k2_background {
	/* Dispatches of metadata, while the rest waited, since the last of that. */
	u32 metadata_streak;
	/* Of best effort, while idle waited, since the last of idle. */
	u32 best_effort_streak;
	/* In flight, idle not included. */
	u32 busy;
	/* Whose turn was last. */
	u32 flow_last;
	/* The process that a flow belongs to. */
	u32 flow_key[K2_FLOWS];
	u32 flow_inflight[K2_FLOWS];
	u32 flows_inflight; /* one bit for each flow that has something in flight */

	/* Idle has something queued, and others have something queued or in flight. */
	bool gives_way;
	/* That is over, since then; k2_background_look() has not yet said that idle may go. */
	bool gave_way;
	u64 quiet_since_ns;
};

/*
 * In all of these, bit n of @waiting is set if queue n is not empty.
 *
 * The queue of best effort for a request of process @key: its own, or a free one.
 * k2_background_take_flow() also makes it this process's.
 */
u32 k2_background_flow(const struct k2_background *background, u32 waiting, u32 key);
u32 k2_background_take_flow(struct k2_background *background, u32 waiting, u32 key);

/* The queue to dispatch from, K2_QUEUE_NONE if there is none, or if idle gives way. */
u32 k2_background_next(const struct k2_background *background, u32 waiting);

/* Is it the turn of idle, whatever else there is? */
static inline bool k2_background_idle_is_due(const struct k2_background *background)
{
	return background->best_effort_streak >= K2_BEST_EFFORT_STREAK_MAX;
}

static inline bool k2_background_has_work(const struct k2_background *background, u32 waiting)
{
	waiting &= K2_METADATA_BIT | K2_BEST_EFFORT_BITS | K2_IDLE_BIT;
	if (waiting != K2_IDLE_BIT)
		return waiting;
	return !(background->busy || background->gave_way) || k2_background_idle_is_due(background);
}

/*
 * Has idle given way for long enough? Then it may go now, and the result is 0, as it is if others
 * came meanwhile; otherwise it is the time to look again. The caller begins to look when idle has
 * ceased to give way.
 */
u64 k2_background_look(struct k2_background *background, u64 now_ns);

/* A request of @queue was dispatched, was still in @waiting then; has ended or came back. */
void k2_background_dispatched(struct k2_background *background, u32 queue, u32 waiting);
void k2_background_ended(struct k2_background *background, u32 queue);

/* Has idle begun or ceased to give way? Then the caller notes the time. */
bool k2_background_changed(const struct k2_background *background, u32 waiting);
void k2_background_note(struct k2_background *background, u32 waiting, u64 now_ns);

#endif /* K2_BACKGROUND_H */
