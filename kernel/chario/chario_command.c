// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes MMC commands from an operation, checks the card's answers, and recovers the card.
 *
 * All functions but the completion run with queue.turn held. Sources: JEDEC JESD84-B51 (commands,
 * R1 status, reliable write), SD Physical Layer Simplified Specification (same commands).
 */
#include <linux/delay.h>
#include <linux/mmc/card.h>
#include <linux/mmc/mmc.h>
#include <linux/mmc/sd.h>

#include "chario.h"

#include "card.h"
#include "core.h"
#include "host.h"
#include "mmc_ops.h"

#define STATUS_ERRORS                                                                              \
	(R1_ADDRESS_ERROR | R1_BLOCK_LEN_ERROR | R1_WP_VIOLATION | R1_CARD_ECC_FAILED |            \
	 R1_CC_ERROR | R1_ERROR)
#define STOP_TRIES	5
#define BUSY_TIMEOUT_MS (10 * MSEC_PER_SEC)

static void yield_to_others(struct chario_disk *disk)
{
	struct mmc_host *host = disk->card->host;

	/* A waiter that is missed now is seen before the next command. */
	if (!waitqueue_active(&host->wq))
		return;
	/* The waiter is a rescan or a debugfs file. It was woken, and claims the host meanwhile. */
	chario_command_release(disk, true);
	schedule_timeout_uninterruptible(1);
}

/* The host is claimed from the first operation until none waits, see chario_queue_rest(). */
void chario_command_claim(struct chario_disk *disk)
{
	struct chario_queue *queue = &disk->queue;

	/* On a lane mmcblk may wait: chario_lane_may_go() and chario_queue_rest() release it. */
	if (queue->claimed && !queue->lane)
		yield_to_others(disk);
	if (queue->claimed)
		return;
	if (queue->lane)
		chario_lane_claim(queue->lane, disk->card, &queue->ctx);
	else
		mmc_get_card(disk->card, &queue->ctx);
	queue->claimed = true;
}

/* waits: an operation waits for the host, but others go first. */
void chario_command_release(struct chario_disk *disk, bool waits)
{
	struct chario_queue *queue = &disk->queue;

	if (queue->claimed) {
		if (queue->lane)
			chario_lane_leave(queue->lane);
		mmc_put_card(disk->card, &queue->ctx);
		queue->claimed = false;
	}
	if (queue->lane)
		chario_lane_let_go(queue->lane, waits);
}

/*
 * How many of op->sectors one command may transfer, besides the limits in transfer.c. Cards without
 * enhanced reliable write accept exactly reliable_sectors, aligned to them, or single sectors.
 */
static u32 sectors_at_once(const struct chario_disk *disk, const struct chario_op *op)
{
	const struct mmc_host_ops *ops = disk->card->host->ops;
	u32 direction = op->kind == CHARIO_OP_READ ? MMC_DATA_READ : MMC_DATA_WRITE;
	u32 sectors = op->sectors;

	if (ops->multi_io_quirk && sectors > 1)
		sectors = ops->multi_io_quirk(disk->card, direction, sectors);
	if (!op->durable || !disk->reliable_sectors)
		return sectors;
	if (op->sector % disk->reliable_sectors || sectors < disk->reliable_sectors)
		return 1;
	return disk->reliable_sectors;
}

static void shorten(struct chario_op *op, u32 sectors)
{
	u32 bytes = sectors * CHARIO_SECTOR_BYTES, count = 0;
	struct scatterlist *sg;

	for (sg = op->sg; bytes; sg = sg_next(sg)) {
		sg->length = min(sg->length, bytes);
		bytes -= sg->length;
		count++;
	}
	op->sectors = sectors;
	op->sg_len = count;
}

static bool is_multi(const struct chario_op *op)
{
	return op->sectors > 1 || op->durable;
}

static void fill_data(const struct chario_disk *disk, struct chario_op *op)
{
	struct mmc_data *data = &op->data;

	data->flags = op->kind == CHARIO_OP_READ ? MMC_DATA_READ : MMC_DATA_WRITE;
	if (op->durable)
		data->flags |= MMC_DATA_REL_WR;
	data->blksz = CHARIO_SECTOR_BYTES;
	data->blocks = op->sectors;
	data->blk_addr = op->sector;
	data->sg = op->sg;
	data->sg_len = op->sg_len;
	mmc_set_data_timeout(data, disk->card);
}

/*
 * Sends CMD17, 18, 24 or 25, after CMD23 if host and card support it, and then CMD12. A host that
 * sent CMD23 and saw no error skips CMD12.
 */
static void fill_request(const struct chario_disk *disk, struct chario_op *op)
{
	bool read = op->kind == CHARIO_OP_READ;

	u32 sectors = sectors_at_once(disk, op);

	if (sectors < op->sectors)
		shorten(op, sectors);
	op->mrq = (struct mmc_request){};
	op->sbc = (struct mmc_command){};
	op->cmd = (struct mmc_command){};
	op->stop = (struct mmc_command){};
	op->data = (struct mmc_data){};
	fill_data(disk, op);
	op->mrq.data = &op->data;
	op->mrq.cmd = &op->cmd;
	op->cmd.flags = MMC_RSP_R1 | MMC_CMD_ADTC;
	op->cmd.arg = op->sector;
	if (!mmc_card_blockaddr(disk->card))
		op->cmd.arg *= CHARIO_SECTOR_BYTES;
	if (!is_multi(op)) {
		op->cmd.opcode = read ? MMC_READ_SINGLE_BLOCK : MMC_WRITE_BLOCK;
		return;
	}
	op->cmd.opcode = read ? MMC_READ_MULTIPLE_BLOCK : MMC_WRITE_MULTIPLE_BLOCK;
	op->stop.opcode = MMC_STOP_TRANSMISSION;
	op->stop.flags = (read ? MMC_RSP_R1 : MMC_RSP_R1B) | MMC_CMD_AC;
	op->mrq.stop = &op->stop;
	if (!disk->has_cmd23)
		return;
	if (disk->card->quirks & MMC_QUIRK_BLK_NO_CMD23 && !op->durable)
		return;
	op->sbc.opcode = MMC_SET_BLOCK_COUNT;
	op->sbc.arg = op->sectors | (op->durable ? MMC_CMD23_ARG_REL_WR : 0);
	op->sbc.flags = MMC_RSP_R1 | MMC_CMD_AC;
	op->mrq.sbc = &op->sbc;
}

/* OUT_OF_RANGE after an open-ended read at the end of the card is no error. */
static u32 status_errors(const struct chario_op *op)
{
	return op->mrq.sbc ? STATUS_ERRORS | R1_OUT_OF_RANGE : STATUS_ERRORS;
}

static bool has_failed(const struct chario_op *op)
{
	return op->sbc.error || op->cmd.error || op->stop.error || op->data.error ||
	       op->cmd.resp[0] & (STATUS_ERRORS | R1_OUT_OF_RANGE) ||
	       op->stop.resp[0] & status_errors(op);
}

static bool wants_attention(const struct chario_op *op)
{
	return (op->cmd.resp[0] | op->stop.resp[0]) & R1_EXCEPTION_EVENT;
}

/*
 * Called by the host, in any context. A read that succeeded needs no more work. After
 * chario_queue_landed() the operation may be freed.
 */
static void completed(struct mmc_request *mrq)
{
	struct chario_op *op = container_of(mrq, struct chario_op, mrq);
	struct chario_disk *disk = op->disk;
	bool finished = op->kind == CHARIO_OP_READ && !has_failed(op) && !wants_attention(op);

	mmc_post_req(disk->card->host, mrq, has_failed(op) ? -EIO : 0);
	if (finished) {
		op->done_bytes = op->data.bytes_xfered;
		mmc_retune_release(disk->card->host);
	}
	chario_queue_landed(disk, op, finished);
}

static int reset(struct chario_disk *disk)
{
	int error = mmc_hw_reset(disk->card);

	chario_count(disk, NULL, CHARIO_RESETS, 1);
	return error ? -EIO : 0;
}

/* Ends a transfer that is still going on in the card. */
static int stop(struct chario_disk *disk)
{
	struct mmc_card *card = disk->card;
	struct mmc_command cmd = {
		.opcode = MMC_STOP_TRANSMISSION,
		.flags = MMC_RSP_R1 | MMC_CMD_AC,
		.busy_timeout = BUSY_TIMEOUT_MS,
	};
	int error;

	mmc_retune_hold_now(card->host);
	mmc_wait_for_cmd(card->host, &cmd, STOP_TRIES);
	error = mmc_poll_for_busy(card, BUSY_TIMEOUT_MS, false, MMC_BUSY_IO);
	mmc_retune_release(card->host);
	return error;
}

/*
 * Returns the card to a state in which it takes commands. No part of the operation counts as done;
 * the caller decides whether to try again. Re-tuning is released first, so that it can answer a CRC
 * error.
 */
static void recover(struct chario_disk *disk, struct chario_op *op)
{
	struct mmc_card *card = disk->card;
	u32 status = 0;
	int error;

	op->error = -EIO;
	op->card_answers = !op->sbc.error && !op->cmd.error;
	mmc_retune_release(card->host);
	error = __mmc_send_status(card, &status, 1);
	if (error && (mmc_card_removed(card) || mmc_detect_card_removed(card->host))) {
		op->error = -ENODEV;
		return;
	}
	if (error || !mmc_ready_for_data(status))
		error = stop(disk);
	if (error && reset(disk))
		op->card_answers = false;
}

struct written {
	struct mmc_card *card;
	u32 status;
};

static int is_busy(void *data, bool *busy)
{
	struct written *written = data;
	u32 status = 0;
	int error = mmc_send_status(written->card, &status);

	written->status |= status;
	*busy = !mmc_ready_for_data(status);
	return error;
}

/* A write ends when the card is no longer busy; only then does the card report its errors. */
static int wait_until_written(struct chario_disk *disk, struct chario_op *op)
{
	struct written written = {.card = disk->card};
	int error = __mmc_poll_for_busy(disk->card->host, 0, BUSY_TIMEOUT_MS, is_busy, &written);

	op->cmd.resp[0] |= written.status & R1_EXCEPTION_EVENT;
	if (!error && written.status & status_errors(op))
		error = -EIO;
	return error;
}

/* Checks the answer of a landed operation. chario_queue.c calls this with queue.turn held. */
void chario_command_settle(struct chario_disk *disk, struct chario_op *op)
{
	struct mmc_card *card = disk->card;

	if (has_failed(op) || (op->kind == CHARIO_OP_WRITE && wait_until_written(disk, op))) {
		recover(disk, op);
		return;
	}
	mmc_retune_release(card->host);
	op->done_bytes = op->data.bytes_xfered;
	if (wants_attention(op) && mmc_card_mmc(card))
		mmc_run_bkops(card);
}

static int as_seen_by_caller(int error)
{
	switch (error) {
	case 0:
	case -EOPNOTSUPP:
	case -EROFS:
	case -ENOSPC:
		return error;
	case -ENOMEDIUM:
		return -ENODEV;
	default:
		return -EIO;
	}
}

/* Claims the host, and brings the card into the state that this file's commands need. */
static int prepare(struct chario_disk *disk, struct chario_op *op)
{
	struct mmc_card *card = disk->card;

	chario_command_claim(disk);
	chario_area_note(disk);
	if (op->reset_first && reset(disk))
		return -EIO;
	if (chario_area_enter(disk))
		return -EIO;
	/* A reset or a resume enables the command queue again, in the mmc core. */
	return card->ext_csd.cmdq_en ? mmc_cmdq_disable(card) : 0;
}

/*
 * Is the operation inside the partition of the lane, which may have changed since the call began?
 * The host is claimed: if the freed space becomes another partition, mmcblk can write to it only
 * after this operation.
 */
static int check_part(struct chario_disk *disk, const struct chario_op *op)
{
	struct chario_part part;

	if (!disk->queue.lane || op->kind == CHARIO_OP_FLUSH)
		return 0;
	part = chario_lane_part(disk->queue.lane);
	if (op->kind != CHARIO_OP_READ && part.read_only)
		return -EROFS;
	if (op->sector >= part.first_sector && op->sectors <= part.sectors &&
	    op->sector - part.first_sector <= part.sectors - op->sectors)
		return 0;
	return op->kind == CHARIO_OP_READ ? -EIO : -ENOSPC;
}

/*
 * chario_queue.c calls this with queue.turn held. Returns whether the operation has ended already.
 * If not, it may be freed.
 */
bool chario_command_start(struct chario_disk *disk, struct chario_op *op)
{
	struct mmc_card *card = disk->card;
	int error = prepare(disk, op);

	op->done_bytes = 0;
	op->card_answers = true;
	op->was_sent = true;
	if (error)
		goto ended;
	error = check_part(disk, op);
	op->was_sent = !error;
	if (error)
		goto ended;
	switch (op->kind) {
	case CHARIO_OP_FLUSH:
		error = mmc_flush_cache(card->host);
		goto ended;
	case CHARIO_OP_DISCARD:
		error = mmc_erase(card, op->sector, op->sectors, disk->erase_arg);
		goto ended;
	case CHARIO_OP_WRITE:
		card->written_flag = true;
		fallthrough;
	case CHARIO_OP_READ:
		break;
	}
	fill_request(disk, op);
	op->disk = disk;
	op->mrq.done = completed;
	/* With data mapped for DMA in advance, sdhci ends the request in the interrupt handler. */
	mmc_pre_req(card->host, &op->mrq);
	error = mmc_start_request(card->host, &op->mrq);
	if (!error)
		return false;
	mmc_post_req(card->host, &op->mrq, error);
	mmc_retune_release(card->host);
ended:
	op->error = as_seen_by_caller(error);
	return true;
}
