// SPDX-License-Identifier: GPL-2.0-only
/*
 * The knobs in queue/iosched/. Each takes effect at the next dispatch. No knob has to run the
 * hardware queues: while inflight_max or real-time delays a request, another is in flight whose
 * completion runs them, or a timer does.
 */
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "k2.h"

/* Parses @count whole numbers at the start of @rest, separated by one space. */
static bool k2_numbers_take(char **rest, unsigned int *value, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		char *word = strsep(rest, " ");

		if (!word || kstrtouint(word, 10, &value[i]))
			return false;
	}
	return true;
}

/* A whole-number knob. @set is called with the lock, and returns whether the value is valid. */
static ssize_t k2_number_store(struct elevator_queue *e, const char *page, size_t length,
			       bool (*set)(struct k2_data *k2, u32 value))
{
	struct k2_data *k2 = e->elevator_data;
	u32 value;
	bool valid;

	if (kstrtou32(page, 10, &value))
		return -EINVAL;

	spin_lock_irq(&k2->lock);
	valid = set(k2, value);
	spin_unlock_irq(&k2->lock);
	return valid ? length : -EINVAL;
}

/* @get is called with the lock, as some values have 64 bits. */
static ssize_t k2_number_show(struct elevator_queue *e, char *page, u32 (*get)(struct k2_data *k2))
{
	struct k2_data *k2 = e->elevator_data;
	u32 value;

	spin_lock_irq(&k2->lock);
	value = get(k2);
	spin_unlock_irq(&k2->lock);
	return sysfs_emit(page, "%u\n", value);
}

static u32 k2_inflight_max_get(struct k2_data *k2)
{
	return k2->policy.inflight_max;
}

static bool k2_inflight_max_set(struct k2_data *k2, u32 inflight_max)
{
	return k2_policy_set_inflight_max(&k2->policy, inflight_max);
}

static u32 k2_split_kib_get(struct k2_data *k2)
{
	return k2->policy.split_bytes >> 10;
}

static bool k2_split_kib_set(struct k2_data *k2, u32 split_kib)
{
	return k2_policy_set_split_kib(&k2->policy, split_kib, queue_logical_block_size(k2->q));
}

static u32 k2_background_wait_ms_max_get(struct k2_data *k2)
{
	return k2->policy.background_wait_ms_max;
}

static bool k2_background_wait_ms_max_set(struct k2_data *k2, u32 wait_ms)
{
	return k2_policy_set_background_wait_ms_max(&k2->policy, wait_ms);
}

static u32 k2_rt_block_us_get(struct k2_data *k2)
{
	return div_u64(k2->guard->ahead.rt_block_ns, NSEC_PER_USEC);
}

static bool k2_rt_block_us_set(struct k2_data *k2, u32 rt_block_us)
{
	return k2_guard_set_rt_block_us(k2, rt_block_us);
}

static u32 k2_rt_idle_ms_get(struct k2_data *k2)
{
	return div_u64(k2->guard->ahead.rt_idle_ns, NSEC_PER_MSEC);
}

static bool k2_rt_idle_ms_set(struct k2_data *k2, u32 rt_idle_ms)
{
	return k2_lookahead_set_rt_idle_ms(&k2->guard->ahead, rt_idle_ms);
}

static u32 k2_rt_strict_get(struct k2_data *k2)
{
	return k2->guard->ahead.is_strict;
}

static bool k2_rt_strict_set(struct k2_data *k2, u32 rt_strict)
{
	if (rt_strict > 1)
		return false;
	k2->guard->ahead.is_strict = rt_strict;
	return true;
}

/* The block layer does not tell show() the attribute's name, so each has functions of its own. */
#define K2_NUMBER(name)                                                                            \
	static ssize_t k2_##name##_show(struct elevator_queue *e, char *page)                      \
	{                                                                                          \
		return k2_number_show(e, page, k2_##name##_get);                                   \
	}                                                                                          \
	static ssize_t k2_##name##_store(struct elevator_queue *e, const char *page,               \
					 size_t length)                                            \
	{                                                                                          \
		return k2_number_store(e, page, length, k2_##name##_set);                          \
	}

K2_NUMBER(inflight_max)
K2_NUMBER(split_kib)
K2_NUMBER(background_wait_ms_max)
K2_NUMBER(rt_block_us)
K2_NUMBER(rt_idle_ms)
K2_NUMBER(rt_strict)

/* Waits of real-time for background, in ns. */
static ssize_t k2_rt_blocked_show(struct elevator_queue *e, char *page)
{
	struct k2_data *k2 = e->elevator_data;
	struct k2_policy policy;
	ssize_t length;

	spin_lock_irq(&k2->lock);
	policy = k2->policy;
	spin_unlock_irq(&k2->lock);
	length = sysfs_emit(page, "count %llu over %llu max_ns %llu", policy.rt_blocked_count,
			    policy.rt_blocked_over_count, policy.rt_blocked_ns_max);
	return length + sysfs_emit_at(page, length, " unguarded %llu max_ns %llu sum_ns %llu\n",
				      policy.rt_unguarded_count, policy.rt_unguarded_ns_max,
				      policy.rt_blocked_ns_sum);
}

/* Real-time requests that exceeded the bound, by cause; see k2_excess.h. */
static ssize_t k2_rt_excess_show(struct elevator_queue *e, char *page)
{
	static const char *const names[K2_EXCESS_CAUSES] = {
		[K2_EXCESS_STALL] = "stall",
		[K2_EXCESS_LANE] = "lane",
		[K2_EXCESS_UNGUARDED] = "unguarded",
		[K2_EXCESS_EARLY] = "early",
		[K2_EXCESS_BACKGROUND] = "background",
		[K2_EXCESS_LOWER] = "lower",
		[K2_EXCESS_RT] = "rt",
		[K2_EXCESS_DEVICE] = "device",
	};
	struct k2_data *k2 = e->elevator_data;
	struct k2_excess excess;
	ssize_t length = 0;
	unsigned int cause;

	spin_lock_irq(&k2->lock);
	excess = k2->guard->ahead.excess;
	spin_unlock_irq(&k2->lock);
	for (cause = 0; cause < K2_EXCESS_CAUSES; cause++)
		length +=
			sysfs_emit_at(page, length, "%s %llu ", names[cause], excess.count[cause]);
	return length + sysfs_emit_at(page, length, "max_ns %llu\n", excess.ns_max);
}

static ssize_t k2_lane_blocked_show(struct elevator_queue *e, char *page)
{
	return k2_lanes_show(e->elevator_data, page);
}

static ssize_t k2_emit_counts(char *page, ssize_t at, const char *name,
			      const struct k2_counts *counts)
{
	ssize_t length;

	length = sysfs_emit_at(page, at, "%s inserted %llu merged %llu dispatched %llu", name,
			       counts->inserted, counts->merged, counts->dispatched);
	return length + sysfs_emit_at(page, at + length,
				      " split %llu retried %llu deferred %llu completed %llu\n",
				      counts->back[K2_BACK_REST], counts->back[K2_BACK_RETRY],
				      counts->back[K2_BACK_DEFERRED], counts->completed);
}

/* A line per class with its counts, see k2_policy.h. */
static ssize_t k2_counts_show(struct elevator_queue *e, char *page)
{
	struct k2_data *k2 = e->elevator_data;
	struct k2_counts counts[K2_CLASSES];
	ssize_t length;

	spin_lock_irq(&k2->lock);
	memcpy(counts, k2->policy.counts, sizeof(counts));
	spin_unlock_irq(&k2->lock);
	length = k2_emit_counts(page, 0, "rt", &counts[K2_CLASS_RT]);
	length += k2_emit_counts(page, length, "background", &counts[K2_CLASS_BACKGROUND]);
	return length;
}

/* The deadline of each level; 0: it has none. */
static ssize_t k2_rt_deadline_us_show(struct elevator_queue *e, char *page)
{
	struct k2_data *k2 = e->elevator_data;
	ssize_t length = 0;
	unsigned int level;

	for (level = 0; level < K2_RT_LEVELS; level++) {
		/* A change at this moment may be half visible. */
		u64 ns = data_race(k2->deadline_ns[level]);

		length += sysfs_emit_at(page, length, "%s%llu", level ? " " : "",
					ns == K2_DEADLINE_NONE ? 0 : div_u64(ns, NSEC_PER_USEC));
	}
	return length + sysfs_emit_at(page, length, "\n");
}

/* Takes all eight, in the form that is shown: "0 0 0 0 5000 0 0 0". */
static ssize_t k2_rt_deadline_us_store(struct elevator_queue *e, const char *page, size_t length)
{
	struct k2_data *k2 = e->elevator_data;
	unsigned int value[K2_RT_LEVELS], level;
	char text[96], *rest = text;

	if (strscpy(text, page, sizeof(text)) < 0 || !k2_numbers_take(&rest, value, K2_RT_LEVELS) ||
	    rest)
		return -EINVAL;
	for (level = 0; level < K2_RT_LEVELS; level++) {
		s64 ns = value[level] ? (s64)value[level] * NSEC_PER_USEC : K2_DEADLINE_NONE;

		/* See k2_stats_completed(). */
		data_race(k2->deadline_ns[level] = ns);
	}
	return length;
}

#define K2_LATENCY(name, group)                                                                    \
	static ssize_t k2_latency_##name##_show(struct elevator_queue *e, char *page)              \
	{                                                                                          \
		return k2_stats_show(e->elevator_data, group, page);                               \
	}

K2_LATENCY(rt0, 0)
K2_LATENCY(rt1, 1)
K2_LATENCY(rt2, 2)
K2_LATENCY(rt3, 3)
K2_LATENCY(rt4, 4)
K2_LATENCY(rt5, 5)
K2_LATENCY(rt6, 6)
K2_LATENCY(rt7, 7)
K2_LATENCY(metadata, K2_GROUP_METADATA)
K2_LATENCY(best_effort, K2_GROUP_BEST_EFFORT)
K2_LATENCY(idle, K2_GROUP_IDLE)

static const char *const k2_op_names[K2_DEVICE_OPS] = {"read", "write"};

/* A line per operation: the smallest bound, reserve, stalls, then SIZE_KIB:TIME_US. */
static ssize_t k2_device_model_show(struct elevator_queue *e, char *page)
{
	struct k2_data *k2 = e->elevator_data;
	struct k2_device device;
	ssize_t length = 0;
	unsigned int op, i;

	spin_lock_irq(&k2->lock);
	device = k2->guard->ahead.device;
	spin_unlock_irq(&k2->lock);

	for (op = 0; op < K2_DEVICE_OPS; op++) {
		u64 reserve_ns = k2_device_reserve_ns(&device, op);

		u64 least_ns = k2_device_time_ns(&device, op, K2_PIECE_MIN);

		length += sysfs_emit_at(page, length,
					"%s least:%llu reserve:%llu stalls:%llu stall_max:%llu",
					k2_op_names[op], div_u64(least_ns, NSEC_PER_USEC),
					div_u64(reserve_ns, NSEC_PER_USEC), device.op[op].stalls,
					div_u64(device.op[op].stall_ns_max, NSEC_PER_USEC));
		for (i = 0; device.op[op].is_known && i < K2_SIZES; i++)
			length += sysfs_emit_at(page, length, " %u:%lu", K2_PIECE_MIN >> 10 << i,
						device.op[op].line_ns[i] / NSEC_PER_USEC);
		length += sysfs_emit_at(page, length, "\n");
	}
	return length;
}

struct k2_believed {
	int op;
	unsigned int value[3]; /* KiB, us, us */
};

static bool k2_believed_take(char **rest, struct k2_believed *believed)
{
	unsigned int *value = believed->value;

	believed->op = match_string(k2_op_names, K2_DEVICE_OPS, strsep(rest, " "));
	return believed->op >= 0 && k2_numbers_take(rest, value, ARRAY_SIZE(believed->value)) &&
	       value[0] && value[0] <= K2_SPLIT_KIB_LIMIT && value[1];
}

/*
 * Takes "read 512 5870 200": a read of 512 KiB takes 5870 us, and at most 200 us more. Up to four
 * of these are valid: for a small and a large command of each operation.
 */
static ssize_t k2_device_model_store(struct elevator_queue *e, const char *page, size_t length)
{
	struct k2_data *k2 = e->elevator_data;
	char text[160], *rest = text;
	struct k2_believed all[4];
	unsigned int count = 0, i;

	if (strscpy(text, page, sizeof(text)) < 0)
		return -EINVAL;
	do {
		if (count == ARRAY_SIZE(all) || !k2_believed_take(&rest, &all[count++]))
			return -EINVAL;
	} while (rest);

	spin_lock_irq(&k2->lock);
	for (i = 0; i < count; i++)
		k2_device_believe(&k2->guard->ahead.device, all[i].op, all[i].value[0] << 10,
				  (u64)all[i].value[1] * NSEC_PER_USEC,
				  (u64)all[i].value[2] * NSEC_PER_USEC);
	spin_unlock_irq(&k2->lock);
	return length;
}

/* The longest time of a command without data, and of each KiB, in ns; 0: unknown. */
static ssize_t k2_device_limits_show(struct elevator_queue *e, char *page)
{
	struct k2_data *k2 = e->elevator_data;
	struct k2_limit limit[K2_DEVICE_OPS];
	ssize_t length = 0;
	unsigned int op;

	spin_lock_irq(&k2->lock);
	memcpy(limit, k2->guard->ahead.declared.limit, sizeof(limit));
	spin_unlock_irq(&k2->lock);
	for (op = 0; op < K2_DEVICE_OPS; op++)
		length += sysfs_emit_at(page, length, "%s%s %u %u", op ? " " : "", k2_op_names[op],
					limit[op].base_ns, limit[op].per_kib_ns);
	return length + sysfs_emit_at(page, length, "\n");
}

static bool k2_limits_take(char *text, struct k2_limit *limit)
{
	unsigned int op, value[2];

	for (op = 0; op < K2_DEVICE_OPS; op++) {
		const char *name = strsep(&text, " ");

		if (!name || strcmp(name, k2_op_names[op]) || !k2_numbers_take(&text, value, 2) ||
		    (value[1] && !value[0]))
			return false;
		limit[op] = (struct k2_limit){value[0], value[1]};
	}
	return !text;
}

/* Takes both, in the form that is shown: "read 243000 11400 write 300000 80000". */
static ssize_t k2_device_limits_store(struct elevator_queue *e, const char *page, size_t length)
{
	struct k2_data *k2 = e->elevator_data;
	struct k2_limit limit[K2_DEVICE_OPS];
	char text[96];

	if (strscpy(text, page, sizeof(text)) < 0 || !k2_limits_take(strim(text), limit))
		return -EINVAL;
	if (!k2_guard_set_limits(k2, limit))
		return -ENOMEM;
	k2_tasks_arm(k2);
	return length;
}

/* A line per task, in the form of /dev/k2. */
static ssize_t k2_rt_declared_show(struct elevator_queue *e, char *page)
{
	return k2_tasks_print(e->elevator_data, page, PAGE_SIZE);
}

#define K2_LATENCY_ATTR(name) __ATTR(latency_##name, 0444, k2_latency_##name##_show, NULL)

struct elv_fs_entry k2_sysfs_attrs[] = {
	__ATTR(rt_block_us, 0644, k2_rt_block_us_show, k2_rt_block_us_store),
	__ATTR(rt_idle_ms, 0644, k2_rt_idle_ms_show, k2_rt_idle_ms_store),
	__ATTR(rt_strict, 0644, k2_rt_strict_show, k2_rt_strict_store),
	__ATTR(rt_blocked, 0444, k2_rt_blocked_show, NULL),
	__ATTR(rt_excess, 0444, k2_rt_excess_show, NULL),
	__ATTR(lane_blocked, 0444, k2_lane_blocked_show, NULL),
	__ATTR(device_model, 0644, k2_device_model_show, k2_device_model_store),
	__ATTR(device_limits, 0644, k2_device_limits_show, k2_device_limits_store),
	__ATTR(rt_declared, 0444, k2_rt_declared_show, NULL),
	__ATTR(inflight_max, 0644, k2_inflight_max_show, k2_inflight_max_store),
	__ATTR(split_kib, 0644, k2_split_kib_show, k2_split_kib_store),
	__ATTR(background_wait_ms_max, 0644, k2_background_wait_ms_max_show,
	       k2_background_wait_ms_max_store),
	__ATTR(rt_deadline_us, 0644, k2_rt_deadline_us_show, k2_rt_deadline_us_store),
	__ATTR(counts, 0444, k2_counts_show, NULL),
	K2_LATENCY_ATTR(rt0),
	K2_LATENCY_ATTR(rt1),
	K2_LATENCY_ATTR(rt2),
	K2_LATENCY_ATTR(rt3),
	K2_LATENCY_ATTR(rt4),
	K2_LATENCY_ATTR(rt5),
	K2_LATENCY_ATTR(rt6),
	K2_LATENCY_ATTR(rt7),
	K2_LATENCY_ATTR(metadata),
	K2_LATENCY_ATTR(best_effort),
	K2_LATENCY_ATTR(idle),
	__ATTR_NULL,
};
