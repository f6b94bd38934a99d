// SPDX-License-Identifier: GPL-2.0-only
/*
 * k2: an I/O scheduler that bounds how long real-time requests wait for the device.
 *
 * Real-time requests (ioprio class RT, eight levels) are served strictly first, in order of
 * arrival, then metadata of file systems, then best effort, process by process, then the idle
 * class. No more than inflight_max requests are with the device at a time, so that a real-time
 * request finds little in front of it, and background requests can be dispatched in pieces, so
 * that what it finds there is short. The decisions are in k2_policy.c; this file keeps the lists
 * and ties them to blk-mq. Begin reading at the table at the end.
 *
 * Life of a request: prepare_request, insert_requests, dispatch_request, finish_request. Not all
 * requests live all of it. Requests merged into another are finished without dispatch. Flushes go
 * straight to the driver: on 6.1 k2 learns of them when they end, on 6.12 when they are prepared,
 * too. For two more kinds it depends on the kernel:
 *
 *   writes with FUA       6.1: the same, except that a driver may ask for
 *   or a preceding flush  one to be inserted later on, never prepared. 6.12: live as all others,
 *                         but the data of a write with a preceding flush comes at the head.
 *   passthrough           6.1: prepared and finished, but inserted only if they come out of a plug
 *                         (io_uring's commands do). 6.12: never inserted, and seldom prepared.
 *
 * Each request therefore carries flags (k2_rq.flags) that say what is on the books for it.
 *
 * Waking up. Whatever k2 refuses to dispatch is dispatched after a completion, so
 * k2_finish_request() runs the hardware queues if something was refused and may now go. Both are
 * said under the lock: a completion either comes before the refusal, which then sees the room, or
 * after, and sees the refusal. What was not refused is blk-mq's to come back for: it may be the
 * driver that has no room. What background holds back by itself is dispatched when a timer says so,
 * see k2_timer.c.
 */
#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sbitmap.h>

#include <trace/events/block.h>

#include "k2.h"

#include "../compat/async_depth.h"
#include "../compat/depth_updated.h"
#include "../compat/elevator_queue.h"
#include "../compat/sched_data.h"
#include "../compat/shallow_depth.h"
#include "../compat/start_time.h"

#define CREATE_TRACE_POINTS
#include "k2_trace.h"

/* k2_policy_queue() takes an ioprio apart without the kernel's headers. */
static_assert(IOPRIO_CLASS_SHIFT == K2_IOPRIO_CLASS_SHIFT && IOPRIO_CLASS_RT == K2_IOPRIO_CLASS_RT);
static_assert(IOPRIO_NR_LEVELS == K2_RT_LEVELS);

/* Called after the policy's transitions, with the lock held. Most begin or end no wait. */
void k2_note_waits(struct k2_data *k2)
{
	u64 now_ns;

	lockdep_assert_held(&k2->lock);

	if (!k2_policy_waits_changed(&k2->policy))
		return;
	now_ns = ktime_get_ns();
	k2->policy.is_unguarded = k2->guard->unguarded_inflight;
	k2_policy_note_waits(&k2->policy, now_ns);
	k2_timer_set(k2, k2_policy_look(&k2->policy, now_ns));
}

/*
 * Called in the context of the process that submits. Passthrough commands have no ioprio (the field
 * keeps that of the request's former life).
 */
static unsigned int k2_take_queue(struct k2_data *k2, struct request *rq)
{
	unsigned int queue = K2_QUEUE_BEST_EFFORT;

	if (!blk_rq_is_passthrough(rq))
		queue = k2_policy_queue(req_get_ioprio(rq), rq->cmd_flags & REQ_META);
	if (queue < K2_RT_LEVELS && k2->guard->ahead.declared.used)
		queue = k2_tasks_queue(k2, queue);
	if (queue == K2_QUEUE_BEST_EFFORT)
		queue = k2_policy_take_flow(&k2->policy, task_tgid_nr(current));
	return queue;
}

/*
 * A request comes for the first time, or comes back: its rest, or a driver's retry. One that
 * comes back is in flight until it is here, keeps its place at the head, and is not merged: a rest
 * that new neighbours are added to would never end.
 */
static void k2_insert(struct k2_data *k2, struct request *rq, bool at_head)
{
	struct k2_rq *k2r = k2_rq(rq);
	bool is_new = false;

	lockdep_assert_held(&k2->lock);

	if (!k2_rq_has_private(rq)) {
		/*
		 * Never prepared. 6.1: a FUA write. 6.12: a request that a plug had allocated for a
		 * passthrough command, and then used for this.
		 */
		k2_rq_claim_private(rq);
		*k2r = k2_rq_new;
	}

	if (k2r->flags & K2_RQ_INFLIGHT) {
		k2_guard_left(k2, rq);
		k2_policy_give_back(&k2->policy, k2r->queue,
				    k2r->flags & K2_RQ_REST ? K2_BACK_REST : K2_BACK_RETRY);
		k2r->flags &= ~(K2_RQ_INFLIGHT | K2_RQ_REST);
		if (k2r->flags & K2_RQ_DECLARED)
			k2_tasks_back(k2, rq);
	} else {
		k2r->queue = k2_take_queue(k2, rq);
		k2r->flags = K2_RQ_COUNTED | (k2r->flags & K2_RQ_DECLARED);
		k2_policy_insert(&k2->policy, k2r->queue);
		if (unlikely(k2->lanes.on_card))
			k2_lanes_arrival(k2, k2r->queue);
		/* It ends holding back. */
		k2->guard->is_held = false;
		if (k2r->queue < K2_RT_LEVELS && k2_knows_real_time(k2))
			k2_guard_arrival(k2, rq);
		is_new = true;
	}

	trace_block_rq_insert(rq);
	if (at_head)
		list_add(&rq->queuelist, &k2->queues[k2r->queue]);
	else
		list_add_tail(&rq->queuelist, &k2->queues[k2r->queue]);
	if (is_new && !at_head)
		k2_sort(k2, rq);
}

/* Requests, in the order of their life. */

static noinline void k2_flush_prepared(struct k2_data *k2, struct request *rq)
{
	unsigned long flags;

	k2_rq(rq)->queue = k2_policy_queue(get_current_ioprio(), false);
	/* A task that is declared just now has not made this request. */
	if (!data_race(k2->guard->ahead.declared.used))
		return;
	spin_lock_irqsave(&k2->lock, flags);
	k2_guard_flush(k2, rq);
	spin_unlock_irqrestore(&k2->lock, flags);
}

static void k2_prepare_request(struct request *rq)
{
	struct k2_data *k2 = rq->q->elevator->elevator_data;

	k2_start_time_set(rq);
	*k2_rq(rq) = k2_rq_new;
	/* On 6.1 it is never asked for these. */
	if (op_is_flush(rq->cmd_flags))
		k2_flush_prepared(k2, rq);
}

static void k2_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, blk_insert_t how)
{
	struct k2_data *k2 = hctx->queue->elevator->elevator_data;
	struct request *rq, *next;
	unsigned long flags;

	spin_lock_irqsave(&k2->lock, flags);
	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		k2_insert(k2, rq, how & BLK_MQ_INSERT_AT_HEAD);
	}
	if (k2_has_lanes(k2))
		k2_lanes_look(k2);
	k2_note_waits(k2);
	spin_unlock_irqrestore(&k2->lock, flags);
}

/* Nothing is dispatched now. The next completion looks whether something may be, see above. */
static void k2_refuse(struct k2_data *k2)
{
	lockdep_assert_held(&k2->lock);

	k2->has_refused = k2->policy.queues_waiting;
}

static bool k2_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct k2_data *k2 = hctx->queue->elevator->elevator_data;
	unsigned long flags;
	bool may_dispatch;

	/* A hint: k2_dispatch_request() looks again. */
	if (data_race(k2_may_dispatch(k2)))
		return true;
	/* Whoever inserts runs the queue after that, and sees it here. */
	if (!data_race(k2->policy.queues_waiting))
		return false;

	spin_lock_irqsave(&k2->lock, flags);
	may_dispatch = k2_may_dispatch(k2);
	if (!may_dispatch)
		k2_refuse(k2);
	spin_unlock_irqrestore(&k2->lock, flags);
	return may_dispatch;
}

/*
 * No clone to be had: back to the head of the queue. All reserved clones are with pieces in
 * flight, so a completion comes. Should the last one come before the request is back, then blk-mq
 * looks again in 3 ms, as always when has_work was true and no request came out.
 */
static void k2_defer(struct k2_data *k2, struct request *rq)
{
	struct k2_rq *k2r = k2_rq(rq);
	unsigned long flags;

	spin_lock_irqsave(&k2->lock, flags);
	k2_policy_give_back(&k2->policy, k2r->queue, K2_BACK_DEFERRED);
	k2_guard_left(k2, rq);
	k2r->flags &= ~K2_RQ_INFLIGHT;
	list_add(&rq->queuelist, &k2->queues[k2r->queue]);
	if (k2_has_lanes(k2))
		k2_lanes_look(k2);
	k2_note_waits(k2);
	k2_refuse(k2);
	spin_unlock_irqrestore(&k2->lock, flags);
}

static struct request *k2_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct request_queue *q = hctx->queue;
	struct k2_data *k2 = q->elevator->elevator_data;
	unsigned int queue, inflight, piece_bytes;
	struct request *rq;
	unsigned long flags;
	u64 now_ns = 0;

	spin_lock_irqsave(&k2->lock, flags);
	if (k2_policy_next_needs_time(&k2->policy))
		now_ns = ktime_get_ns();
	queue = k2_policy_next(&k2->policy, now_ns);
	if (queue == K2_QUEUE_NONE)
		goto refuse;
	if (k2_has_lanes(k2) && k2_lanes_hold(k2, queue))
		goto refuse;
	rq = list_first_entry(&k2->queues[queue], struct request, queuelist);
	piece_bytes = k2_guard_dispatch(k2, rq, now_ns);
	if (!piece_bytes)
		goto refuse;
	k2_remove(k2, rq);
	k2_rq(rq)->flags |= K2_RQ_INFLIGHT;
	k2_policy_dispatch(&k2->policy, queue);
	if (k2_has_lanes(k2))
		k2_lanes_look(k2);
	k2_note_waits(k2);
	inflight = k2_policy_inflight(&k2->policy);
	spin_unlock_irqrestore(&k2->lock, flags);

	if (piece_bytes < blk_rq_bytes(rq) && !k2_split(k2, rq, piece_bytes)) {
		k2_defer(k2, rq);
		return NULL;
	}
	trace_k2_dispatch(rq, queue, inflight);
	return rq;

refuse:
	k2_refuse(k2);
	spin_unlock_irqrestore(&k2->lock, flags);
	return NULL;
}

/* Of a request that bypassed k2: that of its thread. Of passthrough it does not matter. */
static unsigned int k2_bypassed_queue(struct request *rq)
{
	if (blk_rq_is_passthrough(rq))
		return K2_QUEUE_BEST_EFFORT;
	if (k2_rq_keeps_private())
		return k2_rq(rq)->queue;
	return k2_policy_queue(req_get_ioprio(rq), false);
}

/*
 * Called when a request that went past k2 ends: a flush with data twice, the last time counts. Not
 * inline, like the next one: k2_completed_request() then saves no registers for what is rare.
 */
static noinline void k2_bypassed_request(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	unsigned int queue = k2_bypassed_queue(rq);
	unsigned long flags;

	if (rq->rq_flags & RQF_FLUSH_SEQ)
		return;
	if (!blk_rq_is_passthrough(rq))
		k2_stats_completed(k2, rq, queue, now_ns);
	spin_lock_irqsave(&k2->lock, flags);
	if (k2_rq_keeps_private())
		k2_tasks_ended(k2, rq, now_ns);
	if (k2_knows_real_time(k2))
		k2_guard_bypassed(k2, rq, queue, now_ns);
	spin_unlock_irqrestore(&k2->lock, flags);
}

static noinline void k2_watched_request(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	unsigned long flags;

	spin_lock_irqsave(&k2->lock, flags);
	k2_guard_completed(k2, rq, now_ns);
	spin_unlock_irqrestore(&k2->lock, flags);
}

/* Called when a request ends, also one that was never inserted. Most need nothing more. */
static void k2_completed_request(struct request *rq, u64 now_ns)
{
	struct k2_data *k2 = rq->q->elevator->elevator_data;
	struct k2_rq *k2r = k2_rq(rq);

	if (!k2_rq_has_private(rq) || !(k2r->flags & K2_RQ_COUNTED)) {
		k2_bypassed_request(k2, rq, now_ns);
		return;
	}
	if (k2r->flags & K2_RQ_PIECE)
		k2_piece_mute_stats(rq);
	else if (!(rq->rq_flags & RQF_FLUSH_SEQ))
		k2_stats_completed(k2, rq, k2r->queue, now_ns);
	if (k2r->flight != K2_FLIGHT_NONE || k2r->stream != K2_STREAM_NONE)
		k2_watched_request(k2, rq, now_ns);
}

/* A flush was prepared and is freed; if it was never made, it does not end either. */
static noinline void k2_flush_finished(struct k2_data *k2, struct request *rq)
{
	unsigned long flags;

	spin_lock_irqsave(&k2->lock, flags);
	k2_tasks_ended(k2, rq, ktime_get_ns());
	spin_unlock_irqrestore(&k2->lock, flags);
}

/* Called when a request ends or is freed; for a piece too, but then the request goes on. */
static void k2_finish_request(struct request *rq)
{
	struct request_queue *q = rq->q;
	struct k2_data *k2 = q->elevator->elevator_data;
	struct k2_rq *k2r = k2_rq(rq);
	unsigned long flags;
	bool run;

	if (!(k2r->flags & (K2_RQ_COUNTED | K2_RQ_DECLARED)) || (k2r->flags & K2_RQ_PIECE))
		return;
	if (!(k2r->flags & K2_RQ_COUNTED)) {
		k2_flush_finished(k2, rq);
		return;
	}
	if (WARN_ON_ONCE(!(k2r->flags & K2_RQ_INFLIGHT)))
		return;

	spin_lock_irqsave(&k2->lock, flags);
	k2_guard_left(k2, rq);
	k2_policy_complete(&k2->policy, k2r->queue);
	if (k2_has_lanes(k2))
		k2_lanes_look(k2);
	k2_note_waits(k2);
	/* After data a flush may follow. */
	k2r->flags &= K2_RQ_DECLARED;
	run = k2->has_refused && k2_may_dispatch(k2);
	if (run)
		k2->has_refused = false;
	spin_unlock_irqrestore(&k2->lock, flags);

	if (run)
		blk_mq_run_hw_queues(q, true);
}

/* Tags. */

/*
 * Called before a tag is allocated. The bio is not known here, so what counts is the ioprio of the
 * task, not that of a single I/O.
 */
static void k2_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct k2_data *k2 = data->q->elevator->elevator_data;
	unsigned int queue = k2_policy_queue(get_current_ioprio(), opf & REQ_META);

	if (k2_policy_class(queue) == K2_CLASS_BACKGROUND)
		data->shallow_depth =
			k2_async_depth_limit(data->q, opf, k2->tags[k2_policy_group(queue)]);
}

static void k2_update_depth(struct blk_mq_hw_ctx *hctx)
{
	struct k2_data *k2 = hctx->queue->elevator->elevator_data;
	struct sbitmap_queue *tags = &hctx->sched_tags->bitmap_tags;
	unsigned int group, whole;

	k2_shallow_depth_prepare(tags, hctx->numa_node);
	whole = k2_shallow_depth_whole(&tags->sb);
	for (group = 0; group < K2_GROUPS; group++)
		/* Nothing allocates a tag meanwhile, but debugfs may read. */
		WRITE_ONCE(k2->tags[group], k2_policy_tags(whole, group));
	sbitmap_queue_min_shallow_depth(tags, k2_async_depth_limit(hctx->queue, REQ_OP_WRITE,
								   k2->tags[K2_GROUP_IDLE]));
}

/* Called with the queue frozen when nr_requests or async_depth was changed. */
static void k2_depth_updated(k2_depth_updated_t *of)
{
	k2_each_updated(of, k2_update_depth);
}

/* Setting up and taking down. */

static int k2_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int hctx_idx)
{
	k2_update_depth(hctx);
	return 0;
}

static int k2_init_sched(struct request_queue *q, k2_init_sched_t *given)
{
	struct elevator_queue *eq = k2_elevator_queue_get(q, given);
	struct k2_data *k2;

	if (!eq)
		return -ENOMEM;
	k2 = k2_sched_data_get(eq, q, k2_alloc);
	if (!k2) {
		k2_elevator_queue_put(eq);
		return -ENOMEM;
	}
	k2_begin(k2);

	/* Dispatch does not ask which hardware queue a request belongs to. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	k2_async_depth_init(q);
	q->elevator = eq;
	return 0;
}

/* Called with the queue frozen. */
static void k2_exit_sched(struct elevator_queue *e)
{
	k2_end(e->elevator_data);
	k2_sched_data_put(e, k2_free);
}

/* clang-format off */
struct elevator_type k2_elevator = {
	.ops = {
		.init_sched		= k2_init_sched,
		.exit_sched		= k2_exit_sched,
		K2_SCHED_DATA_OPS(k2_alloc, k2_free)
		.init_hctx		= k2_init_hctx,
		.depth_updated		= k2_depth_updated,
		.limit_depth		= k2_limit_depth,
		.prepare_request	= k2_prepare_request,
		.insert_requests	= k2_insert_requests,
		.has_work		= k2_has_work,
		.dispatch_request	= k2_dispatch_request,
		.completed_request	= k2_completed_request,
		.finish_request		= k2_finish_request,
		.bio_merge		= k2_bio_merge,
		.allow_merge		= k2_allow_merge,
		.request_merge		= k2_request_merge,
		.request_merged		= k2_request_merged,
		.requests_merged	= k2_requests_merged,
		.former_request		= k2_former_request,
		.next_request		= k2_next_request,
	},
	.elevator_attrs		= k2_sysfs_attrs,
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs	= k2_debugfs_attrs,
#endif
	.elevator_name		= "k2",
	.elevator_owner		= THIS_MODULE,
};

/* clang-format on */

static int __init k2_init(void)
{
	int ret = k2_shallow_depth_probe();

	if (ret)
		return ret;
	ret = k2_file_register();
	if (ret)
		return ret;
	ret = elv_register(&k2_elevator);
	if (ret)
		k2_file_unregister();
	return ret;
}

static void __exit k2_exit(void)
{
	elv_unregister(&k2_elevator);
	k2_file_unregister();
}

module_init(k2_init);
module_exit(k2_exit);

MODULE_DESCRIPTION("k2 I/O scheduler: bounded waiting for real-time requests");
MODULE_LICENSE("GPL");
MODULE_ALIAS("k2-iosched");
