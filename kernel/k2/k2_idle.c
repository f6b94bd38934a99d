// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the queues again when the idle class has given way to other background for long enough:
 * nothing else happens then. The policy says when; see k2_background.h.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>

#include "k2.h"

/* In hard interrupt context. */
static enum hrtimer_restart k2_idle_look(struct hrtimer *timer)
{
	struct k2_data *k2 = container_of(timer, struct k2_data, idle_timer);
	unsigned long flags;
	u64 again_ns;

	spin_lock_irqsave(&k2->lock, flags);
	again_ns = k2_policy_look(&k2->policy, ktime_get_ns());
	k2->idle_is_timed = again_ns;
	if (again_ns)
		hrtimer_set_expires(timer, ns_to_ktime(again_ns));
	spin_unlock_irqrestore(&k2->lock, flags);

	if (again_ns)
		return HRTIMER_RESTART;
	blk_mq_run_hw_queues(k2->q, true);
	return HRTIMER_NORESTART;
}

void k2_idle_init(struct k2_data *k2)
{
	hrtimer_init(&k2->idle_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	k2->idle_timer.function = k2_idle_look;
}

/*
 * Called with the lock held when a wait has begun or ended. The timer is not set anew while it
 * runs: then it looks, and finds that it has to look again.
 */
void k2_idle_note(struct k2_data *k2, u64 now_ns)
{
	lockdep_assert_held(&k2->lock);

	if (k2->idle_is_timed || !k2_policy_idle_gave_way(&k2->policy))
		return;
	k2->idle_is_timed = true;
	hrtimer_start(&k2->idle_timer, ns_to_ktime(k2_policy_look(&k2->policy, now_ns)),
		      HRTIMER_MODE_ABS);
}

/* Called with the queue frozen. */
void k2_idle_exit(struct k2_data *k2)
{
	hrtimer_cancel(&k2->idle_timer);
}
