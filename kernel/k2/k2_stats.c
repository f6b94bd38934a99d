// SPDX-License-Identifier: GPL-2.0-only
/* How long requests took, for whoever watches the device while it is used. */
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "k2.h"
#include "k2_trace.h"

struct k2_latencies *k2_stats_init(struct request_queue *q)
{
	struct k2_latencies *latencies;
	unsigned int queue;

	latencies = kvzalloc_node(array_size(K2_QUEUES, sizeof(*latencies)), GFP_KERNEL, q->node);
	for (queue = 0; latencies && queue < K2_QUEUES; queue++)
		latencies[queue].deadline_ns = K2_DEADLINE_NONE;
	return latencies;
}

void k2_stats_exit(struct k2_latencies *latencies)
{
	kvfree(latencies);
}

/* Called by k2_stats_completed(). */
void k2_stats_late(struct k2_latencies *latencies, struct request *rq, u64 ns)
{
	atomic64_inc(&latencies->late);
	/* As the caller has just read it, or newer. */
	trace_k2_late(rq, k2_rq(rq)->queue, ns, data_race(latencies->deadline_ns));
}

/* Those of a group of queues together; times in ns. */
struct k2_latency_sums {
	u64 count;
	u64 bucket[K2_LATENCY_BUCKETS];
	s64 ns_sum;
	s64 ns_max;
	s64 late;
};

static void k2_stats_sum(struct k2_data *k2, unsigned int group, struct k2_latency_sums *sums)
{
	unsigned int queue, i;

	for (queue = 0; queue < K2_QUEUES; queue++) {
		struct k2_latencies *latencies = &k2->latencies[queue];

		if (k2_policy_group(queue) != group)
			continue;
		for (i = 0; i < K2_LATENCY_BUCKETS; i++) {
			u64 count = atomic64_read(&latencies->bucket[i]);

			sums->bucket[i] += count;
			sums->count += count;
		}
		sums->ns_sum += atomic64_read(&latencies->ns_sum);
		sums->ns_max = max_t(s64, sums->ns_max, atomic64_read(&latencies->ns_max));
		sums->late += atomic64_read(&latencies->late);
	}
}

/* Two lines: what is counted, and BOUND_NS:COUNT of each bucket that is not empty. */
ssize_t k2_stats_show(struct k2_data *k2, unsigned int group, char *page)
{
	struct k2_latency_sums *sums;
	const char *space = "";
	ssize_t length;
	unsigned int i;

	/* The caller holds a lock that the end of the scheduler waits for with the queue frozen. */
	sums = kzalloc(sizeof(*sums), GFP_NOIO);
	if (!sums)
		return -ENOMEM;
	k2_stats_sum(k2, group, sums);
	length = sysfs_emit(page, "count %llu sum_ns %lld max_ns %lld late %lld\n", sums->count,
			    sums->ns_sum, sums->ns_max, sums->late);
	for (i = 0; i < K2_LATENCY_LAST; i++) {
		if (!sums->bucket[i])
			continue;
		length += sysfs_emit_at(page, length, "%s%llu:%llu", space, k2_latency_bound_ns(i),
					sums->bucket[i]);
		space = " ";
	}
	if (sums->bucket[K2_LATENCY_LAST])
		length += sysfs_emit_at(page, length, "%sinf:%llu", space,
					sums->bucket[K2_LATENCY_LAST]);
	length += sysfs_emit_at(page, length, "\n");
	kfree(sums);
	return length;
}
