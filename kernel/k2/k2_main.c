// SPDX-License-Identifier: GPL-2.0-only
/*
 * k2: an I/O scheduler that bounds how long real-time requests wait for the device.
 *
 * Real-time requests (ioprio class RT, eight levels) are served strictly first, in order of
 * arrival, then metadata of file systems, then best effort in turns by process, then the idle
 * class. At most inflight_max requests are with the device at a time, so a real-time request finds
 * few before it. Background requests can be dispatched in pieces, so those few are short.
 * k2_policy.c decides; this file keeps the lists and connects them to blk-mq. To read it, start at
 * the table at the end.
 *
 * Life of a request: prepare_request, insert_requests, dispatch_request, finish_request. Some
 * requests skip steps. A request merged into another finishes without dispatch. Flushes go straight
 * to the driver: on 6.1 k2 sees them when they end, on 6.12 also when they are prepared. Two more
 * kinds depend on the kernel:
 *
 *   writes with FUA       6.1: the same, but a driver may ask to insert one later that was
 *   or a preceding flush  never prepared. 6.12: as all others, but the data of a write with a
 *                         preceding flush is inserted at the head.
 *   passthrough           6.1: prepared and finished, but inserted only if they come out of a plug
 *                         (io_uring's commands do). 6.12: never inserted, and rarely prepared.
 *
 * Flags of each request (k2_rq.flags) therefore record the steps that it has taken.
 *
 * Waking up. A request that k2 did not dispatch waits for a completion: k2_finish_request() runs
 * the hardware queues if k2 refused a request that may go now. Both use the lock: a completion
 * comes either before the refusal, which then sees the room, or after it, and then sees the
 * refusal. If k2 did not refuse, blk-mq itself runs the queue again, for example when the driver
 * has room. Background that waits without a command in flight is resumed by a timer, see
 * k2_timer.c.
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

/* k2_policy_queue() parses an ioprio without the kernel's headers. */
static_assert(IOPRIO_CLASS_SHIFT == K2_IOPRIO_CLASS_SHIFT && IOPRIO_CLASS_RT == K2_IOPRIO_CLASS_RT);
static_assert(IOPRIO_NR_LEVELS == K2_RT_LEVELS);

/* A wait has begun or ended. Called by k2_note_waits(). */
void k2_waits_changed(struct k2_data *k2)
{
	u64 now_ns = ktime_get_ns();

	k2->policy.is_unguarded = k2->guard->unguarded_inflight;
	k2_policy_note_waits(&k2->policy, now_ns);
	k2_timer_set(k2, k2_policy_look(&k2->policy, now_ns));
}

/*
 * Called in the context of the submitting process. Passthrough commands have no ioprio: the field
 * still has that of an earlier request.
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
 * A request is inserted for the first time, or again: the rest of a split one, or a driver's retry.
 * In the second case it was in flight until now, goes to the head, and is not merged: a rest that
 * keeps growing would never end.
 */
static void k2_insert(struct k2_data *k2, struct request *rq, bool at_head)
{
	struct k2_rq *k2r = k2_rq(rq);
	bool is_new = false;

	lockdep_assert_held(&k2->lock);

	if (!k2_rq_has_private(rq)) {
		/*
		 * It was not prepared. 6.1: a FUA write. 6.12: a request that a plug had allocated
		 * for a passthrough command, and then used for this one.
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
		/* A new request ends the hold. */
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

/* Request operations, in the order of a request's life. */

static noinline void k2_flush_prepared(struct k2_data *k2, struct request *rq)
{
	unsigned long flags;

	k2_rq(rq)->queue = k2_policy_queue(get_current_ioprio(), false);
	/* A task that is being declared has not made this request. */
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
	/* 6.1 does not prepare these. */
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

/* Nothing is dispatched now. The next completion tries again, see above. */
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

	/* This is a hint: k2_dispatch_request() checks again. */
	if (data_race(k2_may_dispatch(k2)))
		return true;
	/* A thread that inserts a request runs the queue afterwards, and sees the request here. */
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
 * No clone is free, so the request returns to the head of its queue. All reserved clones belong to
 * pieces in flight, so a completion follows. If the last one comes before the request is back,
 * blk-mq tries again in 3 ms, as always when has_work() was true and no request followed.
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

/* The queue of the thread of a request that bypassed k2. For passthrough, any will do. */
static unsigned int k2_bypassed_queue(struct request *rq)
{
	if (blk_rq_is_passthrough(rq))
		return K2_QUEUE_BEST_EFFORT;
	if (k2_rq_keeps_private())
		return k2_rq(rq)->queue;
	return k2_policy_queue(req_get_ioprio(rq), false);
}

/*
 * A request that bypassed k2 ends; a flush with data ends twice, and the second time counts. Like
 * the next function, it is not inline: k2_completed_request() then saves fewer registers.
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

/* Called when a request ends, even one that was never inserted. Most need no more work. */
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

/* A prepared flush is freed. If it was never issued, this is its only end. */
static noinline void k2_flush_finished(struct k2_data *k2, struct request *rq)
{
	unsigned long flags;

	spin_lock_irqsave(&k2->lock, flags);
	k2_tasks_ended(k2, rq, ktime_get_ns());
	spin_unlock_irqrestore(&k2->lock, flags);
}

/* Called when a request ends or is freed, and also for a piece, whose request goes on. */
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
	/* A flush may follow the data. */
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
 * Called before a tag is allocated. The bio is not known yet, so the ioprio of the task counts, not
 * that of the I/O.
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
		/* No tag is allocated meanwhile, but debugfs may read this. */
		WRITE_ONCE(k2->tags[group], k2_policy_tags(whole, group));
	sbitmap_queue_min_shallow_depth(tags, k2_async_depth_limit(hctx->queue, REQ_OP_WRITE,
								   k2->tags[K2_GROUP_IDLE]));
}

/* Called with the queue frozen when nr_requests or async_depth was changed. */
static void k2_depth_updated(k2_depth_updated_t *of)
{
	k2_each_updated(of, k2_update_depth);
}

/* Setup and teardown. */

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

	/* Dispatch does not depend on the hardware queue of a request. */
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
