/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The order of background requests: file system metadata, then best effort, then idle.
 *
 * Metadata first. A file system locks a block of metadata while it is written, and any process that
 * has to change the block waits, even a real-time fsync. Behind everything that the flusher has
 * queued, the block would stay locked for seconds. But any process can cause reads of metadata:
 * after K2_METADATA_STREAK_MAX requests in a row that went before others, another is next.
 *
 * Best effort by process. A process with many queued requests would delay all others for a while.
 * Therefore the requests of one process form a flow, first in first out, and flows take turns, one
 * request or piece each. A flow belongs to a process while the process has a request queued or in
 * flight. There are K2_FLOWS; if more processes are active, some share a flow.
 *
 * Idle last, as ionice(1) documents it. Idle gives way to other background while that has requests,
 * and for K2_GIVE_WAY_NS after: a process that issues requests one at a time mostly has none
 * queued. Real-time does not count here: this file does not order background against it. Idle does
 * not starve: after K2_BEST_EFFORT_STREAK_MAX best-effort requests in a row that went before it,
 * one of idle is next.
 *
 * Only the policy calls this; tests and the module do not. Functions that it calls for each request
 * are inline.
 */
#ifndef K2_BACKGROUND_H
#define K2_BACKGROUND_H

#include "k2_types.h"

#define K2_RT_LEVELS 8
#define K2_FLOWS     16

/* Queues 0 to 7 are the real-time levels. Each flow of best effort has a queue. */
#define K2_QUEUE_METADATA    K2_RT_LEVELS
#define K2_QUEUE_BEST_EFFORT (K2_QUEUE_METADATA + 1)
#define K2_QUEUE_IDLE	     (K2_QUEUE_BEST_EFFORT + K2_FLOWS)
#define K2_QUEUES	     (K2_QUEUE_IDLE + 1)
/* No request may be dispatched now. */
#define K2_QUEUE_NONE K2_QUEUES

/* The queues as bits. */
#define K2_QUEUE_BIT(queue) (1U << (queue))
#define K2_RT_BITS	    (K2_QUEUE_BIT(K2_RT_LEVELS) - 1)
#define K2_METADATA_BIT	    K2_QUEUE_BIT(K2_QUEUE_METADATA)
#define K2_BEST_EFFORT_BITS (K2_QUEUE_BIT(K2_QUEUE_IDLE) - K2_QUEUE_BIT(K2_QUEUE_BEST_EFFORT))
#define K2_IDLE_BIT	    K2_QUEUE_BIT(K2_QUEUE_IDLE)

#define K2_FLOW_BIT(flow) (1U << (flow))
#define K2_ALL_FLOWS	  (K2_FLOW_BIT(K2_FLOWS) - 1)

/* Groups of queues, as users see them: all flows are one group. */
#define K2_GROUP_METADATA    K2_QUEUE_METADATA
#define K2_GROUP_BEST_EFFORT K2_QUEUE_BEST_EFFORT
#define K2_GROUP_IDLE	     (K2_GROUP_BEST_EFFORT + 1)
#define K2_GROUPS	     (K2_GROUP_IDLE + 1)

/* A flusher submits metadata in bursts of a few dozen blocks: longer streaks would gain little. */
#define K2_METADATA_STREAK_MAX 16
/* Fewer than one request in a hundred waits for one of idle, so the p99 does not show it. */
#define K2_BEST_EFFORT_STREAK_MAX 128
/* Several times the pause between two requests of a process that only copies what it has read. */
#define K2_GIVE_WAY_NS 2000000ULL

struct k2_background {
	/* Metadata requests dispatched while other background waited, since the last of that. */
	u32 metadata_streak;
	/* Best-effort requests dispatched while idle was queued, since the last of idle. */
	u32 best_effort_streak;
	/* Background requests in flight, without those of idle. */
	u32 busy;
	/* The flow that was served last. */
	u32 flow_last;
	/* The process that each flow belongs to. */
	u32 flow_key[K2_FLOWS];
	u32 flow_inflight[K2_FLOWS];
	u32 flows_inflight; /* one bit for each flow that has something in flight */

	/* Idle has a request queued, and other background has one queued or in flight. */
	bool gives_way;
	/* Other background ended at quiet_since_ns; k2_background_look() still holds idle. */
	bool gave_way;
	u64 quiet_since_ns;
};

/* The flows that have a request queued, one bit each. */
static inline u32 k2_flows_of(u32 waiting)
{
	return (waiting & K2_BEST_EFFORT_BITS) >> K2_QUEUE_BEST_EFFORT;
}

/*
 * In all of these, bit n of @waiting is set if queue n is not empty.
 *
 * k2_background_flow() returns the best-effort queue for a request of process @key: its own or a
 * free one. k2_background_take_flow() also assigns the queue to the process.
 */
u32 k2_background_flow(const struct k2_background *background, u32 waiting, u32 key);
u32 k2_background_take_flow(struct k2_background *background, u32 waiting, u32 key);

/* Is idle next, even if other background is queued? */
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

/* At least one flow has a request queued. */
static inline u32 k2_flow_next(const struct k2_background *background, u32 waiting)
{
	u32 flows = k2_flows_of(waiting);
	u32 after = flows & ~((2U << background->flow_last) - 1);

	return K2_QUEUE_BEST_EFFORT + (u32)__builtin_ctz(after ? after : flows);
}

/* The queue to dispatch from; K2_QUEUE_NONE if all are empty or idle gives way. */
static inline u32 k2_background_next(const struct k2_background *background, u32 waiting)
{
	bool rest = waiting & (K2_BEST_EFFORT_BITS | K2_IDLE_BIT);

	if (!k2_background_has_work(background, waiting))
		return K2_QUEUE_NONE;
	if (waiting & K2_METADATA_BIT &&
	    !(rest && background->metadata_streak >= K2_METADATA_STREAK_MAX))
		return K2_QUEUE_METADATA;
	if (waiting & K2_BEST_EFFORT_BITS &&
	    !(waiting & K2_IDLE_BIT && k2_background_idle_is_due(background)))
		return k2_flow_next(background, waiting);
	return K2_QUEUE_IDLE;
}

/*
 * Has idle given way for long enough? Then idle may be dispatched now, and the result is 0. It is
 * also 0 if other background has come meanwhile. Otherwise it is the time to check again. The
 * caller begins to check when idle no longer gives way.
 */
u64 k2_background_look(struct k2_background *background, u64 now_ns);

static inline void k2_flow_dispatched(struct k2_background *background, u32 flow)
{
	background->flow_last = flow;
	background->flow_inflight[flow]++;
	background->flows_inflight |= K2_FLOW_BIT(flow);
}

static inline void k2_flow_ended(struct k2_background *background, u32 flow)
{
	background->flow_inflight[flow]--;
	if (background->flow_inflight[flow] == 0)
		background->flows_inflight &= ~K2_FLOW_BIT(flow);
}

/* A request of @queue, which @waiting still includes, was dispatched. */
static inline void k2_background_dispatched(struct k2_background *background, u32 queue,
					    u32 waiting)
{
	if (queue == K2_QUEUE_IDLE) {
		background->metadata_streak = 0;
		background->best_effort_streak = 0;
		background->gave_way = false;
		return;
	}
	background->busy++;
	if (queue == K2_QUEUE_METADATA) {
		if (waiting & (K2_BEST_EFFORT_BITS | K2_IDLE_BIT))
			background->metadata_streak++;
		return;
	}
	background->metadata_streak = 0;
	if (waiting & K2_IDLE_BIT)
		background->best_effort_streak++;
	k2_flow_dispatched(background, queue - K2_QUEUE_BEST_EFFORT);
}

/* A request of @queue has ended or came back. */
static inline void k2_background_ended(struct k2_background *background, u32 queue)
{
	if (queue == K2_QUEUE_IDLE)
		return;
	background->busy--;
	if (queue != K2_QUEUE_METADATA)
		k2_flow_ended(background, queue - K2_QUEUE_BEST_EFFORT);
}

/* Has idle begun or stopped giving way? Then the caller calls k2_background_note(). */
bool k2_background_changed(const struct k2_background *background, u32 waiting);
void k2_background_note(struct k2_background *background, u32 waiting, u64 now_ns);

#endif /* K2_BACKGROUND_H */
