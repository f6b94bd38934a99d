// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the next operation for the card: one at a time, by level, then in order of arrival.
 *
 * No caller owns the card while others wait. A queued operation is complete, so any caller that is
 * awake starts the best one, even another's (advance()), and checks answers that need process
 * context. Thus a background task that gets no CPU delays nobody. The host's completion itself
 * finishes a successful read, and wakes a caller that can continue.
 *
 * A real-time call of several operations keeps its place between them, up to a chunk. Background
 * queues again at the end after each.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "chario.h"

void chario_queue_init(struct chario_queue *queue)
{
	int level;

	spin_lock_init(&queue->lock);
	for (level = 0; level < CHARIO_LEVELS; level++)
		INIT_LIST_HEAD(&queue->waiting[level]);
	queue->asked = CHARIO_LEVELS;
	init_waitqueue_head(&queue->drained);
	rt_mutex_init(&queue->turn);
}

/* The operation to start next; NULL also while a real-time call prepares its next one. */
static struct chario_op *first_ready(struct chario_queue *queue)
{
	struct chario_op *op;
	int level;

	lockdep_assert_held(&queue->lock);
	if (queue->held || queue->gone)
		return NULL;
	for (level = 0; level < CHARIO_LEVELS; level++) {
		op = list_first_entry_or_null(&queue->waiting[level], struct chario_op, entry);
		if (op && !chario_is_rt(level) && queue->lane && chario_lane_pauses(queue->lane))
			return NULL;
		if (op)
			return op->state == CHARIO_READY ? op : NULL;
	}
	return NULL;
}

/* The same, but NULL while k2 prefers other requests. */
static struct chario_op *best(struct chario_queue *queue)
{
	struct chario_op *op = first_ready(queue);

	return op && op->level < queue->asked ? op : NULL;
}

/* May the host be released? On a lane also while background pauses for mmcblk. */
static bool is_resting(struct chario_queue *queue)
{
	int level;

	if (queue->on_card)
		return false;
	for (level = 0; level < CHARIO_RT_LEVELS; level++)
		if (!list_empty(&queue->waiting[level]))
			return false;
	return queue->lane ? !first_ready(queue) : list_empty(&queue->waiting[CHARIO_BACKGROUND]);
}

static bool can_advance(struct chario_queue *queue)
{
	if (queue->on_card)
		return queue->on_card->state == CHARIO_LANDED;
	return best(queue);
}

static void wake_best(struct chario_queue *queue)
{
	struct chario_op *op = queue->on_card ? NULL : best(queue);

	if (op)
		wake_up_process(op->task);
}

/* Once the lock is released, the caller may reuse the operation's memory. */
static void finish(struct chario_queue *queue, struct chario_op *op)
{
	lockdep_assert_held(&queue->lock);
	op->state = CHARIO_DONE;
	if (!op->keeps_place)
		list_del_init(&op->entry);
	if (queue->on_card == op)
		queue->on_card = NULL;
	wake_up_process(op->task);
	if (queue->lane)
		chario_lane_ended(queue->lane, op->level);
	if (queue->held || queue->gone)
		wake_up(&queue->drained);
}

/*
 * Called by the host's completion, in any context, and by advance() for operations that never
 * started. finished: the answer needs no check.
 */
void chario_queue_landed(struct chario_disk *disk, struct chario_op *op, bool finished)
{
	struct chario_queue *queue = &disk->queue;
	struct chario_op *next;
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	if (finished) {
		finish(queue, op);
		wake_best(queue);
	} else {
		op->state = CHARIO_LANDED;
		next = best(queue);
		wake_up_process(next && next->level < op->level ? next->task : op->task);
		if (queue->held || queue->gone)
			wake_up(&queue->drained);
	}
	spin_unlock_irqrestore(&queue->lock, flags);
}

/* Returns the next possible step: an answer to check, or an operation to start. */
static struct chario_op *next_step(struct chario_queue *queue)
{
	struct chario_op *op;

	spin_lock_irq(&queue->lock);
	if (queue->on_card) {
		op = queue->on_card->state == CHARIO_LANDED ? queue->on_card : NULL;
	} else {
		op = best(queue);
		/* The operation that k2 has granted may have been cancelled. */
		if (op && queue->lane && op->level > queue->granted)
			op = NULL;
		if (op) {
			queue->on_card = op;
			op->state = CHARIO_ON_CARD;
			if (!chario_is_rt(op->level))
				list_del_init(&op->entry);
		}
	}
	spin_unlock_irq(&queue->lock);
	return op;
}

/*
 * May next_step() start the best operation? Only a lane has to ask. If not, the host is released,
 * and k2 or a timer calls chario_queue_wake(). Called with queue.turn held.
 */
static bool may_start(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;
	struct chario_op *op;
	u64 since_ns = 0;
	u8 level = CHARIO_LEVELS;

	if (!queue->lane)
		return true;
	spin_lock_irq(&queue->lock);
	op = queue->on_card ? NULL : best(queue);
	if (op) {
		level = op->level;
		since_ns = op->since_ns;
		queue->asked = level;
	}
	spin_unlock_irq(&queue->lock);
	if (!op)
		return true;
	if (!chario_lane_may_go(queue->lane, level, since_ns)) {
		chario_command_release(disk, true);
		return false;
	}
	spin_lock_irq(&queue->lock);
	queue->asked = CHARIO_LEVELS;
	queue->granted = level;
	spin_unlock_irq(&queue->lock);
	return true;
}

/* Does all steps that are possible now, for any caller. Every caller that is awake calls it. */
static void advance(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;
	struct chario_op *op;

	rt_mutex_lock(&queue->turn);
	while (may_start(disk) && (op = next_step(queue))) {
		if (op->state == CHARIO_LANDED)
			chario_command_settle(disk, op);
		else if (!chario_command_start(disk, op))
			continue;
		spin_lock_irq(&queue->lock);
		finish(queue, op);
		spin_unlock_irq(&queue->lock);
	}
	rt_mutex_unlock(&queue->turn);
}

/* Returns whether it is queued: then other callers may end it, and set its error. */
static bool enter(struct chario_queue *queue, struct chario_op *op)
{
	bool queued;

	spin_lock_irq(&queue->lock);
	queued = !queue->gone;
	op->error = queued ? 0 : -ENODEV;
	if (!queued) {
		list_del_init(&op->entry);
	} else {
		op->task = current;
		if (queue->lane)
			op->since_ns = ktime_get_ns();
		op->state = CHARIO_READY;
		if (list_empty(&op->entry))
			list_add_tail(&op->entry, &queue->waiting[op->level]);
	}
	spin_unlock_irq(&queue->lock);
	return queued;
}

/* A signal that ends the process cancels an operation that has not been started. */
static bool take_back(struct chario_queue *queue, struct chario_op *op)
{
	lockdep_assert_held(&queue->lock);
	if (op->state != CHARIO_READY || !fatal_signal_pending(current))
		return false;
	list_del_init(&op->entry);
	op->state = CHARIO_DONE;
	op->error = -EINTR;
	/* It may be the operation for which k2 was asked. */
	queue->asked = CHARIO_LEVELS;
	wake_best(queue);
	return true;
}

/* Runs the operation until it is done. Returns op->error. */
int chario_queue_run(struct chario_disk *disk, struct chario_op *op)
{
	struct chario_queue *queue = &disk->queue;
	bool done, work;

	if (!enter(queue, op))
		return op->error;
	advance(disk);
	for (;;) {
		spin_lock_irq(&queue->lock);
		done = op->state == CHARIO_DONE || take_back(queue, op);
		work = can_advance(queue);
		if (!done && !work)
			set_current_state(op->state == CHARIO_READY ? TASK_KILLABLE
								    : TASK_UNINTERRUPTIBLE);
		spin_unlock_irq(&queue->lock);
		if (done)
			return op->error;
		if (work)
			advance(disk);
		else
			schedule();
	}
}

/* Ends keeps_place. Called when the chunk has no further operation. */
void chario_queue_leave(struct chario_disk *disk, struct chario_op *op)
{
	struct chario_queue *queue = &disk->queue;

	if (list_empty(&op->entry))
		return;
	spin_lock_irq(&queue->lock);
	list_del_init(&op->entry);
	wake_best(queue);
	spin_unlock_irq(&queue->lock);
}

/*
 * May mmcblk have the host while a real-time call of a lane prepares its next operation? Called
 * with queue.turn held.
 */
static bool is_between(struct chario_queue *queue)
{
	return queue->lane && !queue->on_card && !first_ready(queue) &&
	       chario_lane_is_wanted(queue->lane);
}

/* Called at the end of a call. Releases the host if no operation here needs it. */
void chario_queue_rest(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;
	bool idle;

	rt_mutex_lock(&queue->turn);
	spin_lock_irq(&queue->lock);
	idle = (is_resting(queue) || is_between(queue)) && !queue->gone;
	spin_unlock_irq(&queue->lock);
	if (idle)
		chario_command_release(disk, false);
	rt_mutex_unlock(&queue->turn);
}

/* Called after each operation of a lane, as its callers may not get a CPU for some time. */
void chario_queue_go_on(struct chario_disk *disk)
{
	advance(disk);
	chario_queue_rest(disk);
}

/* Is the host done? Then the card has no operation, or only an answer to check. */
static bool card_is_done(struct chario_queue *queue)
{
	bool done;

	spin_lock_irq(&queue->lock);
	done = !queue->on_card || queue->on_card->state == CHARIO_LANDED;
	spin_unlock_irq(&queue->lock);
	return done;
}

static bool card_is_free(struct chario_queue *queue)
{
	bool is_free;

	spin_lock_irq(&queue->lock);
	is_free = !queue->on_card;
	spin_unlock_irq(&queue->lock);
	return is_free;
}

/* Waits until the card has no operation, and releases the host. Nothing starts meanwhile. */
static void drain(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;

	do {
		wait_event(queue->drained, card_is_done(queue));
		advance(disk);
	} while (!card_is_free(queue));
	rt_mutex_lock(&queue->turn);
	chario_command_release(disk, false);
	rt_mutex_unlock(&queue->turn);
}

/* Suspend: queued operations stay queued. */
void chario_queue_hold(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;

	spin_lock_irq(&queue->lock);
	queue->held = true;
	spin_unlock_irq(&queue->lock);
	drain(disk);
}

void chario_queue_resume(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;

	spin_lock_irq(&queue->lock);
	queue->held = false;
	wake_best(queue);
	spin_unlock_irq(&queue->lock);
}

/* Called by a lane's timer, and by k2 for a lane: the lane should try again. */
void chario_queue_wake(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	queue->asked = CHARIO_LEVELS;
	wake_best(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/* The card goes away: waiting operations and all later ones fail with ENODEV. */
void chario_queue_end(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;
	struct chario_op *op, *following;
	int level;

	spin_lock_irq(&queue->lock);
	/* Calls read this without the lock when they begin; enter() rejects those that miss it. */
	WRITE_ONCE(queue->gone, true);
	for (level = 0; level < CHARIO_LEVELS; level++) {
		list_for_each_entry_safe(op, following, &queue->waiting[level], entry) {
			if (op->state != CHARIO_READY)
				continue;
			op->error = -ENODEV;
			op->keeps_place = false;
			finish(queue, op);
		}
	}
	spin_unlock_irq(&queue->lock);
	drain(disk);
}
