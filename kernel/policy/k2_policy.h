/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * k2's decisions: which queue is served next, whether one more request may be in flight, and how
 * much of a background request is dispatched at once. The policy also counts every request, which
 * proves that none was lost.
 *
 * Model. There are first-in first-out queues: one per real-time priority level (0 is served first),
 * and those of the background (k2_background.h): file system metadata, best effort by process,
 * idle. A request is in exactly one of four states:
 *
 *	          insert             dispatch              complete
 *	(new) ------------> queued ------------> in flight ----------> (done)
 *	                     |  ^                    |
 *	               merge |  +--------------------+
 *	                     v         give back
 *	                  (done)
 *
 * "In flight" means handed to blk-mq and not yet finished. A request returns to its queue when only
 * its first piece was dispatched (K2_BACK_REST), when the driver wants it dispatched again
 * (K2_BACK_RETRY), or when memory to split it was lacking (K2_BACK_DEFERRED).
 *
 * The caller keeps the lists of requests; the policy sees counts and sizes. It neither allocates
 * nor locks: the caller serialises all calls on one policy. Only k2_policy_has_work() may also be
 * called without the lock, as a hint. The caller also reads the clock, and only where a wait begins
 * or ends: requests of one class alone need no time.
 *
 * Fairness. By default, real-time that always has something queued leaves nothing for the
 * background. With background_wait_ms_max set, background that has waited this long for real-time
 * (queued, and none of it in flight) is served next, before all real-time, with one request or
 * piece. Then its wait begins again, so real-time has the device for at least that time between two
 * such pieces, however long a piece takes. No timer is needed: a wait can only run out while
 * real-time is served, and each time real-time frees a place, k2_policy_next() is asked.
 *
 * The policy does not prefer reads to writes: only the ioprio and the process of a request count.
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

/* Upper end of split_kib: no request is larger. */
#define K2_SPLIT_KIB_LIMIT 1048576U

/* Upper end of background_wait_ms_max: half the time after which the kernel reports a hung task. */
#define K2_BACKGROUND_WAIT_MS_LIMIT 60000U

/*
 * Without splitting, background requests are merged up to this size only, or a merged request could
 * block real-time for longer than any single submission. 128 KiB is the default read-ahead window;
 * larger sizes make sequential small I/O hardly faster.
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

	/* One of the waits below is going on, or the idle class gives way. */
	bool some_wait;

	/*
	 * How long background kept real-time waiting. An episode lasts while a real-time request is
	 * queued, inflight_max is reached, and a background request is among those in flight.
	 */
	bool rt_blocked;
	u64 rt_blocked_since_ns;
	u64 rt_blocked_ns_max;
	u64 rt_blocked_count;
	u64 rt_blocked_ns_sum; /* including waits that the bound does not cover */
	/* Waits above this are counted, with splitting off. 0: none are. */
	u64 rt_blocked_ns_bound;
	u64 rt_blocked_over_count;
	/*
	 * The caller sets this while a request in flight was not checked against the bound. Waits
	 * that begin then have counters of their own.
	 */
	bool is_unguarded;
	bool rt_blocked_unguarded;
	u64 rt_unguarded_ns_max;
	u64 rt_unguarded_count;

	/* The caller sets this while a real-time lane (k2_lane.h) wants or has the device. */
	bool lane_is_rt;

	/*
	 * How long background waits: from when some is queued, none is in flight and real-time is
	 * active, until some is dispatched. A short pause of real-time does not end a wait. The
	 * longest wait is recorded even without a limit.
	 */
	bool background_waits;
	u64 background_waits_since_ns;
	u64 background_wait_ns_longest;
	/* Times that background was dispatched although real-time was queued. */
	u64 background_forced_count;
};

/*
 * The queue for a request with this ioprio (class << 13 | level, as in linux/ioprio.h); for best
 * effort, the first of its queues. @is_metadata: the file system has set REQ_META.
 */
static __always_inline u32 k2_policy_queue(u16 ioprio, bool is_metadata)
{
	u16 ioclass = ioprio >> K2_IOPRIO_CLASS_SHIFT;

	if (ioclass == K2_IOPRIO_CLASS_RT)
		return ioprio & K2_IOPRIO_LEVEL_MASK;
	/* Any process may read metadata, and others may wait for it. */
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
 * The best-effort queue for a request of process @key. k2_policy_take_flow() also assigns the queue
 * to the process; the caller then inserts the request.
 */
u32 k2_policy_flow(const struct k2_policy *policy, u32 key);

static inline u32 k2_policy_take_flow(struct k2_policy *policy, u32 key)
{
	return k2_background_take_flow(&policy->background, policy->queues_waiting, key);
}

/*
 * The default inflight_max of a device. @tags: the number of tags of its driver. @is_mmc: the disk
 * is an MMC block device.
 */
u32 k2_policy_inflight_default(u32 tags, bool is_mmc);

/*
 * How many of @tags scheduler tags requests of @group may take. Idle leaves some to all other
 * groups, best effort leaves some to real-time and metadata, and metadata leaves some to
 * real-time.
 */
u32 k2_policy_tags(u32 tags, u32 group);

void k2_policy_init(struct k2_policy *policy, u32 inflight_max);

/* Set a knob. False: the value is out of range (or no multiple of @block_bytes) and not set. */
bool k2_policy_set_inflight_max(struct k2_policy *policy, u32 inflight_max);
bool k2_policy_set_split_kib(struct k2_policy *policy, u32 split_kib, u32 block_bytes);
bool k2_policy_set_background_wait_ms_max(struct k2_policy *policy, u32 wait_ms);

/* The number of requests in flight. */
static inline u32 k2_policy_inflight(const struct k2_policy *policy)
{
	return policy->inflight[K2_CLASS_RT] + policy->inflight[K2_CLASS_BACKGROUND];
}

static inline bool k2_policy_has_room(const struct k2_policy *policy)
{
	return k2_policy_inflight(policy) < policy->inflight_max;
}

static inline bool k2_policy_rt_queued(const struct k2_policy *policy)
{
	return policy->queues_waiting & K2_RT_BITS;
}

/*
 * k2_policy_next() returns the queue to dispatch from now, or K2_QUEUE_NONE. @now_ns: monotonic; it
 * may be anything if k2_policy_next_needs_time() is false.
 */
static inline bool k2_policy_next_needs_time(const struct k2_policy *policy)
{
	return policy->background_wait_ms_max && policy->background_waits &&
	       (k2_policy_rt_queued(policy) || policy->lane_is_rt) && k2_policy_has_room(policy);
}

/* Has background waited for background_wait_ms_max? Then it is served before all real-time. */
bool k2_policy_background_is_due(const struct k2_policy *policy, u64 now_ns);
u32 k2_policy_next(const struct k2_policy *policy, u64 now_ns);

/*
 * Is a lane's command served before the request at the head of @queue? @level: K2_RT_LEVELS is the
 * background, which alternates with metadata and best effort: a caller that never pauses would
 * starve a file system on the same card. The two times are when each began to wait.
 */
static inline bool k2_policy_lane_is_before(u32 level, u64 lane_since_ns, u32 queue,
					    u64 head_since_ns)
{
	/* Metadata, then the processes of best effort, then the idle class. */
	bool is_turn = level == K2_RT_LEVELS && queue >= K2_RT_LEVELS && queue < K2_QUEUE_IDLE;

	return level == queue || is_turn ? lane_since_ns < head_since_ns : level < queue;
}

/* Would k2_policy_next() return a queue? Only which one depends on the time. */
static __always_inline bool k2_policy_has_work(const struct k2_policy *policy)
{
	/* The common case: nothing is queued. */
	if (!policy->queues_waiting || k2_policy_inflight(policy) >= policy->inflight_max)
		return false;
	return policy->queues_waiting & K2_RT_BITS ||
	       k2_background_has_work(&policy->background, policy->queues_waiting);
}

/*
 * How many of the @bytes of a request at the head of @queue to dispatch at once, in whole blocks of
 * @block_bytes. The request is not split if the result is @bytes.
 */
u32 k2_policy_piece_bytes(const struct k2_policy *policy, u32 queue, u32 bytes, u32 block_bytes);

/* May two requests of @queue be merged into one of @bytes? Requests never merge across queues. */
bool k2_policy_may_merge(const struct k2_policy *policy, u32 queue, u64 bytes);

/*
 * The transitions of the diagram above, in the order in which a request makes them. After one or
 * more of them, and before it releases its lock, the caller asks k2_policy_waits_changed(). If that
 * is true, it calls k2_policy_note_waits() with the time.
 */
static inline void k2_policy_enqueue(struct k2_policy *policy, u32 queue)
{
	policy->queued[queue]++;
	policy->queues_waiting |= K2_QUEUE_BIT(queue);
}

static inline void k2_policy_dequeue(struct k2_policy *policy, u32 queue)
{
	policy->queued[queue]--;
	if (policy->queued[queue] == 0)
		policy->queues_waiting &= ~K2_QUEUE_BIT(queue);
}

static inline void k2_policy_leave_device(struct k2_policy *policy, u32 queue)
{
	enum k2_class cls = k2_policy_class(queue);

	policy->inflight[cls]--;
	if (cls == K2_CLASS_BACKGROUND)
		k2_background_ended(&policy->background, queue);
}

static inline void k2_policy_insert(struct k2_policy *policy, u32 queue)
{
	k2_policy_enqueue(policy, queue);
	policy->counts[k2_policy_class(queue)].inserted++;
}

void k2_policy_merge(struct k2_policy *policy, u32 queue);

static inline void k2_policy_dispatch(struct k2_policy *policy, u32 queue)
{
	enum k2_class cls = k2_policy_class(queue);

	if (cls == K2_CLASS_BACKGROUND && k2_policy_rt_queued(policy))
		policy->background_forced_count++;
	if (cls == K2_CLASS_BACKGROUND)
		k2_background_dispatched(&policy->background, queue, policy->queues_waiting);
	k2_policy_dequeue(policy, queue);
	policy->inflight[cls]++;
	policy->counts[cls].dispatched++;
}

void k2_policy_give_back(struct k2_policy *policy, u32 queue, enum k2_back why);

static inline void k2_policy_complete(struct k2_policy *policy, u32 queue)
{
	enum k2_class cls = k2_policy_class(queue);

	k2_policy_leave_device(policy, queue);
	policy->counts[cls].completed++;
}

/* Has a wait begun or ended: real-time for background, background for it, or idle for the rest? */
bool k2_policy_some_wait_changed(const struct k2_policy *policy);

static __always_inline bool k2_policy_waits_changed(const struct k2_policy *policy)
{
	u32 waiting = policy->queues_waiting;
	bool rt = waiting & K2_RT_BITS || policy->inflight[K2_CLASS_RT] || policy->lane_is_rt;
	bool others = waiting & ~K2_RT_BITS || policy->inflight[K2_CLASS_BACKGROUND];
	bool wait_can_begin = (rt && others) || waiting & K2_IDLE_BIT;

	return (policy->some_wait || wait_can_begin) && k2_policy_some_wait_changed(policy);
}

void k2_policy_note_waits(struct k2_policy *policy, u64 now_ns);

/*
 * Returns when to check again whether idle has given way for long enough, or 0 if no check is
 * needed. The caller asks after k2_policy_note_waits(), then at each time returned until that is 0,
 * and then asks for the next queue.
 */
u64 k2_policy_look(struct k2_policy *policy, u64 now_ns);

/* The longest time that background has waited, including the current wait. */
u64 k2_policy_background_wait_ns(const struct k2_policy *policy, u64 now_ns);

/* Is every inserted request accounted for? This holds after each transition. */
bool k2_policy_balanced(const struct k2_policy *policy);
/* Is no request queued or in flight? */
bool k2_policy_idle(const struct k2_policy *policy);

#endif /* K2_POLICY_H */
