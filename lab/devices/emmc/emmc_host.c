// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host controller without command queue: one request at a time.
 *
 * The card runs a request at once, and computes when it finishes; then a timer completes it. A
 * request that the card never answers ends at the controller's time limit, which the MMC core sets
 * per request, as with real controllers.
 */
#include <linux/mmc/mmc.h>

#include "emmc.h"
#include "hrtimer_setup.h"

/* The time limit of the MMC core: for data from the CSD, for busy in milliseconds. */
static u64 time_limit_ns(const struct mmc_request *mrq)
{
	if (mrq->data)
		return mrq->data->timeout_ns;
	return (u64)(mrq->cmd->busy_timeout ?: MSEC_PER_SEC) * NSEC_PER_MSEC;
}

static enum hrtimer_restart complete_single(struct hrtimer *timer)
{
	struct emmc_task *task = container_of(timer, struct emmc_task, timer);
	struct mmc_request *mrq = task->mrq;
	struct emmc_host *host = task->host;

	task->mrq = NULL;
	/* Power was lost while the request was in flight: there is no answer. */
	if (READ_ONCE(host->card->dead) && mrq->data && !mrq->cmd->error) {
		mrq->data->error = -ETIMEDOUT;
		mrq->data->bytes_xfered = 0;
	} else if (READ_ONCE(host->card->dead)) {
		mrq->cmd->error = -ETIMEDOUT;
	} else if (!mrq->cmd->error && !(mrq->data && mrq->data->error)) {
		emmc_card_acknowledge(host->card, &task->answer);
	}
	mmc_request_done(host->mmc, mrq);
	return HRTIMER_NORESTART;
}

/* Called by the MMC core with the host claimed, in process context. */
static void emmc_request(struct mmc_host *mmc, struct mmc_request *mrq)
{
	struct emmc_host *host = mmc_priv(mmc);
	struct emmc_task *task = &host->single;
	u64 now_ns = ktime_get_ns(), due_ns;

	if (task->mrq) {
		/*
		 * A controller rejects this. A live card never causes it. But after a failed reset
		 * of a dead card, mmc_blk_mq_issue_rq() selects the partition again without waiting
		 * for the earlier request (seen on 6.1).
		 */
		WARN_ON(!READ_ONCE(host->card->dead));
		mrq->cmd->error = -EBUSY;
		mmc_request_done(mmc, mrq);
		return;
	}
	emmc_card_command(host->card, mrq, now_ns, &task->answer);
	due_ns = task->answer.finish_ns;
	if (task->answer.silent)
		due_ns = now_ns + time_limit_ns(mrq);
	task->mrq = mrq;
	hrtimer_start(&task->timer, ns_to_ktime(due_ns), HRTIMER_MODE_ABS_SOFT);
}

static void emmc_set_ios(struct mmc_host *mmc, struct mmc_ios *ios)
{
	struct emmc_host *host = mmc_priv(mmc);

	if (ios->power_mode == MMC_POWER_OFF)
		emmc_card_power_off(host->card);
}

static const struct mmc_host_ops emmc_host_ops = {
	.request = emmc_request,
	.set_ios = emmc_set_ios,
};

/* Called by probe before mmc_add_host(). */
void emmc_host_setup(struct emmc_host *host)
{
	struct mmc_host *mmc = host->mmc;

	host->single.host = host;
	compat_hrtimer_setup(&host->single.timer, complete_single, HRTIMER_MODE_ABS_SOFT);

	mmc->ops = &emmc_host_ops;
	mmc->f_min = 400000;
	mmc->f_max = 200000000;
	mmc->ocr_avail = MMC_VDD_165_195 | MMC_VDD_32_33 | MMC_VDD_33_34;
	mmc->caps = MMC_CAP_NONREMOVABLE | MMC_CAP_CMD23 | MMC_CAP_WAIT_WHILE_BUSY |
		    MMC_CAP_8_BIT_DATA | MMC_CAP_MMC_HIGHSPEED;
	mmc->caps2 = MMC_CAP2_NO_SD | MMC_CAP2_NO_SDIO | MMC_CAP2_HS200_1_8V_SDR |
		     MMC_CAP2_HS400_1_8V;
	mmc->max_segs = EMMC_SEGMENTS_MAX;
	mmc->max_seg_size = EMMC_REQUEST_BYTES;
	mmc->max_req_size = EMMC_REQUEST_BYTES;
	mmc->max_blk_size = FLASH_SECTOR_BYTES;
	mmc->max_blk_count = EMMC_REQUEST_BYTES / FLASH_SECTOR_BYTES;
}

/* Called after mmc_remove_host(): no request can come, but a timer may still be running. */
void emmc_host_teardown(struct emmc_host *host)
{
	hrtimer_cancel(&host->single.timer);
}
