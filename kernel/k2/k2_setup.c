// SPDX-License-Identifier: GPL-2.0-only
/* Allocates, initialises and frees the state of a device. */
#include <linux/major.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "k2.h"

/*
 * A device without real-time takes at most 16 KiB: kmalloc() rounds each of three allocations up to
 * a power of two. Streams and tasks are allocated later. Debugging and PREEMPT_RT make a lock
 * larger: then 18 KiB.
 */
static_assert(sizeof(struct k2_data) <=
	      (IS_ENABLED(CONFIG_DEBUG_SPINLOCK) || IS_ENABLED(CONFIG_PREEMPT_RT) ? SZ_4K : SZ_2K));
static_assert(sizeof(struct k2_guard) <= SZ_4K);
static_assert(K2_GROUPS * sizeof(struct k2_latencies) <= SZ_8K);
static_assert(K2_CLONES_RESERVED * sizeof(struct bio) <= SZ_2K);
/* The first real-time request allocates this at once, atomically. */
static_assert(K2_STREAMS * sizeof(struct k2_stream) <= 40 * SZ_1K);

/* Returns a struct k2_data. compat/sched_data.h tells when k2_alloc() and k2_free() are called. */
void *k2_alloc(struct request_queue *q)
{
	struct k2_data *k2 = kzalloc_node(sizeof(*k2), GFP_KERNEL, q->node);

	if (!k2)
		return NULL;
	k2->q = q;
	k2->guard = k2_guard_init(q);
	if (!k2->guard)
		goto free_data;
	if (!k2_stats_init(k2))
		goto exit_guard;
	if (k2_split_init(k2))
		goto exit_stats;
	return k2;

exit_stats:
	k2_stats_exit(k2);
exit_guard:
	k2_guard_exit(k2->guard);
free_data:
	kfree(k2);
	return NULL;
}

void k2_free(void *data)
{
	struct k2_data *k2 = data;

	k2_split_exit(k2);
	k2_stats_exit(k2);
	k2_guard_exit(k2->guard);
	kfree(k2);
}

void k2_begin(struct k2_data *k2)
{
	struct request_queue *q = k2->q;
	bool is_mmc = q->disk && q->disk->major == MMC_BLOCK_MAJOR;
	unsigned int i;

	spin_lock_init(&k2->lock);
	k2_policy_init(&k2->policy, k2_policy_inflight_default(q->tag_set->queue_depth, is_mmc));
	k2_guard_set_rt_block_us(k2, K2_RT_BLOCK_US_DEFAULT);
	for (i = 0; i < K2_QUEUES; i++)
		INIT_LIST_HEAD(&k2->queues[i]);
	for (i = 0; i < ARRAY_SIZE(k2->sorted); i++)
		k2->sorted[i] = RB_ROOT;
	k2_lanes_begin(k2);
	k2_timer_init(k2);
	k2_tasks_begin(k2);
}

static void k2_warn_lost(const struct k2_policy *policy)
{
	unsigned int cls;

	for (cls = 0; cls < K2_CLASSES; cls++) {
		const struct k2_counts *counts = &policy->counts[cls];

		pr_warn("k2: %s: inserted %llu merged %llu dispatched %llu split %llu retried %llu "
			"deferred %llu completed %llu inflight %u\n",
			cls == K2_CLASS_RT ? "rt" : "background", counts->inserted, counts->merged,
			counts->dispatched, counts->back[K2_BACK_REST], counts->back[K2_BACK_RETRY],
			counts->back[K2_BACK_DEFERRED], counts->completed, policy->inflight[cls]);
	}
}

/* Called with the queue frozen: every request that was inserted must have ended. */
void k2_end(struct k2_data *k2)
{
	unsigned int i;

	k2_tasks_end(k2);
	k2_lanes_end(k2);
	if (WARN_ON(!k2_policy_idle(&k2->policy) || !k2_policy_balanced(&k2->policy)))
		k2_warn_lost(&k2->policy);
	for (i = 0; i < K2_QUEUES; i++)
		WARN_ON(!list_empty(&k2->queues[i]));
	k2_timer_exit(k2);
}
