// SPDX-License-Identifier: GPL-2.0-only
/*
 * Orders the commands of chario's lanes among the requests of the queue, see k2_lane.h.
 *
 * A lane is in the list from its first ask() until it leaves. Meanwhile it holds q_usage_counter,
 * which keeps the scheduler and this module in place. A lane gets the card only while no request of
 * the queue is in flight.
 *
 * A lane whose thread gets no CPU would delay everything behind it. Therefore an offer that it does
 * not take lapses: the next request is dispatched, and the lane is offered the card after that.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/percpu-refcount.h>
#include <linux/sysfs.h>

#include "k2.h"

#define K2_LANE_OFFER_NS (1 * NSEC_PER_MSEC)

static_assert(K2_LANE_BACKGROUND == K2_RT_LEVELS);

void k2_lanes_begin(struct k2_data *k2)
{
	INIT_LIST_HEAD(&k2->lanes.list);
}

void k2_lanes_end(struct k2_data *k2)
{
	WARN_ON(!list_empty(&k2->lanes.list));
}

static bool k2_lane_has_lapsed(const struct k2_lane *lane, u64 now_ns)
{
	return lane->offered_ns && now_ns - lane->offered_ns >= K2_LANE_OFFER_NS;
}

/* The waiting lane to serve first; NULL: no lane waits. */
static struct k2_lane *k2_lanes_first(struct k2_data *k2, u64 now_ns)
{
	struct k2_lane *lane, *first = NULL;

	list_for_each_entry(lane, &k2->lanes.list, entry) {
		if (!lane->waits || k2_lane_has_lapsed(lane, now_ns))
			continue;
		if (!first || lane->level < first->level ||
		    (lane->level == first->level && lane->since_ns < first->since_ns))
			first = lane;
	}
	return first;
}

/* Is @lane served before @queue, which the policy would dispatch from? */
static bool k2_lane_is_before(struct k2_data *k2, const struct k2_lane *lane, unsigned int queue,
			      u64 now_ns)
{
	struct request *rq;

	if (queue == K2_QUEUE_NONE)
		return true;
	if (queue >= K2_RT_LEVELS && k2_policy_background_is_due(&k2->policy, now_ns))
		return false;
	rq = list_first_entry(&k2->queues[queue], struct request, queuelist);
	return k2_policy_lane_is_before(lane->level, lane->since_ns, queue, rq->start_time_ns);
}

/* Must @queue wait for a lane? Called with the lock, if there are lanes. */
bool k2_lanes_hold(struct k2_data *k2, unsigned int queue)
{
	u64 now_ns = ktime_get_ns();
	struct k2_lane *first = k2_lanes_first(k2, now_ns);

	return k2->lanes.on_card || (first && k2_lane_is_before(k2, first, queue, now_ns));
}

/* The card is free for @lane, which may ask for it again. */
static void k2_lane_offer(struct k2_data *k2, struct k2_lane *lane, u64 now_ns)
{
	if (lane->offered_ns)
		return;
	lane->offered_ns = now_ns;
	k2_timer_set(k2, now_ns + K2_LANE_OFFER_NS);
	lane->may_go(lane);
}

/* Called with the lock after each change, if there are lanes. */
void k2_lanes_look(struct k2_data *k2)
{
	struct k2_lanes *lanes = &k2->lanes;
	bool is_free = !lanes->on_card && !k2_policy_inflight(&k2->policy);
	u64 now_ns = ktime_get_ns();
	struct k2_lane *lane;

	lockdep_assert_held(&k2->lock);

	if (!is_free)
		list_for_each_entry(lane, &lanes->list, entry)
			lane->offered_ns = 0;
	lane = k2_lanes_first(k2, now_ns);
	if (lane && !k2_lane_is_before(k2, lane, k2_policy_next(&k2->policy, now_ns), now_ns))
		lane = NULL;
	lanes->is_holding = lanes->on_card || lane;
	if (is_free && lane)
		k2_lane_offer(k2, lane, now_ns);
}

/* A request of @queue arrives while a lane has the card. */
void k2_lanes_arrival(struct k2_data *k2, unsigned int queue)
{
	struct k2_lanes *lanes = &k2->lanes;

	WRITE_ONCE(lanes->on_card->is_wanted, true);
	if (queue >= K2_RT_LEVELS || queue >= lanes->on_card->level ||
	    lanes->blocked_since_ns[queue])
		return;
	lanes->blocked_since_ns[queue] = ktime_get_ns();
}

/* The card has a command of @lane, whose time is unknown; declared tasks may wait for it. */
static void k2_lane_begins(struct k2_data *k2, const struct k2_lane *lane, u64 now_ns)
{
	struct k2_declared *declared = &k2->guard->ahead.declared;

	k2->lanes.is_counted = declared->task;
	if (k2->lanes.is_counted)
		k2_declared_untimed(declared, lane->level, now_ns);
}

/* The command of the lane has ended, and with it all waits for it. */
static void k2_lane_ends(struct k2_data *k2, u64 now_ns)
{
	struct k2_lanes *lanes = &k2->lanes;
	unsigned int level;

	if (lanes->is_counted) {
		lanes->is_counted = false;
		k2_declared_untimed_done(&k2->guard->ahead.declared, now_ns);
		k2_tasks_wake(k2);
	}

	for (level = 0; level < K2_RT_LEVELS; level++) {
		struct k2_lane_blocked *blocked = &lanes->blocked[level];
		u64 ns = now_ns - lanes->blocked_since_ns[level];

		if (!lanes->blocked_since_ns[level])
			continue;
		lanes->blocked_since_ns[level] = 0;
		blocked->count++;
		blocked->ns_sum += ns;
		blocked->ns_max = max(blocked->ns_max, ns);
	}
}

static bool k2_lane_takes(struct k2_data *k2, struct k2_lane *lane, u64 now_ns)
{
	struct k2_lanes *lanes = &k2->lanes;

	if ((lanes->on_card && lanes->on_card != lane) || k2_policy_inflight(&k2->policy))
		return false;
	if (k2_lanes_first(k2, now_ns) != lane)
		return false;
	if (!k2_lane_is_before(k2, lane, k2_policy_next(&k2->policy, now_ns), now_ns))
		return false;
	k2_lane_ends(k2, now_ns);
	k2_lane_begins(k2, lane, now_ns);
	lanes->on_card = lane;
	lane->waits = false;
	WRITE_ONCE(lane->is_wanted, k2->policy.queues_waiting);
	return true;
}

/* Ends each change of the lanes. Returns whether to run the hardware queues. */
static bool k2_lanes_changed(struct k2_data *k2)
{
	struct k2_lane *lane;
	bool run;

	k2->policy.lane_is_rt = false;
	list_for_each_entry(lane, &k2->lanes.list, entry)
		k2->policy.lane_is_rt |= lane->level < K2_RT_LEVELS;
	k2->lanes.is_holding = false;
	if (!list_empty(&k2->lanes.list))
		k2_lanes_look(k2);
	k2_note_waits(k2);
	run = k2->has_refused && k2_may_dispatch(k2);
	if (run)
		k2->has_refused = false;
	return run;
}

/* Called with q_usage_counter held. NULL: the queue has another scheduler or none. */
static struct k2_data *k2_of_queue(struct request_queue *q)
{
	struct elevator_queue *eq = q->elevator;

	return eq && eq->type == &k2_elevator ? eq->elevator_data : NULL;
}

/* Returns K2_LANE_WAIT if the lane is now in the list. */
static enum k2_lane_answer k2_lane_enter(struct k2_lane *lane)
{
	struct request_queue *q = lane->queue;

	if (!percpu_ref_tryget_live(&q->q_usage_counter))
		return K2_LANE_FROZEN;
	lane->k2 = k2_of_queue(q);
	if (!lane->k2) {
		percpu_ref_put(&q->q_usage_counter);
		return K2_LANE_NO_K2;
	}
	spin_lock_irq(&lane->k2->lock);
	lane->waits = false;
	list_add_tail(&lane->entry, &lane->k2->lanes.list);
	spin_unlock_irq(&lane->k2->lock);
	return K2_LANE_WAIT;
}

static enum k2_lane_answer k2_lane_ask(struct k2_lane *lane, u8 level, u64 since_ns)
{
	enum k2_lane_answer entered = lane->k2 ? K2_LANE_WAIT : k2_lane_enter(lane);
	struct k2_data *k2 = lane->k2;
	bool takes, run;

	if (entered != K2_LANE_WAIT)
		return entered;
	spin_lock_irq(&k2->lock);
	lane->level = level;
	lane->since_ns = since_ns;
	lane->waits = true;
	lane->offered_ns = 0;
	takes = k2_lane_takes(k2, lane, ktime_get_ns());
	run = k2_lanes_changed(k2);
	spin_unlock_irq(&k2->lock);
	if (run)
		blk_mq_run_hw_queues(lane->queue, true);
	return takes ? K2_LANE_GO : K2_LANE_WAIT;
}

static void k2_lane_give(struct k2_lane *lane, bool waits)
{
	struct k2_data *k2 = lane->k2;
	bool run;

	if (!k2)
		return;
	spin_lock_irq(&k2->lock);
	if (k2->lanes.on_card == lane) {
		k2->lanes.on_card = NULL;
		k2_lane_ends(k2, ktime_get_ns());
	}
	lane->waits = waits;
	if (!waits)
		list_del(&lane->entry);
	run = k2_lanes_changed(k2);
	spin_unlock_irq(&k2->lock);
	if (run)
		blk_mq_run_hw_queues(lane->queue, true);
	if (waits)
		return;
	lane->k2 = NULL;
	percpu_ref_put(&lane->queue->q_usage_counter);
}

const struct k2_lane_order k2_lane_order = {.ask = k2_lane_ask, .give = k2_lane_give};
EXPORT_SYMBOL_GPL(k2_lane_order);

/* Prints a line per level: waits of its requests for lane commands of lower levels. */
ssize_t k2_lanes_show(struct k2_data *k2, char *page)
{
	struct k2_lane_blocked blocked[K2_RT_LEVELS];
	ssize_t length = 0;
	unsigned int level;

	spin_lock_irq(&k2->lock);
	memcpy(blocked, k2->lanes.blocked, sizeof(blocked));
	spin_unlock_irq(&k2->lock);
	for (level = 0; level < K2_RT_LEVELS; level++)
		length += sysfs_emit_at(page, length, "rt%u count %llu max_ns %llu sum_ns %llu\n",
					level, blocked[level].count, blocked[level].ns_max,
					blocked[level].ns_sum);
	return length;
}
