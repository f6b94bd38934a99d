// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long requests took, by group of queues, for whoever watches the device while it is used.
 * Counted at each completion, of several CPUs at once, without k2_data.lock.
 */
#include <linux/atomic.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "k2.h"

struct k2_latencies *k2_stats_init(struct request_queue *q)
{
	return kvzalloc_node(array_size(K2_GROUPS, sizeof(struct k2_latencies)), GFP_KERNEL,
			     q->node);
}

void k2_stats_exit(struct k2_latencies *latencies)
{
	kvfree(latencies);
}

/* @rq has a queue, and ends as a whole. */
void k2_stats_completed(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	unsigned int group = k2_policy_group(k2_rq(rq)->queue);
	struct k2_latencies *latencies = &k2->latencies[group];
	s64 ns = max_t(s64, now_ns - rq->start_time_ns, 0);
	s64 ns_max = atomic64_read(&latencies->ns_max);
	u32 deadline_us;

	atomic64_inc(&latencies->bucket[k2_latency_bucket(ns)]);
	atomic64_add(ns, &latencies->ns_sum);
	while (ns > ns_max && !atomic64_try_cmpxchg(&latencies->ns_max, &ns_max, ns))
		;
	if (group >= K2_RT_LEVELS)
		return;
	deadline_us = READ_ONCE(k2->rt_deadline_us[group]);
	if (deadline_us && ns > (s64)deadline_us * NSEC_PER_USEC)
		atomic64_inc(&latencies->late);
}

/* Two lines: what is counted, and BOUND_NS:COUNT of each bucket that is not empty. */
ssize_t k2_stats_show(struct k2_data *k2, unsigned int group, char *page)
{
	struct k2_latencies *latencies = &k2->latencies[group];
	u64 counts[K2_LATENCY_BUCKETS], total = 0;
	const char *space = "";
	ssize_t length;
	unsigned int i;

	for (i = 0; i < K2_LATENCY_BUCKETS; i++) {
		counts[i] = atomic64_read(&latencies->bucket[i]);
		total += counts[i];
	}
	length = sysfs_emit(page, "count %llu sum_ns %lld max_ns %lld late %lld\n", total,
			    atomic64_read(&latencies->ns_sum), atomic64_read(&latencies->ns_max),
			    atomic64_read(&latencies->late));
	for (i = 0; i < K2_LATENCY_LAST; i++) {
		if (!counts[i])
			continue;
		length += sysfs_emit_at(page, length, "%s%llu:%llu", space, k2_latency_bound_ns(i),
					counts[i]);
		space = " ";
	}
	if (counts[K2_LATENCY_LAST])
		length += sysfs_emit_at(page, length, "%sinf:%llu", space, counts[K2_LATENCY_LAST]);
	return length + sysfs_emit_at(page, length, "\n");
}
