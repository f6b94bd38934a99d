// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose operation is next on the card: one at a time, by level, then in the order of arrival.
 *
 * Nobody owns the card while others wait. An operation is complete when it is queued, so whoever is
 * awake starts the best one, his own or not (advance()), and looks at answers that need process
 * context: a background task that gets no CPU holds nothing up. The host's completion finishes a
 * successful read itself and wakes who can go on.
 *
 * A real-time call of several operations keeps its place between them, up to a chunk. Background
 * goes to the end of the line after each.
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

/* The one to start next. NULL, too, while a real-time call prepares its next operation. */
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

/* The same, but NULL while k2 has others go first. */
static struct chario_op *best(struct chario_queue *queue)
{
	struct chario_op *op = first_ready(queue);

	return op && op->level < queue->asked ? op : NULL;
}

/* Whether the host may go to others: on a lane, also while background waits for its time. */
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

/* The operation's memory is its caller's again as soon as the lock is released. */
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
 * Called by the host's completion, in any context, and by advance() for what never started.
 * finished: nothing of the answer is left to look at.
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

/* Takes the next step that can be taken: an answer to look at, or an operation to start. */
static struct chario_op *next_step(struct chario_queue *queue)
{
	struct chario_op *op;

	spin_lock_irq(&queue->lock);
	if (queue->on_card) {
		op = queue->on_card->state == CHARIO_LANDED ? queue->on_card : NULL;
	} else {
		op = best(queue);
		/* The one that was allowed to go may have been taken back. */
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
 * Called with the turn. Whether next_step() may start what is best, which only a lane has to ask
 * for. If not, the first one gets the host, and k2 or a timer calls chario_queue_wake().
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

/* Does all that can be done now, for whomever. Called by every caller that is awake. */
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

/* Returns whether it is queued: from then on others may end it, and say how. */
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

/* A signal that ends the process takes an operation back that has not been started. */
static bool take_back(struct chario_queue *queue, struct chario_op *op)
{
	lockdep_assert_held(&queue->lock);
	if (op->state != CHARIO_READY || !fatal_signal_pending(current))
		return false;
	list_del_init(&op->entry);
	op->state = CHARIO_DONE;
	op->error = -EINTR;
	/* What k2 was asked for may have been this. */
	queue->asked = CHARIO_LEVELS;
	wake_best(queue);
	return true;
}

/* Runs the operation, and returns when it is done. Returns op->error. */
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

/* Ends keeps_place: called when no operation of the chunk follows. */
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
 * Whether mmcblk may have the host while a real-time call of a lane prepares its next operation.
 * Called with the turn.
 */
static bool is_between(struct chario_queue *queue)
{
	return queue->lane && !queue->on_card && !first_ready(queue) &&
	       chario_lane_is_wanted(queue->lane);
}

/* Called at the end of a call: others may have the host if nobody here wants it. */
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

/* Called for a lane after each operation: its callers may not get a CPU for some time. */
void chario_queue_go_on(struct chario_disk *disk)
{
	advance(disk);
	chario_queue_rest(disk);
}

/* The host has done its part: nothing is on the card, or only an answer to look at. */
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

/* Returns when nothing is on the card, and the host is released. Nothing new starts meanwhile. */
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

/* Called by a lane's timer, and by k2 for it: it is worth looking again. */
void chario_queue_wake(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	queue->asked = CHARIO_LEVELS;
	wake_best(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/* The card goes away: what waits fails with ENODEV, and so does all that comes. */
void chario_queue_end(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;
	struct chario_op *op, *following;
	int level;

	spin_lock_irq(&queue->lock);
	/* Read without the lock by calls that begin: one that misses it is refused by enter(). */
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
