// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host controller's command queue engine runs up to queue_depth tasks at once, identified by
 * their tags. The MMC core sends flush, erase and all commands without data outside the queue,
 * after it has emptied. There are no direct commands, so all slots hold data.
 *
 * An error halts the queue, as in a CQHCI controller. Tasks in flight stay in their slots. The MMC
 * core is notified, sends stop and discard commands to the card, and gets every task back from
 * recovery_finish: failed ones with their error, the others to be requeued. The block layer's time
 * limit (30 s) detects a card that never answers. The host itself detects a card without power, as
 * a controller misses the responses: on 6.1 that time limit starts only after dispatches, and one
 * may be waiting in the MMC core until the queue is empty.
 */
#include <linux/minmax.h>
#include <linux/wait.h>

#include "emmc.h"
#include "hrtimer_setup.h"

/* Removes the task from the queue. The caller completes it, without the lock. */
static struct mmc_request *take(struct emmc_host *host, struct emmc_task *task)
{
	struct mmc_request *mrq = task->mrq;

	lockdep_assert_held(&host->lock);
	task->mrq = NULL;
	task->finished = false;
	task->error = 0;
	host->queued--;
	host->card->stats.inflight = host->queued;
	if (!host->queued)
		wake_up(&host->idle);
	return mrq;
}

static void emmc_halt(struct emmc_host *host)
{
	lockdep_assert_held(&host->lock);
	host->halted = true;
	wake_up(&host->idle);
}

static enum hrtimer_restart task_due(struct hrtimer *timer)
{
	struct emmc_task *task = container_of(timer, struct emmc_task, timer);
	struct emmc_host *host = task->host;
	struct mmc_request *done = NULL, *failed = NULL;
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	if (READ_ONCE(host->card->dead))
		task->error = -ETIMEDOUT;
	if (host->halted) {
		task->finished = true;
	} else if (task->error) {
		failed = task->mrq;
		emmc_halt(host);
	} else {
		done = take(host, task);
		emmc_card_acknowledge(host->card, &task->answer);
		emmc_card_cut_if_due(host->card);
	}
	spin_unlock_irqrestore(&host->lock, flags);

	if (failed)
		failed->recovery_notifier(failed);
	if (done)
		mmc_cqe_request_done(host->mmc, done);
	return HRTIMER_NORESTART;
}

/* Takes a slot of the queue. -EBUSY while an error waits for recovery. */
static int enter(struct emmc_host *host, struct emmc_task *task, struct mmc_request *mrq)
{
	struct emmc_stats *stats = &host->card->stats;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&host->lock, flags);
	if (host->halted) {
		err = -EBUSY;
	} else {
		task->mrq = mrq;
		host->queued++;
		stats->inflight = host->queued;
		stats->inflight_max = max(stats->inflight_max, host->queued);
	}
	spin_unlock_irqrestore(&host->lock, flags);
	return err;
}

/* Called by the MMC core for each data request, one at a time, in process context. */
static int emmc_cqe_request(struct mmc_host *mmc, struct mmc_request *mrq)
{
	struct emmc_host *host = mmc_priv(mmc);
	struct emmc_task *task;
	int err;

	if (!mrq->data || mrq->tag < 0 || mrq->tag >= FLASH_DEPTH_MAX)
		return -EINVAL;
	task = &host->task[mrq->tag];
	mmc->cqe_on = true;

	mutex_lock(&host->submitting);
	err = enter(host, task, mrq);
	if (err)
		goto out;
	emmc_card_task(host->card, mrq, ktime_get_ns(), &task->answer);
	if (!task->answer.silent) {
		task->error = mrq->data->error;
		hrtimer_start(&task->timer, ns_to_ktime(task->answer.finish_ns),
			      HRTIMER_MODE_ABS_SOFT);
	}
out:
	mutex_unlock(&host->submitting);
	return err;
}

static int emmc_cqe_enable(struct mmc_host *mmc, struct mmc_card *card)
{
	struct emmc_host *host = mmc_priv(mmc);

	host->halted = false;
	return 0;
}

static void emmc_cqe_off(struct mmc_host *mmc)
{
	mmc->cqe_on = false;
}

static int emmc_cqe_wait_for_idle(struct mmc_host *mmc)
{
	struct emmc_host *host = mmc_priv(mmc);

	wait_event(host->idle, !READ_ONCE(host->queued) || READ_ONCE(host->halted));
	return READ_ONCE(host->halted) ? -EBUSY : 0;
}

/* Called by the block layer's time limit. True: the request is still queued and needs recovery. */
static bool emmc_cqe_timeout(struct mmc_host *mmc, struct mmc_request *mrq, bool *recovery_needed)
{
	struct emmc_host *host = mmc_priv(mmc);
	struct emmc_task *task = &host->task[mrq->tag];
	unsigned long flags;
	bool pending;

	spin_lock_irqsave(&host->lock, flags);
	pending = task->mrq == mrq;
	if (pending) {
		task->error = -ETIMEDOUT;
		*recovery_needed = !host->halted;
		emmc_halt(host);
	}
	spin_unlock_irqrestore(&host->lock, flags);
	return pending;
}

/*
 * The queue must stay halted until recovery_finish, without any completion. A submission that began
 * before the halt may still copy data: it ends first.
 */
static void emmc_cqe_recovery_start(struct mmc_host *mmc)
{
	struct emmc_host *host = mmc_priv(mmc);
	unsigned int i;

	mutex_lock(&host->submitting);
	mutex_unlock(&host->submitting);
	for (i = 0; i < FLASH_DEPTH_MAX; i++)
		hrtimer_cancel(&host->task[i].timer);
	mmc->cqe_on = false;
}

static void emmc_cqe_recovery_finish(struct mmc_host *mmc)
{
	struct emmc_host *host = mmc_priv(mmc);
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < FLASH_DEPTH_MAX; i++) {
		struct emmc_task *task = &host->task[i];
		struct mmc_request *mrq = NULL;

		spin_lock_irqsave(&host->lock, flags);
		if (task->mrq) {
			struct mmc_data *data = task->mrq->data;

			data->error = task->error;
			if (!task->finished || task->error)
				data->bytes_xfered = 0;
			if (data->bytes_xfered)
				emmc_card_acknowledge(host->card, &task->answer);
			mrq = take(host, task);
		}
		spin_unlock_irqrestore(&host->lock, flags);
		if (mrq)
			mmc_cqe_request_done(mmc, mrq);
	}
	spin_lock_irqsave(&host->lock, flags);
	host->halted = false;
	spin_unlock_irqrestore(&host->lock, flags);
}

static const struct mmc_cqe_ops emmc_cqe_ops = {
	.cqe_enable = emmc_cqe_enable,
	.cqe_disable = emmc_cqe_off,
	.cqe_request = emmc_cqe_request,
	.cqe_off = emmc_cqe_off,
	.cqe_wait_for_idle = emmc_cqe_wait_for_idle,
	.cqe_timeout = emmc_cqe_timeout,
	.cqe_recovery_start = emmc_cqe_recovery_start,
	.cqe_recovery_finish = emmc_cqe_recovery_finish,
};

/* Called by probe before mmc_add_host(), for cards with a command queue. */
void emmc_cqe_setup(struct emmc_host *host)
{
	unsigned int i;

	for (i = 0; i < FLASH_DEPTH_MAX; i++) {
		struct emmc_task *task = &host->task[i];

		task->host = host;
		compat_hrtimer_setup(&task->timer, task_due, HRTIMER_MODE_ABS_SOFT);
	}
	spin_lock_init(&host->lock);
	mutex_init(&host->submitting);
	init_waitqueue_head(&host->idle);
	host->mmc->caps2 |= MMC_CAP2_CQE;
	host->mmc->cqe_ops = &emmc_cqe_ops;
	host->mmc->cqe_qdepth = host->card->config->queue_depth;
}

void emmc_cqe_teardown(struct emmc_host *host)
{
	unsigned int i;

	for (i = 0; i < FLASH_DEPTH_MAX; i++)
		hrtimer_cancel(&host->task[i].timer);
	mutex_destroy(&host->submitting);
}
