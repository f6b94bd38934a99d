// SPDX-License-Identifier: GPL-2.0-only
/*
 * The card: executes commands, moves data, computes the answer of a command and its time.
 *
 * Data moves when the command arrives, but the answer is due later. No program can observe this:
 * the data of a request is undefined before its completion, and a write during a power failure may
 * or may not take effect on real flash, too.
 *
 * A dead card (power cut) answers nothing. The host turns that into -ETIMEDOUT.
 */
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/mmc/mmc.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "emmc.h"

#define OCR_READY (MMC_CARD_BUSY | BIT(30) | MMC_VDD_165_195 | GENMASK(23, 15))

int emmc_card_create(struct emmc_card *card, const struct emmc_config *config)
{
	int err;

	memset(card, 0, sizeof(*card));
	card->config = config;
	mutex_init(&card->lock);
	if (!flash_init(&card->flash, &config->flash))
		return -EINVAL;
	card->bounce = kvmalloc(EMMC_REQUEST_BYTES, GFP_KERNEL);
	if (!card->bounce)
		return -ENOMEM;
	card->store = media_store_create(config->sectors * FLASH_SECTOR_BYTES, config->path);
	if (IS_ERR(card->store)) {
		err = PTR_ERR(card->store);
		goto out_bounce;
	}
	if (*config->write_log) {
		card->log = media_log_create(config->write_log, config->sectors,
					     config->flash.cache_kib, config->queue_depth);
		if (IS_ERR(card->log)) {
			err = PTR_ERR(card->log);
			goto out_store;
		}
	}
	return 0;

out_store:
	media_store_destroy(card->store);
out_bounce:
	kvfree(card->bounce);
	return err;
}

void emmc_card_destroy(struct emmc_card *card)
{
	media_log_destroy(card->log);
	media_store_destroy(card->store);
	kvfree(card->bounce);
	mutex_destroy(&card->lock);
}

static void lose_cache(struct emmc_card *card)
{
	unsigned long pages;

	lockdep_assert_held(&card->lock);
	media_log_power_off(card->log);
	pages = media_store_drop_cached(card->store);
	card->stats.lost_pages += pages;
	if (pages)
		pr_info("steady_emmc: power lost with %lu KiB in the cache\n", pages * 4);
	flash_power_off(&card->flash);
}

static void reset(struct emmc_card *card)
{
	lockdep_assert_held(&card->lock);
	card->state = R1_STATE_IDLE;
	card->errors = 0;
	card->reliable = false;
	emmc_registers_ext_csd(card->config, card->ext_csd);
}

/* Called when the driver binds: the card has power again. */
void emmc_card_power_on(struct emmc_card *card)
{
	mutex_lock(&card->lock);
	lose_cache(card);
	reset(card);
	WRITE_ONCE(card->dead, false);
	mutex_unlock(&card->lock);
}

/* Called by the MMC core through set_ios, and when the driver is unbound. */
void emmc_card_power_off(struct emmc_card *card)
{
	mutex_lock(&card->lock);
	lose_cache(card);
	reset(card);
	mutex_unlock(&card->lock);
}

/* Called from debugfs, and when power_cut_after_writes is reached; in any context. */
void emmc_card_cut_power(struct emmc_card *card)
{
	if (!xchg(&card->dead, true))
		pr_notice("steady_emmc: power cut\n");
}

/* Called by the host when a request completes without error, in softirq context. */
void emmc_card_acknowledge(struct emmc_card *card, const struct emmc_answer *answer)
{
	if (answer->write &&
	    atomic64_inc_return(&card->writes_acked) == card->config->power_cut_after_writes)
		WRITE_ONCE(card->cut_due, true);
}

/*
 * power_cut_after_writes was reached. Without a queue this waits for the next command that is not
 * CMD13: only after that status is a write done for the kernel, and N writes must be done.
 */
void emmc_card_cut_if_due(struct emmc_card *card)
{
	if (xchg(&card->cut_due, false))
		emmc_card_cut_power(card);
}

/* Runs an operation through the timing model. Returns 0 or the data error for the host. */
static int submit(struct emmc_card *card, const struct flash_request *request, u64 now_ns,
		  struct emmc_answer *answer, struct flash_result *result)
{
	lockdep_assert_held(&card->lock);
	flash_submit(&card->flash, request, now_ns, result);
	card->stats.ops[request->op]++;
	answer->finish_ns = result->finish_ns;
	if (result->outcome == FLASH_SILENT) {
		card->stats.silent++;
		answer->silent = true;
		return -ETIMEDOUT;
	}
	if (result->outcome == FLASH_FAILED) {
		card->stats.failed++;
		return -EIO;
	}
	if (request->op == FLASH_FLUSH)
		media_log_no_data(card->log, MEDIA_LOG_FLUSH, request, now_ns, result->finish_ns);
	if (result->drained)
		return media_store_drain(card->store);
	return 0;
}

static int write_data(struct emmc_card *card, struct mmc_data *data,
		      const struct flash_request *request, u64 now_ns,
		      const struct flash_result *result)
{
	u64 pos = request->sector * FLASH_SECTOR_BYTES;
	size_t len = request->sectors * FLASH_SECTOR_BYTES;

	sg_copy_to_buffer(data->sg, data->sg_len, card->bounce, len);
	media_log_write(card->log, request, now_ns, result, card->bounce);
	if (result->cached)
		return media_store_write_cached(card->store, pos, card->bounce, len);
	card->stats.durable_writes++;
	return media_store_write(card->store, pos, card->bounce, len);
}

static int read_data(struct emmc_card *card, struct mmc_data *data, u64 pos, size_t len)
{
	int err = media_store_read(card->store, pos, card->bounce, len);

	if (!err)
		sg_copy_from_buffer(data->sg, data->sg_len, card->bounce, len);
	return err;
}

/* Reads or writes; sets data->error and data->bytes_xfered. For requests and for tasks. */
static void transfer(struct emmc_card *card, struct mmc_data *data, u64 sector, bool durable,
		     u64 now_ns, struct emmc_answer *answer)
{
	bool write = data->flags & MMC_DATA_WRITE;
	size_t len = data->blksz * data->blocks;
	struct flash_request request = {
		.op = write ? FLASH_WRITE : FLASH_READ,
		.sector = sector,
		.sectors = len / FLASH_SECTOR_BYTES,
		.durable = durable,
	};
	struct flash_result result;

	data->bytes_xfered = 0;
	answer->finish_ns = now_ns;
	if (len > EMMC_REQUEST_BYTES || sector + request.sectors > card->config->sectors) {
		data->error = -EINVAL;
		return;
	}
	/* With CACHE_CTRL off, the card writes through, as in the standard. */
	if (!card->ext_csd[EXT_CSD_CACHE_CTRL])
		request.durable = true;
	data->error = submit(card, &request, now_ns, answer, &result);
	if (data->error)
		return;
	if (write)
		data->error = write_data(card, data, &request, now_ns, &result);
	else
		data->error = read_data(card, data, sector * FLASH_SECTOR_BYTES, len);
	if (data->error)
		return;
	answer->write = write;
	data->bytes_xfered = len;
}

static void send_ext_csd(struct emmc_card *card, struct mmc_data *data)
{
	size_t len = min_t(size_t, data->blksz * data->blocks, EMMC_EXT_CSD_BYTES);

	sg_copy_from_buffer(data->sg, data->sg_len, card->ext_csd, len);
	data->bytes_xfered = len;
}

/* CMD6 writes one byte of EXT_CSD. A write to the byte FLUSH_CACHE flushes. */
static void do_switch(struct emmc_card *card, struct mmc_command *cmd, u64 now_ns,
		      struct emmc_answer *answer)
{
	u8 index = cmd->arg >> 16, value = cmd->arg >> 8;
	struct flash_request request = {.op = FLASH_FLUSH};
	struct flash_result result;

	if (cmd->arg >> 24 != MMC_SWITCH_MODE_WRITE_BYTE) {
		card->errors |= R1_SWITCH_ERROR;
		return;
	}
	if (index == EXT_CSD_FLUSH_CACHE) {
		if (!(value & 1))
			return;
		cmd->error = submit(card, &request, now_ns, answer, &result);
		if (cmd->error == -EIO) {
			cmd->error = 0;
			card->errors |= R1_SWITCH_ERROR;
		}
		return;
	}
	/* In the standard, turning the cache off empties it. */
	if (index == EXT_CSD_CACHE_CTRL && !(value & 1) && card->ext_csd[index])
		cmd->error = submit(card, &request, now_ns, answer, &result);
	card->ext_csd[index] = value;
}

static void do_erase(struct emmc_card *card, struct mmc_command *cmd, u64 now_ns,
		     struct emmc_answer *answer)
{
	struct flash_request request = {.op = FLASH_ERASE, .sector = card->erase_first};
	bool discard = cmd->arg == MMC_DISCARD_ARG;
	struct flash_result result;
	u64 pos = request.sector * FLASH_SECTOR_BYTES;

	if (card->erase_first > card->erase_last || card->erase_last >= card->config->sectors) {
		card->errors |= R1_ERASE_PARAM;
		return;
	}
	request.sectors = card->erase_last - card->erase_first + 1;
	cmd->error = submit(card, &request, now_ns, answer, &result);
	if (cmd->error)
		return;
	media_log_no_data(card->log, discard ? MEDIA_LOG_DISCARD : MEDIA_LOG_ZERO, &request, now_ns,
			  result.finish_ns);
	if (discard)
		media_store_discard(card->store, pos, request.sectors * FLASH_SECTOR_BYTES);
	else
		cmd->error =
			media_store_zero(card->store, pos, request.sectors * FLASH_SECTOR_BYTES);
}

/*
 * R1: the state that the command found, and the errors since the last R1. The card sends it before
 * it executes the command, whose errors are in the next R1: the kernel sends CMD13 for that.
 */
static void answer_r1(struct emmc_card *card, struct mmc_command *cmd)
{
	cmd->resp[0] = card->errors | R1_READY_FOR_DATA | (card->state << 9);
	card->errors = 0;
}

static void identify(struct emmc_card *card, struct mmc_command *cmd)
{
	switch (cmd->opcode) {
	case MMC_GO_IDLE_STATE:
		reset(card);
		break;
	case MMC_SEND_OP_COND:
		cmd->resp[0] = OCR_READY;
		card->state = R1_STATE_READY;
		break;
	case MMC_ALL_SEND_CID:
		emmc_registers_cid(card->config, cmd->resp);
		card->state = R1_STATE_IDENT;
		break;
	case MMC_SET_RELATIVE_ADDR:
		card->state = R1_STATE_STBY;
		break;
	case MMC_SEND_CSD:
		emmc_registers_csd(cmd->resp);
		break;
	case MMC_SEND_CID:
		emmc_registers_cid(card->config, cmd->resp);
		break;
	}
}

static void run_command(struct emmc_card *card, struct mmc_command *cmd, struct mmc_data *data,
			u64 now_ns, struct emmc_answer *answer)
{
	if (mmc_resp_type(cmd) == MMC_RSP_R1 || mmc_resp_type(cmd) == MMC_RSP_R1B)
		answer_r1(card, cmd);
	switch (cmd->opcode) {
	case MMC_GO_IDLE_STATE:
	case MMC_SEND_OP_COND:
	case MMC_ALL_SEND_CID:
	case MMC_SET_RELATIVE_ADDR:
	case MMC_SEND_CSD:
	case MMC_SEND_CID:
		identify(card, cmd);
		break;
	case MMC_SELECT_CARD:
		card->state = cmd->arg >> 16 ? R1_STATE_TRAN : R1_STATE_STBY;
		break;
	case MMC_SWITCH:
		do_switch(card, cmd, now_ns, answer);
		break;
	case MMC_SEND_EXT_CSD:
		if (data)
			send_ext_csd(card, data);
		else
			cmd->error = -ETIMEDOUT; /* SD's CMD8: this is no SD card */
		break;
	case MMC_SEND_STATUS:
		answer->finish_ns = now_ns + card->config->status_ns;
		break;
	case MMC_READ_SINGLE_BLOCK:
	case MMC_READ_MULTIPLE_BLOCK:
	case MMC_WRITE_BLOCK:
	case MMC_WRITE_MULTIPLE_BLOCK:
		transfer(card, data, cmd->arg, card->reliable, now_ns, answer);
		card->reliable = false;
		if (data->error)
			card->errors |= data->flags & MMC_DATA_WRITE ? R1_ERROR
								     : R1_CARD_ECC_FAILED;
		break;
	case MMC_ERASE_GROUP_START:
		card->erase_first = cmd->arg;
		break;
	case MMC_ERASE_GROUP_END:
		card->erase_last = cmd->arg;
		break;
	case MMC_ERASE:
		do_erase(card, cmd, now_ns, answer);
		break;
	case MMC_STOP_TRANSMISSION:
	case MMC_SET_BLOCKLEN:
	case MMC_CMDQ_TASK_MGMT:
		break;
	default:
		cmd->error = -ETIMEDOUT;
		break;
	}
}

/* CMD23. The length also comes with the data; only the reliable write bit is used. */
static void prepare_transfer(struct emmc_card *card, struct mmc_command *sbc)
{
	card->reliable = sbc->arg & MMC_CMD23_ARG_REL_WR;
	answer_r1(card, sbc);
}

/* Called by the host for each request outside the command queue; may sleep. */
void emmc_card_command(struct emmc_card *card, struct mmc_request *mrq, u64 now_ns,
		       struct emmc_answer *answer)
{
	*answer = (struct emmc_answer){.finish_ns = now_ns};
	if (mrq->cmd->opcode != MMC_SEND_STATUS)
		emmc_card_cut_if_due(card);
	if (READ_ONCE(card->dead)) {
		mrq->cmd->error = -ETIMEDOUT;
		return;
	}
	mutex_lock(&card->lock);
	if (mrq->sbc)
		prepare_transfer(card, mrq->sbc);
	run_command(card, mrq->cmd, mrq->data, now_ns, answer);
	if (mrq->stop)
		answer_r1(card, mrq->stop);
	mutex_unlock(&card->lock);
}

/* Called for each data task of the command queue; may sleep. */
void emmc_card_task(struct emmc_card *card, struct mmc_request *mrq, u64 now_ns,
		    struct emmc_answer *answer)
{
	*answer = (struct emmc_answer){.finish_ns = now_ns};
	if (READ_ONCE(card->dead)) {
		mrq->data->error = -ETIMEDOUT;
		return;
	}
	mutex_lock(&card->lock);
	transfer(card, mrq->data, mrq->data->blk_addr, mrq->data->flags & MMC_DATA_REL_WR, now_ns,
		 answer);
	mutex_unlock(&card->lock);
}
