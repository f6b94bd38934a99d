/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * k2's decisions: which queue is served next, whether one more request may be in flight, how
 * much of a background request is dispatched at once, and the books that prove that no request
 * was lost.
 *
 * Model. First-in first-out queues: one per real-time priority level (0 is served first), and those
 * of everything else, the background (k2_background.h): metadata of file systems, best effort by
 * process, idle. A request is in exactly one of four states:
 *
 *	          insert             dispatch              complete
 *	(new) ------------> queued ------------> in flight ----------> (done)
 *	                     |  ^                    |
 *	               merge |  +--------------------+
 *	                     v         give back
 *	                  (done)
 *
 * "In flight" means handed to blk-mq and not yet finished. A request is given back when only its
 * first piece was dispatched (K2_BACK_REST), when the driver wants it dispatched again
 * (K2_BACK_RETRY), or when it could not be cut for want of memory (K2_BACK_DEFERRED).
 *
 * The lists of requests belong to the caller; the policy sees counts and sizes. No allocation, no
 * lock: the caller serialises all calls on one policy, except k2_policy_has_work(), which may also
 * be called without the lock as a hint. The caller reads the clock, too, and only when the policy
 * needs the time, where a wait begins or ends: a stream of one class alone reads no clock.
 *
 * Fairness. Real-time that always has something queued leaves nothing for the background, by
 * default. With background_wait_ms_max set, background that has waited so long for real-time
 * (queued, and none of it in flight) is served next, before all real-time, with one request or
 * piece; then its wait begins again. So real-time has the device for at least that time between two
 * such pieces, however long a piece takes. No timer is needed: a wait can only run out while
 * real-time is served, and each time real-time frees a place, k2_policy_next() is asked.
 *
 * Not decided here: writes against reads (ioprio and process alone decide).
 */
#ifndef K2_POLICY_H
#define K2_POLICY_H

#include "k2_background.h"

/* Range of inflight_max. The upper end only has to be above any hardware queue. */
#define K2_INFLIGHT_MIN	  1
#define K2_INFLIGHT_LIMIT 1024
/* inflight_max of devices with a queue of their own: deep enough to keep flash channels busy. */
#define K2_INFLIGHT_QUEUED 32
/* An eMMC command queue has at most this many slots (JESD84-B51, CMDQ_DEPTH). */
#define K2_MMC_SLOTS_MAX 32

/* Upper end of split_kib: what a request can hold at most, so more would mean nothing. */
#define K2_SPLIT_KIB_LIMIT 1048576U

/* Upper end of background_wait_ms_max: half of what the kernel takes for a hung task. */
#define K2_BACKGROUND_WAIT_MS_LIMIT 60000U

/*
 * Without splitting, background requests are merged up to this size only: a merged request would
 * otherwise be a longer wait for real-time than any single submission. 128 KiB is the default
 * read-ahead window, and what sequential small I/O gains from merging it has gained by then.
 */
#define K2_MERGE_BYTES_MAX (128U << 10)

/* linux/ioprio.h, stable since 2.6.13: class in the top three bits, level in the low three. */
#define K2_IOPRIO_CLASS_SHIFT 13
#define K2_IOPRIO_CLASS_RT    1
#define K2_IOPRIO_CLASS_IDLE  3
#define K2_IOPRIO_LEVEL_MASK  7

enum k2_class {
	K2_CLASS_RT,
	K2_CLASS_BACKGROUND,
	K2_CLASSES
};

enum k2_back {
	K2_BACK_REST,
	K2_BACK_RETRY,
	K2_BACK_DEFERRED,
	K2_BACKS
};

/* Totals since the policy was set up, per class. */
struct k2_counts {
	u64 inserted;
	u64 merged;
	u64 dispatched;
	u64 back[K2_BACKS];
	u64 completed;
};

struct k2_policy {
	u32 inflight_max; /* requests */
	u32 split_bytes; /* 0: off */
	u32 background_wait_ms_max; /* 0: off */

	struct k2_background background;
	u32 queued[K2_QUEUES];
	u32 queues_waiting; /* one bit for each queue that is not empty */
	u32 inflight[K2_CLASSES];
	struct k2_counts counts[K2_CLASSES];

	/* Any of the waits below, or that of idle. */
	bool some_wait;

	/*
	 * How long background kept real-time waiting: an episode lasts while a real-time request
	 * is queued, no more may be in flight, and a background request is among those in flight.
	 */
	bool rt_blocked;
	u64 rt_blocked_since_ns;
	u64 rt_blocked_ns_max;
	u64 rt_blocked_count;
	u64 rt_blocked_ns_sum; /* also of what the bound does not cover */
	/* With splitting off the bound, above which waits are counted. 0: none. */
	u64 rt_blocked_ns_bound;
	u64 rt_blocked_over_count;
	/*
	 * Told by the caller: something in flight was not measured against the bound. Waits that
	 * begin then are counted apart.
	 */
	bool is_unguarded;
	bool rt_blocked_unguarded;
	u64 rt_unguarded_ns_max;
	u64 rt_unguarded_count;

	/* Set by the caller: a real-time lane wants the device, or has it. */
	bool lane_is_rt;

	/*
	 * How long background waits: from when some is queued, none in flight, and real-time is
	 * there, until it is dispatched. Real-time that leaves for a moment does not end a wait.
	 * The longest is measured also when nothing bounds it.
	 */
	bool background_waits;
	u64 background_waits_since_ns;
	u64 background_wait_ns_longest;
	/* Dispatches of background although real-time was queued. */
	u64 background_forced_count;
};

/*
 * Which queue a request with this ioprio (class << 13 | level, as in linux/ioprio.h) joins; of
 * best effort the first. @is_metadata: the file system says so (REQ_META).
 */
static inline u32 k2_policy_queue(u16 ioprio, bool is_metadata)
{
	u16 ioclass = ioprio >> K2_IOPRIO_CLASS_SHIFT;

	if (ioclass == K2_IOPRIO_CLASS_RT)
		return ioprio & K2_IOPRIO_LEVEL_MASK;
	/* Whoever reads it, others may wait for it. */
	if (is_metadata)
		return K2_QUEUE_METADATA;
	return ioclass == K2_IOPRIO_CLASS_IDLE ? K2_QUEUE_IDLE : K2_QUEUE_BEST_EFFORT;
}

static inline enum k2_class k2_policy_class(u32 queue)
{
	return queue < K2_RT_LEVELS ? K2_CLASS_RT : K2_CLASS_BACKGROUND;
}

static inline u32 k2_policy_group(u32 queue)
{
	if (queue < K2_QUEUE_BEST_EFFORT)
		return queue;
	return queue < K2_QUEUE_IDLE ? K2_GROUP_BEST_EFFORT : K2_GROUP_IDLE;
}

/*
 * Of the queues of best effort the one for a request of process @key. The second is for a request
 * that is inserted next, and makes the queue this process's.
 */
u32 k2_policy_flow(const struct k2_policy *policy, u32 key);
u32 k2_policy_take_flow(struct k2_policy *policy, u32 key);

/*
 * inflight_max of a device nobody has configured. @tags: the driver's tags. @is_mmc: the disk is
 * an MMC block device.
 */
u32 k2_policy_inflight_default(u32 tags, bool is_mmc);

/*
 * How many of each @tags scheduler tags requests of @group may take. What idle must leave is for
 * all others, what best effort must leave is for real-time and metadata, what metadata must leave
 * is for real-time.
 */
u32 k2_policy_tags(u32 tags, u32 group);

void k2_policy_init(struct k2_policy *policy, u32 inflight_max);

/* Knobs. False: out of range (or not a multiple of @block_bytes), and nothing was changed. */
bool k2_policy_set_inflight_max(struct k2_policy *policy, u32 inflight_max);
bool k2_policy_set_split_kib(struct k2_policy *policy, u32 split_kib, u32 block_bytes);
bool k2_policy_set_background_wait_ms_max(struct k2_policy *policy, u32 wait_ms);

/* How many are in flight. */
static inline u32 k2_policy_inflight(const struct k2_policy *policy)
{
	return policy->inflight[K2_CLASS_RT] + policy->inflight[K2_CLASS_BACKGROUND];
}

/*
 * The queue to dispatch from now, or K2_QUEUE_NONE. @now_ns: monotonic; anything if
 * k2_policy_next_needs_time() is false.
 */
bool k2_policy_next_needs_time(const struct k2_policy *policy);
/* Has background waited for background_wait_ms_max? It goes before all real-time then. */
bool k2_policy_background_is_due(const struct k2_policy *policy, u64 now_ns);
u32 k2_policy_next(const struct k2_policy *policy, u64 now_ns);

/*
 * Does a command of a lane go before the request at the head of @queue? @level: K2_RT_LEVELS is the
 * background, which goes in turn with metadata and best effort: a caller that never pauses would
 * stop a file system on the same card. The times are those since which they wait.
 */
static inline bool k2_policy_lane_is_before(u32 level, u64 lane_since_ns, u32 queue,
					    u64 head_since_ns)
{
	/* Metadata, then the processes of best effort, then the idle class. */
	bool is_turn = level == K2_RT_LEVELS && queue >= K2_RT_LEVELS && queue < K2_QUEUE_IDLE;

	return level == queue || is_turn ? lane_since_ns < head_since_ns : level < queue;
}

/* Would k2_policy_next() name a queue? That does not depend on the time; which one may. */
static inline bool k2_policy_has_work(const struct k2_policy *policy)
{
	/* Most often nothing waits. */
	if (!policy->queues_waiting || k2_policy_inflight(policy) >= policy->inflight_max)
		return false;
	return policy->queues_waiting & K2_RT_BITS ||
	       k2_background_has_work(&policy->background, policy->queues_waiting);
}

/*
 * How much of a request of @bytes at the head of @queue to dispatch at once, in whole blocks of
 * @block_bytes. @bytes itself: do not cut.
 */
u32 k2_policy_piece_bytes(const struct k2_policy *policy, u32 queue, u32 bytes, u32 block_bytes);

/* May two requests of @queue become one of @bytes? Those of different queues never may. */
bool k2_policy_may_merge(const struct k2_policy *policy, u32 queue, u64 bytes);

/*
 * The transitions of the picture above, in the order a request goes through them. After one or
 * several of them, and before it releases its lock, the caller asks k2_policy_waits_changed(), and
 * if so, calls k2_policy_note_waits() with the time.
 */
void k2_policy_insert(struct k2_policy *policy, u32 queue);
void k2_policy_merge(struct k2_policy *policy, u32 queue);
void k2_policy_dispatch(struct k2_policy *policy, u32 queue);
void k2_policy_give_back(struct k2_policy *policy, u32 queue, enum k2_back why);
void k2_policy_complete(struct k2_policy *policy, u32 queue);

/* Has a wait begun or ended: of real-time, of background for that, of idle for other background? */
bool k2_policy_some_wait_changed(const struct k2_policy *policy);

static inline bool k2_policy_waits_changed(const struct k2_policy *policy)
{
	u32 waiting = policy->queues_waiting;
	bool rt = waiting & K2_RT_BITS || policy->inflight[K2_CLASS_RT] || policy->lane_is_rt;
	bool others = waiting & ~K2_RT_BITS || policy->inflight[K2_CLASS_BACKGROUND];
	bool wait_can_begin = (rt && others) || waiting & K2_IDLE_BIT;

	return (policy->some_wait || wait_can_begin) && k2_policy_some_wait_changed(policy);
}

void k2_policy_note_waits(struct k2_policy *policy, u64 now_ns);

/*
 * When to look again whether idle has given way for long enough; 0: no need to. The caller asks
 * after k2_policy_note_waits() and then at each time returned, until that is 0, and asks for the
 * next queue after that.
 */
u64 k2_policy_look(struct k2_policy *policy, u64 now_ns);

/* The longest time background has waited, the current wait included. */
u64 k2_policy_background_wait_ns(const struct k2_policy *policy, u64 now_ns);

/* Does every request ever inserted account for itself? Holds after each transition. */
bool k2_policy_balanced(const struct k2_policy *policy);
/* Is no request queued or in flight? */
bool k2_policy_idle(const struct k2_policy *policy);

#endif /* K2_POLICY_H */
