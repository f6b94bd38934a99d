// SPDX-License-Identifier: GPL-2.0-only
/* Latency statistics of requests, for monitoring a device in use. */
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "k2.h"
#include "k2_trace.h"

/* False: no memory. */
bool k2_stats_init(struct k2_data *k2)
{
	size_t bytes = array_size(K2_GROUPS, sizeof(*k2->latencies));
	unsigned int group;

	for (group = 0; group < K2_GROUPS; group++)
		k2->deadline_ns[group] = K2_DEADLINE_NONE;
	k2->latencies = kzalloc_node(bytes, GFP_KERNEL, k2->q->node);
	return k2->latencies;
}

void k2_stats_exit(struct k2_data *k2)
{
	kfree(k2->latencies);
}

/* Called by k2_stats_completed(). */
void k2_stats_late(struct k2_data *k2, struct request *rq, unsigned int queue, u64 ns)
{
	unsigned int group = k2_policy_group(queue);

	atomic64_inc(&k2->latencies[group].late);
	/* This is the value that the caller has read, or a newer one. */
	trace_k2_late(rq, queue, ns, data_race(k2->deadline_ns[group]));
}

/* Prints two lines: the counts, and BOUND_NS:COUNT of each bucket that is not empty. */
ssize_t k2_stats_show(struct k2_data *k2, unsigned int group, char *page)
{
	struct k2_latencies *latencies = &k2->latencies[group];
	u64 bucket[K2_LATENCY_BUCKETS], count = 0;
	const char *space = "";
	ssize_t length;
	unsigned int i;

	for (i = 0; i < K2_LATENCY_BUCKETS; i++) {
		bucket[i] = atomic64_read(&latencies->bucket[i]);
		count += bucket[i];
	}
	length = sysfs_emit(page, "count %llu sum_ns %lld max_ns %lld late %lld\n", count,
			    atomic64_read(&latencies->ns_sum), atomic64_read(&latencies->ns_max),
			    atomic64_read(&latencies->late));
	for (i = 0; i < K2_LATENCY_LAST; i++) {
		if (!bucket[i])
			continue;
		length += sysfs_emit_at(page, length, "%s%llu:%llu", space, k2_latency_bound_ns(i),
					bucket[i]);
		space = " ";
	}
	if (bucket[K2_LATENCY_LAST])
		length += sysfs_emit_at(page, length, "%sinf:%llu", space, bucket[K2_LATENCY_LAST]);
	return length + sysfs_emit_at(page, length, "\n");
}
