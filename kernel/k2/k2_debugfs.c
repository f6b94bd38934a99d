// SPDX-License-Identifier: GPL-2.0-only
/* debugfs, block/DEVICE/sched/: queued requests, requests in flight, and counters. */
#include <linux/seq_file.h>

#include "k2.h"

#include "../compat/elevator_files.h"

/* Called with k2_files_lock(). NULL: k2 was replaced, and its files will be removed. */
static struct k2_data *k2_of(struct request_queue *q)
{
	struct elevator_queue *eq = q->elevator;

	return eq && eq->type == &k2_elevator ? eq->elevator_data : NULL;
}

static int k2_file_show(struct request_queue *q, struct seq_file *m,
			void (*show)(struct k2_data *k2, struct seq_file *m))
{
	struct k2_data *k2;

	k2_files_lock(q);
	k2 = k2_of(q);
	if (k2)
		show(k2, m);
	k2_files_unlock(q);
	return k2 ? 0 : -ENODEV;
}

/* The block layer does not tell show() the attribute's name, so each has a function of its own. */
#define K2_FILE(name)                                                                              \
	static int k2_##name##_show(void *data, struct seq_file *m)                                \
	{                                                                                          \
		return k2_file_show(data, m, k2_show_##name);                                      \
	}

static void k2_show_inflight(struct k2_data *k2, struct seq_file *m)
{
	unsigned int rt, background;

	spin_lock_irq(&k2->lock);
	rt = k2->policy.inflight[K2_CLASS_RT];
	background = k2->policy.inflight[K2_CLASS_BACKGROUND];
	spin_unlock_irq(&k2->lock);

	seq_printf(m, "rt %u\nbackground %u\n", rt, background);
}

/* Counts of declared tasks that belong to no particular task. */
static void k2_show_declared(struct k2_data *k2, struct seq_file *m)
{
	const struct k2_declared *declared = &k2->guard->ahead.declared;
	u64 forced, overruns, overrun_ns_max;

	spin_lock_irq(&k2->lock);
	forced = declared->forced;
	overruns = declared->overruns;
	overrun_ns_max = declared->overrun_ns_max;
	spin_unlock_irq(&k2->lock);

	seq_printf(m, "declared forced %llu\ndeclared overruns %llu\n", forced, overruns);
	seq_printf(m, "declared overrun_ns_max %llu\n", overrun_ns_max);
}

static void k2_show_counters(struct k2_data *k2, struct seq_file *m)
{
	static const char *const class_names[K2_CLASSES] = {"rt", "background"};
	u64 background_wait_ns, early, anticipated;
	struct k2_policy policy;
	unsigned int cls;

	spin_lock_irq(&k2->lock);
	policy = k2->policy;
	background_wait_ns = k2_policy_background_wait_ns(&policy, ktime_get_ns());
	early = k2->guard->ahead.streams.early_count;
	anticipated = k2->guard->ahead.anticipation.count;
	spin_unlock_irq(&k2->lock);

	for (cls = 0; cls < K2_CLASSES; cls++) {
		const struct k2_counts *counts = &policy.counts[cls];
		const char *name = class_names[cls];

		seq_printf(m, "%s inserted %llu\n", name, counts->inserted);
		seq_printf(m, "%s merged %llu\n", name, counts->merged);
		seq_printf(m, "%s dispatched %llu\n", name, counts->dispatched);
		seq_printf(m, "%s split %llu\n", name, counts->back[K2_BACK_REST]);
		seq_printf(m, "%s retried %llu\n", name, counts->back[K2_BACK_RETRY]);
		seq_printf(m, "%s deferred %llu\n", name, counts->back[K2_BACK_DEFERRED]);
		seq_printf(m, "%s completed %llu\n", name, counts->completed);
	}
	seq_printf(m, "rt blocked_by_background %llu\n", policy.rt_blocked_count);
	seq_printf(m, "rt blocked_by_background_ns_max %llu\n", policy.rt_blocked_ns_max);
	seq_printf(m, "rt blocked_by_background_over %llu\n", policy.rt_blocked_over_count);
	seq_printf(m, "rt blocked_unguarded %llu\n", policy.rt_unguarded_count);
	seq_printf(m, "rt blocked_unguarded_ns_max %llu\n", policy.rt_unguarded_ns_max);
	seq_printf(m, "rt early %llu\nrt anticipated %llu\n", early, anticipated);
	seq_printf(m, "background forced %llu\n", policy.background_forced_count);
	seq_printf(m, "background wait_ns_max %llu\n", background_wait_ns);
	k2_show_declared(k2, m);
}

static void k2_show_tags(struct k2_data *k2, struct seq_file *m)
{
	/* A reader may see numbers from before and after a change of nr_requests. */
	seq_printf(m, "of each %u\nmetadata %u\nbest-effort %u\nidle %u\n", READ_ONCE(k2->tags[0]),
		   READ_ONCE(k2->tags[K2_GROUP_METADATA]),
		   READ_ONCE(k2->tags[K2_GROUP_BEST_EFFORT]), READ_ONCE(k2->tags[K2_GROUP_IDLE]));
}

static u64 k2_us(u64 ns)
{
	return div_u64(ns, NSEC_PER_USEC);
}

static void k2_show_edge(struct seq_file *m, const char *name, const struct k2_edge *edge)
{
	if (k2_edge_count(edge))
		seq_printf(m, " %s %llu-%llux%u", name, k2_us(k2_edge_shortest(edge) * K2_TIME_NS),
			   k2_us(k2_edge_longest(edge) * K2_TIME_NS), k2_edge_count(edge));
}

/* Shows a process or one of its threads; times in us, relative to @now_ns. */
static void k2_show_stream(struct seq_file *m, const struct k2_streams *streams, unsigned int i,
			   u64 now_ns)
{
	const struct k2_stream *stream = &streams->stream[i];
	const struct k2_pattern *pattern = &stream->pattern;
	struct k2_window next = k2_pattern_next(pattern, now_ns);

	seq_puts(m, stream->process == K2_STREAM_NONE ? "process" : " thread");
	if (stream->key == K2_STREAM_KEY_UNKNOWN)
		seq_puts(m, " unknown");
	else
		seq_printf(m, " %llu", stream->key);
	seq_printf(m, " level %u next %llu", stream->level, k2_us(next.earliest_ns - now_ns));
	if (next.latest_ns)
		seq_printf(m, "-%llu", k2_us(next.latest_ns - now_ns));
	k2_show_edge(m, "gap", &pattern->gap);
	k2_show_edge(m, "pause", &pattern->pause);
	k2_show_edge(m, "bursts", &pattern->span[0]);
	seq_puts(m, "\n");
}

/* Shows when each real-time process is expected, and the limits it was predicted from. */
static void k2_show_streams(struct k2_data *k2, struct seq_file *m)
{
	const struct k2_streams *streams = &k2->guard->ahead.streams;
	unsigned int i, thread;
	u64 now_ns;

	spin_lock_irq(&k2->lock);
	now_ns = ktime_get_ns();
	for (i = 0; i < streams->used; i++) {
		if (!k2_stream_is_of(streams, i, K2_STREAM_NONE))
			continue;
		k2_show_stream(m, streams, i, now_ns);
		for (thread = 0; thread < streams->used; thread++)
			if (k2_stream_is_of(streams, thread, i))
				k2_show_stream(m, streams, thread, now_ns);
	}
	spin_unlock_irq(&k2->lock);
}

/*
 * Shows the delay of one more command by N commands in flight, in percent of their time one by one,
 * for each N that was in flight lately.
 */
static void k2_show_delays(struct k2_data *k2, struct seq_file *m)
{
	struct k2_delay delay;
	unsigned int i;

	spin_lock_irq(&k2->lock);
	delay = k2->guard->ahead.delay;
	spin_unlock_irq(&k2->lock);

	for (i = 1; i < K2_FLIGHTS; i++) {
		if (k2_delay_knows(&delay, i))
			seq_printf(m, "%u %u\n", i,
				   k2_delay_parts(&delay, i) * 100 / K2_DELAY_WHOLE);
	}
}

/* Shows the pace of background writes and the device's rate, in KiB/s. */
static void k2_show_pace(struct k2_data *k2, struct seq_file *m)
{
	struct k2_pace pace;
	u64 now_ns;

	spin_lock_irq(&k2->lock);
	pace = k2->guard->ahead.pace;
	now_ns = ktime_get_ns();
	spin_unlock_irq(&k2->lock);

	seq_printf(m, "pace %llu\ndone %llu\n", pace.rate * 1000ULL >> 10,
		   pace.done * 1000ULL >> 10);
	seq_printf(m, "off_ms %llu\n",
		   pace.off_until_ns > now_ns ? div_u64(pace.off_until_ns - now_ns, NSEC_PER_MSEC)
					      : 0);
}

/* The first request of @queue or of the queues after it. */
static struct list_head *k2_queued_first(struct k2_data *k2, unsigned int queue)
{
	for (; queue < K2_QUEUES; queue++) {
		if (!list_empty(&k2->queues[queue]))
			return k2->queues[queue].next;
	}
	return NULL;
}

static struct list_head *k2_queued_following(struct k2_data *k2, struct list_head *entry)
{
	unsigned int queue = k2_rq(list_entry_rq(entry))->queue;

	if (!list_is_last(entry, &k2->queues[queue]))
		return entry->next;
	return k2_queued_first(k2, queue + 1);
}

static void *k2_queued_start(struct seq_file *m, loff_t *pos) __acquires(&k2->lock)
{
	struct request_queue *q = m->private;
	struct list_head *entry;
	struct k2_data *k2;
	loff_t left = *pos;

	k2_files_lock(q);
	k2 = k2_of(q);
	if (!k2) {
		/* The lock is not taken; this is for sparse, as in k2_queued_stop(). */
		__acquire(&k2->lock);
		return NULL;
	}
	spin_lock_irq(&k2->lock);
	entry = k2_queued_first(k2, 0);
	while (entry && left--)
		entry = k2_queued_following(k2, entry);
	return entry;
}

static void *k2_queued_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct request_queue *q = m->private;

	++*pos;
	return k2_queued_following(k2_of(q), v);
}

static void k2_queued_stop(struct seq_file *m, void *v) __releases(&k2->lock)
{
	struct request_queue *q = m->private;
	struct k2_data *k2 = k2_of(q);

	if (k2)
		spin_unlock_irq(&k2->lock);
	else
		__release(&k2->lock);
	k2_files_unlock(q);
}

static int k2_queued_show(struct seq_file *m, void *v)
{
	struct request *rq = list_entry_rq((struct list_head *)v);

	seq_printf(m, "%s %llu + %u bytes ", k2_queue_name(k2_rq(rq)->queue),
		   (unsigned long long)blk_rq_pos(rq), blk_rq_bytes(rq));
	return __blk_mq_debugfs_rq_show(m, rq);
}

static const struct seq_operations k2_queued_seq_ops = {
	.start = k2_queued_start,
	.next = k2_queued_next,
	.stop = k2_queued_stop,
	.show = k2_queued_show,
};

K2_FILE(inflight)
K2_FILE(counters)
K2_FILE(tags)
K2_FILE(streams)
K2_FILE(delays)
K2_FILE(pace)

const struct blk_mq_debugfs_attr k2_debugfs_attrs[] = {
	{"queued", 0400, .seq_ops = &k2_queued_seq_ops},
	{"inflight", 0400, k2_inflight_show},
	{"counters", 0400, k2_counters_show},
	{"tags", 0400, k2_tags_show},
	{"streams", 0400, k2_streams_show},
	{"delays", 0400, k2_delays_show},
	{"pace", 0400, k2_pace_show},
	{},
};
