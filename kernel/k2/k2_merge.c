// SPDX-License-Identifier: GPL-2.0-only
/*
 * Merging of background reads and writes. Bios merge only when they are submitted. Merging whole
 * requests at insertion could not be limited: elv_rqhash_find(), which finds their candidates, is
 * not exported to modules.
 */
#include <linux/blkdev.h>

#include "k2.h"

static bool k2_mergeable(struct request *rq)
{
	if (k2_policy_class(k2_rq(rq)->queue) == K2_CLASS_RT || !rq_mergeable(rq))
		return false;
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;
}

/* If @rq may be merged, makes it visible to merging. */
void k2_sort(struct k2_data *k2, struct request *rq)
{
	lockdep_assert_held(&k2->lock);

	if (!k2_mergeable(rq))
		return;
	elv_rqhash_add(k2->q, rq);
	elv_rb_add(&k2->sorted[rq_data_dir(rq)], rq);
	k2_rq(rq)->flags |= K2_RQ_SORTED;
}

/* Removes @rq from its queue and hides it from merging. */
void k2_remove(struct k2_data *k2, struct request *rq)
{
	lockdep_assert_held(&k2->lock);

	list_del_init(&rq->queuelist);
	if (!(k2_rq(rq)->flags & K2_RQ_SORTED))
		return;
	elv_rqhash_del(k2->q, rq);
	elv_rb_del(&k2->sorted[rq_data_dir(rq)], rq);
	if (k2->q->last_merge == rq)
		k2->q->last_merge = NULL;
	k2_rq(rq)->flags &= ~K2_RQ_SORTED;
}

/* Called in the context of the submitting process. */
static unsigned int k2_queue_of_bio(const struct k2_data *k2, struct bio *bio)
{
	unsigned int queue = k2_policy_queue(bio->bi_ioprio, bio->bi_opf & REQ_META);

	if (queue == K2_QUEUE_BEST_EFFORT)
		queue = k2_policy_flow(&k2->policy, task_tgid_nr(current));
	return queue;
}

bool k2_bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs)
{
	struct k2_data *k2 = q->elevator->elevator_data;
	struct request *free = NULL;
	unsigned long flags;
	bool merged;

	/* A request that is being inserted may be missed, which only loses a merge. */
	if (data_race(RB_EMPTY_ROOT(&k2->sorted[bio_data_dir(bio)])))
		return false;
	if (k2_policy_class(k2_policy_queue(bio->bi_ioprio, false)) == K2_CLASS_RT)
		return false;

	spin_lock_irqsave(&k2->lock, flags);
	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	spin_unlock_irqrestore(&k2->lock, flags);

	if (free)
		blk_mq_free_request(free);
	return merged;
}

/* Requests may grow if k2 will split them. */
static bool k2_may_merge(struct k2_data *k2, unsigned int queue, u64 bytes)
{
	if (k2_policy_class(queue) == K2_CLASS_BACKGROUND && k2_is_looking_ahead(k2))
		return true;
	return k2_policy_may_merge(&k2->policy, queue, bytes);
}

/* May @bio join @rq? Called by elv_bio_merge_ok(), from k2_bio_merge(). */
bool k2_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio)
{
	struct k2_data *k2 = q->elevator->elevator_data;

	lockdep_assert_held(&k2->lock);
	/* Merged, metadata would wait with other background, or a process with another. */
	if (k2_rq(rq)->queue != k2_queue_of_bio(k2, bio))
		return false;
	return k2_may_merge(k2, k2_rq(rq)->queue, (u64)blk_rq_bytes(rq) + bio->bi_iter.bi_size);
}

/* Finds a request that starts where @bio ends. blk-mq finds the other side in the hash. */
int k2_request_merge(struct request_queue *q, struct request **found, struct bio *bio)
{
	struct k2_data *k2 = q->elevator->elevator_data;
	struct request *rq = elv_rb_find(&k2->sorted[bio_data_dir(bio)], bio_end_sector(bio));

	if (!rq || !elv_bio_merge_ok(rq, bio))
		return ELEVATOR_NO_MERGE;
	*found = rq;
	return ELEVATOR_FRONT_MERGE;
}

void k2_request_merged(struct request_queue *q, struct request *rq, enum elv_merge type)
{
	struct k2_data *k2 = q->elevator->elevator_data;
	struct rb_root *root = &k2->sorted[rq_data_dir(rq)];

	if (type != ELEVATOR_FRONT_MERGE)
		return;
	/* Its start sector changed. */
	elv_rb_del(root, rq);
	elv_rb_add(root, rq);
}

/* @next became the end of @rq and is about to be freed. */
void k2_requests_merged(struct request_queue *q, struct request *rq, struct request *next)
{
	struct k2_data *k2 = q->elevator->elevator_data;

	lockdep_assert_held(&k2->lock);

	/* The merged request has the earlier start time of the two; it also takes that place. */
	if (next->start_time_ns == rq->start_time_ns)
		list_move(&rq->queuelist, &next->queuelist);
	k2_remove(k2, next);
	k2_policy_merge(&k2->policy, k2_rq(next)->queue);
	k2_note_waits(k2);
	k2_rq(next)->flags = 0;
}

/* blk-mq checks that @neighbour is adjacent. Is it in the same queue, and not too large? */
static struct request *k2_bounded(struct request *rq, struct request *neighbour)
{
	struct k2_data *k2 = rq->q->elevator->elevator_data;

	if (!neighbour || k2_rq(neighbour)->queue != k2_rq(rq)->queue)
		return NULL;
	if (!k2_may_merge(k2, k2_rq(rq)->queue, (u64)blk_rq_bytes(rq) + blk_rq_bytes(neighbour)))
		return NULL;
	return neighbour;
}

struct request *k2_former_request(struct request_queue *q, struct request *rq)
{
	return k2_bounded(rq, elv_rb_former_request(q, rq));
}

struct request *k2_next_request(struct request_queue *q, struct request *rq)
{
	return k2_bounded(rq, elv_rb_latter_request(q, rq));
}
