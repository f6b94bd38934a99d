// SPDX-License-Identifier: GPL-2.0-only
/*
 * The knobs in queue/iosched/. All take effect at the next dispatch. None needs a run of the
 * hardware queues: whenever inflight_max or real-time holds back a request, one is in flight whose
 * completion runs them.
 */
#include <linux/kstrtox.h>
#include <linux/sysfs.h>

#include "k2.h"

static ssize_t k2_inflight_max_show(struct elevator_queue *e, char *page)
{
	struct k2_data *k2 = e->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(k2->policy.inflight_max));
}

static ssize_t k2_inflight_max_store(struct elevator_queue *e, const char *page, size_t length)
{
	struct k2_data *k2 = e->elevator_data;
	unsigned int inflight_max;
	bool valid;

	if (kstrtouint(page, 10, &inflight_max))
		return -EINVAL;

	spin_lock_irq(&k2->lock);
	valid = k2_policy_set_inflight_max(&k2->policy, inflight_max);
	spin_unlock_irq(&k2->lock);
	return valid ? length : -EINVAL;
}

static ssize_t k2_split_kib_show(struct elevator_queue *e, char *page)
{
	struct k2_data *k2 = e->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(k2->policy.split_bytes) >> 10);
}

static ssize_t k2_split_kib_store(struct elevator_queue *e, const char *page, size_t length)
{
	struct k2_data *k2 = e->elevator_data;
	unsigned int split_kib;
	bool valid;

	if (kstrtouint(page, 10, &split_kib))
		return -EINVAL;

	spin_lock_irq(&k2->lock);
	valid = k2_policy_set_split_kib(&k2->policy, split_kib, queue_logical_block_size(k2->q));
	spin_unlock_irq(&k2->lock);
	return valid ? length : -EINVAL;
}

static ssize_t k2_background_wait_ms_max_show(struct elevator_queue *e, char *page)
{
	struct k2_data *k2 = e->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(k2->policy.background_wait_ms_max));
}

static ssize_t k2_background_wait_ms_max_store(struct elevator_queue *e, const char *page,
					       size_t length)
{
	struct k2_data *k2 = e->elevator_data;
	unsigned int wait_ms;
	bool valid;

	if (kstrtouint(page, 10, &wait_ms))
		return -EINVAL;

	spin_lock_irq(&k2->lock);
	valid = k2_policy_set_background_wait_ms_max(&k2->policy, wait_ms);
	spin_unlock_irq(&k2->lock);
	return valid ? length : -EINVAL;
}

struct elv_fs_entry k2_sysfs_attrs[] = {
	__ATTR(inflight_max, 0644, k2_inflight_max_show, k2_inflight_max_store),
	__ATTR(split_kib, 0644, k2_split_kib_show, k2_split_kib_store),
	__ATTR(background_wait_ms_max, 0644, k2_background_wait_ms_max_show,
	       k2_background_wait_ms_max_store),
	__ATTR_NULL,
};
