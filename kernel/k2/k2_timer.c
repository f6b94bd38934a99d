// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the queues when held background has waited long enough, as no other event does so then. The
 * idle class waits after other background (k2_background.h). All background waits for a real-time
 * request that comes soon (k2_anticipation.h) or for the pace of writes (k2_pace.h).
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>

#include "k2.h"

#include "../compat/hrtimer_setup.h"

/* Runs in hard interrupt context. */
static enum hrtimer_restart k2_timer_fired(struct hrtimer *timer)
{
	struct k2_data *k2 = container_of(timer, struct k2_data, timer);
	unsigned long flags;
	u64 now_ns;
	bool run;

	spin_lock_irqsave(&k2->lock, flags);
	now_ns = ktime_get_ns();
	k2->timer_ns = 0;
	k2_timer_set(k2, k2_policy_look(&k2->policy, now_ns));
	k2_timer_set(k2, k2_guard_look(k2->guard, now_ns));
	if (k2_has_lanes(k2))
		k2_lanes_look(k2);
	run = k2_may_dispatch(k2);
	spin_unlock_irqrestore(&k2->lock, flags);

	if (run)
		blk_mq_run_hw_queues(k2->q, true);
	return HRTIMER_NORESTART;
}

void k2_timer_init(struct k2_data *k2)
{
	compat_hrtimer_setup(&k2->timer, k2_timer_fired, HRTIMER_MODE_ABS);
}

/* Fires at @at_ns, or earlier if it is set already. 0: ignored. Called with the lock. */
void k2_timer_set(struct k2_data *k2, u64 at_ns)
{
	lockdep_assert_held(&k2->lock);

	if (!at_ns || (k2->timer_ns && k2->timer_ns <= at_ns))
		return;
	k2->timer_ns = at_ns;
	hrtimer_start(&k2->timer, ns_to_ktime(at_ns), HRTIMER_MODE_ABS);
}

/* Called with the queue frozen. */
void k2_timer_exit(struct k2_data *k2)
{
	hrtimer_cancel(&k2->timer);
}
