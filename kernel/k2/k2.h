/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the parts of the k2 module: the state of a device and of a request. */
#ifndef K2_H
#define K2_H

#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/spinlock.h>

/* Private headers of the block layer, from the source of the kernel built against. */
#include "elevator.h"
#include "blk.h"
#include "blk-mq.h"
#include "blk-mq-debugfs.h"
#include "blk-mq-sched.h"

#include "../compat/insert_flags.h"
#include "../compat/request_atomic.h"
#include "../compat/request_private.h"

#include "k2_decision.h"
#include "k2_lane.h"
#include "k2_latency.h"
#include "k2_lookahead.h"
#include "k2_policy.h"
#include "k2_tasks.h"

/* The state of look-ahead, see k2_guard.c. */
struct k2_guard {
	struct k2_lookahead ahead;
	/* Of declared tasks, once there has been one. */
	struct k2_declared_memory *memory;
	/* Background is held until a command ends or returns to its queue, */
	bool is_held;
	/* or until this time; 0: only a command's end releases it. */
	u64 held_until_ns;
	/* When exited processes and threads were last looked for. */
	u64 looked_ns;
	/* Background requests in flight that were not split for real-time. */
	unsigned int unguarded_inflight;
	/* Declared tasks, by their number in the policy. */
	struct k2_task *task[K2_DECLARED_MAX];
	/* The fault count of the policy when the tasks' owners were last woken. */
	u64 faults;
};

/* Waits of a real-time level for lane commands of lower levels (k2_lane.h). */
struct k2_lane_blocked {
	u64 count;
	u64 ns_max;
	u64 ns_sum;
};

/* The state of k2_lanes.c. */
struct k2_lanes {
	struct list_head list;
	struct k2_lane *on_card;
	bool is_counted; /* declared tasks know of its command */
	/* A queued request could be dispatched, but waits for a lane. */
	bool is_holding;
	u64 blocked_since_ns[K2_RT_LEVELS]; /* 0: not blocked */
	struct k2_lane_blocked blocked[K2_RT_LEVELS];
};

/* No deadline. */
#define K2_DEADLINE_NONE S64_MAX

/* Latencies of the requests of a group of queues that have ended, see k2_stats.c. */
struct k2_latencies {
	atomic64_t late;
	atomic64_t ns_sum;
	atomic64_t ns_max;
	atomic64_t bucket[K2_LATENCY_BUCKETS];
};

/*
 * The state of a device. Its queues belong to the device and not to a hardware queue: inflight_max
 * limits the requests in flight of all hardware queues together.
 */
struct k2_data {
	struct request_queue *q;

	/*
	 * Protects the members below except @clones, @timer, @latencies, @deadline_ns and those
	 * that k2_tasks.c locks. It is taken at submission, at dispatch, and at completion and in
	 * the timer, which may run in hard interrupt context. q->requeue_lock and hctx->lock are
	 * never taken under it. Only one allocation happens under it, and that is atomic.
	 */
	spinlock_t lock;
	struct k2_policy policy;
	struct k2_guard *guard;
	struct k2_lanes lanes;
	/* k2 did not dispatch a queued request when blk-mq asked for one. */
	bool has_refused;
	struct list_head queues[K2_QUEUES];
	/* Mergeable background requests by start sector: reads and writes. */
	struct rb_root sorted[2];

	/* The timer of k2_timer.c, and when it fires; 0: it is not set. */
	struct hrtimer timer;
	u64 timer_ns;

	/* Clones for the front of a bio that is split. */
	struct bio_set clones;

	/* By group of queues. A request that takes longer than the deadline is counted as late. */
	struct k2_latencies *latencies;
	s64 deadline_ns[K2_GROUPS];

	/* Used by k2_tasks.c. */
	struct list_head in_all_devices;
	dev_t devt;

	/* How many of the tags each group of queues may use, see compat/shallow_depth.h. */
	unsigned int tags[K2_GROUPS];
};

/* Counted in the policy until finish_request. */
#define K2_RQ_COUNTED BIT(0)
/* Dispatched to blk-mq. Stays set while a driver holds the request for a retry. */
#define K2_RQ_INFLIGHT BIT(1)
/* In the merge hash and in k2_data.sorted. */
#define K2_RQ_SORTED BIT(2)
/* rq->bio has only the front, rq->end_io_data has the rest, see k2_split.c. */
#define K2_RQ_PIECE BIT(3)
/* A piece has ended, and the request was requeued for the next piece. */
#define K2_RQ_REST BIT(4)
/* k2 has cleared RQF_IO_STAT, so that a piece does not count as an I/O. */
#define K2_RQ_MUTED BIT(5)

/* Counted in k2_guard.unguarded_inflight. */
#define K2_RQ_UNGUARDED BIT(6)
/* Belongs to the declared task whose number is in k2_rq.stream. */
#define K2_RQ_DECLARED BIT(7)

/* The state of a request, in rq->elv.priv[0]. For rq->elv.priv[1], see k2_split.c. */
struct k2_rq {
	u8 queue;
	u8 flags;
	u8 stream; /* of a real-time request, or K2_STREAM_NONE; see K2_RQ_DECLARED */
	u8 flight; /* K2_FLIGHT_NONE: its time is not measured */
};

static_assert(sizeof(struct k2_rq) <= sizeof(void *));
static_assert(K2_QUEUES <= U8_MAX);

static const struct k2_rq k2_rq_new = {.stream = K2_STREAM_NONE, .flight = K2_FLIGHT_NONE};

static inline struct k2_rq *k2_rq(struct request *rq)
{
	return (struct k2_rq *)&rq->elv.priv[0];
}

static inline const char *k2_queue_name(unsigned int queue)
{
	static const char *const names[K2_GROUPS] = {
		"rt0", "rt1", "rt2",	  "rt3",	 "rt4",	 "rt5",
		"rt6", "rt7", "metadata", "best-effort", "idle",
	};

	return names[k2_policy_group(queue)];
}

/* k2_main.c */
extern struct elevator_type k2_elevator;
void k2_waits_changed(struct k2_data *k2);

/* Called after transitions of the policy, with the lock. Most begin or end no wait. */
static __always_inline void k2_note_waits(struct k2_data *k2)
{
	lockdep_assert_held(&k2->lock);
	if (k2_policy_waits_changed(&k2->policy))
		k2_waits_changed(k2);
}

/* k2_merge.c */
void k2_sort(struct k2_data *k2, struct request *rq);
void k2_remove(struct k2_data *k2, struct request *rq);
bool k2_bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs);
bool k2_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio);
int k2_request_merge(struct request_queue *q, struct request **found, struct bio *bio);
void k2_request_merged(struct request_queue *q, struct request *rq, enum elv_merge type);
void k2_requests_merged(struct request_queue *q, struct request *rq, struct request *next);
struct request *k2_former_request(struct request_queue *q, struct request *rq);
struct request *k2_next_request(struct request_queue *q, struct request *rq);

/* k2_setup.c */
void *k2_alloc(struct request_queue *q);
void k2_free(void *data);
void k2_begin(struct k2_data *k2);
void k2_end(struct k2_data *k2);

/* k2_guard.c */

static __always_inline bool k2_is_looking_ahead(const struct k2_data *k2)
{
	return k2_looks_ahead(&k2->guard->ahead, &k2->policy);
}

/* Do real-time requests need tracking: by streams, or by jobs of a task? */
static __always_inline bool k2_knows_real_time(const struct k2_data *k2)
{
	return k2_is_looking_ahead(k2) || k2->guard->ahead.declared.used;
}

struct k2_guard *k2_guard_init(struct request_queue *q);
bool k2_guard_set_rt_block_us(struct k2_data *k2, u32 rt_block_us);
bool k2_guard_set_limits(struct k2_data *k2, const struct k2_limit *limit);
void k2_guard_exit(struct k2_guard *guard);
void k2_guard_arrival(struct k2_data *k2, struct request *rq);
void k2_guard_flush(struct k2_data *k2, struct request *rq);
void k2_guard_bypassed(struct k2_data *k2, struct request *rq, unsigned int made_in, u64 now_ns);
u64 k2_guard_look(struct k2_guard *guard, u64 now_ns);
unsigned int k2_guard_dispatch(struct k2_data *k2, struct request *rq, u64 now_ns);
void k2_guard_completed(struct k2_data *k2, struct request *rq, u64 now_ns);

/* @rq has left the device, or the driver returned it; its time is not learned. */
static __always_inline void k2_guard_left(struct k2_data *k2, struct request *rq)
{
	struct k2_guard *guard = k2->guard;
	struct k2_rq *k2r = k2_rq(rq);

	/* The device has room for a held request. */
	guard->is_held = false;
	if (k2r->flight != K2_FLIGHT_NONE) {
		k2_lookahead_cancel(&guard->ahead, k2r->flight, ktime_get_ns());
		k2r->flight = K2_FLIGHT_NONE;
	}
	if (k2r->flags & K2_RQ_UNGUARDED) {
		guard->unguarded_inflight--;
		k2r->flags &= ~K2_RQ_UNGUARDED;
	}
}

/* May a queued request be dispatched? */
static __always_inline bool k2_may_dispatch(const struct k2_data *k2)
{
	return k2_policy_has_work(&k2->policy) && !k2->guard->is_held && !k2->lanes.is_holding;
}

/* k2_lanes.c */

static inline bool k2_has_lanes(const struct k2_data *k2)
{
	return unlikely(!list_empty(&k2->lanes.list));
}

void k2_lanes_begin(struct k2_data *k2);
void k2_lanes_end(struct k2_data *k2);
bool k2_lanes_hold(struct k2_data *k2, unsigned int queue);
void k2_lanes_look(struct k2_data *k2);
void k2_lanes_arrival(struct k2_data *k2, unsigned int queue);
ssize_t k2_lanes_show(struct k2_data *k2, char *page);

/* k2_timer.c */
void k2_timer_init(struct k2_data *k2);
void k2_timer_set(struct k2_data *k2, u64 at_ns);
void k2_timer_exit(struct k2_data *k2);

/* k2_split.c */

/* This many pieces can be in flight even if no memory is free. */
#define K2_CLONES_RESERVED 8

int k2_split_init(struct k2_data *k2);
void k2_split_exit(struct k2_data *k2);
bool k2_may_split(struct request *rq);
bool k2_split(struct k2_data *k2, struct request *rq, unsigned int piece_bytes);

/*
 * Called when a piece that is not the last ends, before blk-mq would count it as an I/O, which it
 * is not. Its sectors are still counted. k2_restore_rest() restores the flag.
 */
static inline void k2_piece_mute_stats(struct request *rq)
{
	if (!(rq->rq_flags & RQF_IO_STAT))
		return;
	rq->rq_flags &= ~RQF_IO_STAT;
	k2_rq(rq)->flags |= K2_RQ_MUTED;
}

/* k2_stats.c */
bool k2_stats_init(struct k2_data *k2);
void k2_stats_exit(struct k2_data *k2);
void k2_stats_late(struct k2_data *k2, struct request *rq, unsigned int queue, u64 ns);
ssize_t k2_stats_show(struct k2_data *k2, unsigned int group, char *page);

/*
 * @rq of @queue has ended. This is called at each completion, by several CPUs at once, so it takes
 * no lock and few instructions.
 */
static __always_inline void k2_stats_completed(struct k2_data *k2, struct request *rq,
					       unsigned int queue, u64 now_ns)
{
	unsigned int group = k2_policy_group(queue);
	struct k2_latencies *latencies = &k2->latencies[group];
	s64 ns = max_t(s64, now_ns - rq->start_time_ns, 1);
	s64 ns_max = atomic64_read(&latencies->ns_max);

	atomic64_inc(&latencies->bucket[k2_latency_bucket(ns)]);
	atomic64_add(ns, &latencies->ns_sum);
	while (unlikely(ns > ns_max) && !atomic64_try_cmpxchg(&latencies->ns_max, &ns_max, ns))
		;
	/* On 32 bits, a change of the deadline may be half visible to one request. */
	if (unlikely(ns > data_race(k2->deadline_ns[group])))
		k2_stats_late(k2, rq, queue, ns);
}

/* k2_sysfs.c */
extern struct elv_fs_entry k2_sysfs_attrs[];

#ifdef CONFIG_BLK_DEBUG_FS
/* k2_debugfs.c */
extern const struct blk_mq_debugfs_attr k2_debugfs_attrs[];
#endif

#endif /* K2_H */
