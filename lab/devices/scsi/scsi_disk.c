// SPDX-License-Identifier: GPL-2.0-only
/*
 * The disk: executes commands, moves data, computes the answer of a command and its time.
 *
 * Data moves when the command arrives, but the answer is due later. No program can observe this:
 * the data of a request is undefined before its completion.
 *
 * It has what the kernel's sd driver asks of a plain disk (SPC-2) of up to 2 TiB, without discard.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <scsi/scsi_device.h>
#include <scsi/scsi_proto.h>

#include "steady_scsi.h"

#define SPC_2		    4 /* version in INQUIRY */
#define INQUIRY_BYTES	    36
#define CACHING_PAGE	    0x08
#define CACHING_PAGE_BYTES  20
#define ALL_PAGES	    0x3f
#define DPOFUA		    0x10 /* in the mode parameter header */
#define WRITE_CACHE_ENABLED 0x04 /* in the caching page */
#define FUA		    0x08 /* in byte 1 of a read or write */

/* Additional sense codes (SPC). */
#define ASC_WRITE_ERROR	      0x0c
#define ASC_READ_ERROR	      0x11
#define ASC_INVALID_OPCODE    0x20
#define ASC_LBA_OUT_OF_RANGE  0x21
#define ASC_INVALID_CDB_FIELD 0x24

int sscsi_disk_create(struct sscsi_disk *disk, const struct sscsi_config *config)
{
	int err;

	memset(disk, 0, sizeof(*disk));
	disk->config = config;
	mutex_init(&disk->lock);
	if (!flash_init(&disk->flash, &config->flash))
		return -EINVAL;
	disk->bounce = kvmalloc(SSCSI_REQUEST_BYTES, GFP_KERNEL);
	if (!disk->bounce)
		return -ENOMEM;
	disk->store = media_store_create(config->sectors * FLASH_SECTOR_BYTES, config->path);
	if (IS_ERR(disk->store)) {
		err = PTR_ERR(disk->store);
		kvfree(disk->bounce);
		return err;
	}
	return 0;
}

void sscsi_disk_destroy(struct sscsi_disk *disk)
{
	media_store_destroy(disk->store);
	kvfree(disk->bounce);
	mutex_destroy(&disk->lock);
}

/* SCSI's numbers begin with the highest byte. */
static u64 get_number(const u8 *from, size_t bytes)
{
	u64 value = 0;

	while (bytes--)
		value = value << 8 | *from++;
	return value;
}

static void put_number(u64 value, u8 *to, size_t bytes)
{
	while (bytes--) {
		to[bytes] = value;
		value >>= 8;
	}
}

static void fail(struct scsi_cmnd *cmd, u8 key, u8 code)
{
	scsi_build_sense(cmd, 0, key, code, 0);
}

/* Returns up to @len bytes; the kernel may ask for fewer. */
static void reply(struct scsi_cmnd *cmd, const void *from, size_t len)
{
	size_t copied = scsi_sg_copy_from_buffer(cmd, (void *)from, len);

	scsi_set_resid(cmd, scsi_bufflen(cmd) - copied);
}

static void inquiry(struct sscsi_disk *disk, struct scsi_cmnd *cmd)
{
	u8 data[INQUIRY_BYTES] = {[2] = SPC_2, [3] = 2, [4] = INQUIRY_BYTES - 5};

	if (cmd->cmnd[1] & 1) { /* vital product data */
		fail(cmd, ILLEGAL_REQUEST, ASC_INVALID_CDB_FIELD);
		return;
	}
	memset(data + 8, ' ', INQUIRY_BYTES - 8);
	memcpy(data + 8, "steadyio", 8);
	memcpy(data + 16, disk->config->name, strlen(disk->config->name));
	memcpy(data + 32, "0001", 4);
	reply(cmd, data, sizeof(data));
}

static void mode_sense(struct sscsi_disk *disk, struct scsi_cmnd *cmd)
{
	u8 page = cmd->cmnd[2] & ALL_PAGES;
	u8 data[4 + CACHING_PAGE_BYTES] = {};
	size_t len = 4;

	if (page == CACHING_PAGE || page == ALL_PAGES) {
		data[4] = CACHING_PAGE;
		data[5] = CACHING_PAGE_BYTES - 2;
		data[6] = disk->config->flash.cache_kib ? WRITE_CACHE_ENABLED : 0;
		len += CACHING_PAGE_BYTES;
	}
	data[0] = len - 1;
	data[2] = disk->config->flash.cache_kib ? DPOFUA : 0;
	reply(cmd, data, len);
}

static void read_capacity(struct sscsi_disk *disk, struct scsi_cmnd *cmd)
{
	u8 data[8];

	put_number(disk->config->sectors - 1, data, 4);
	put_number(FLASH_SECTOR_BYTES, data + 4, 4);
	reply(cmd, data, sizeof(data));
}

/* Runs an operation through the timing model. Returns whether it has an effect. */
static bool submit(struct sscsi_disk *disk, struct scsi_cmnd *cmd,
		   const struct flash_request *request, u64 now_ns, struct sscsi_answer *answer,
		   struct flash_result *result)
{
	lockdep_assert_held(&disk->lock);
	flash_submit(&disk->flash, request, now_ns, result);
	disk->stats.ops[request->op]++;
	answer->finish_ns = result->finish_ns;
	answer->silent = result->outcome == FLASH_SILENT;
	disk->stats.silent += answer->silent;
	if (result->outcome == FLASH_FAILED) {
		disk->stats.failed++;
		fail(cmd, MEDIUM_ERROR,
		     request->op == FLASH_READ ? ASC_READ_ERROR : ASC_WRITE_ERROR);
	}
	return result->outcome == FLASH_DONE;
}

/* Moves the data of a request that the model has accepted. */
static int move_data(struct sscsi_disk *disk, struct scsi_cmnd *cmd,
		     const struct flash_request *request, const struct flash_result *result)
{
	u64 pos = request->sector * FLASH_SECTOR_BYTES;
	size_t len = request->sectors * FLASH_SECTOR_BYTES;
	int err;

	if (request->op == FLASH_READ) {
		err = media_store_read(disk->store, pos, disk->bounce, len);
		if (!err)
			scsi_sg_copy_from_buffer(cmd, disk->bounce, len);
		return err;
	}
	err = result->drained ? media_store_drain(disk->store) : 0;
	if (err)
		return err;
	scsi_sg_copy_to_buffer(cmd, disk->bounce, len);
	if (result->cached)
		return media_store_write_cached(disk->store, pos, disk->bounce, len);
	disk->stats.durable_writes++;
	return media_store_write(disk->store, pos, disk->bounce, len);
}

/* Reads or writes; the issuer's direction decides. Without sectors there is nothing to do. */
static void transfer(struct sscsi_disk *disk, struct scsi_cmnd *cmd, u64 sector, u64 sectors,
		     u64 now_ns, struct sscsi_answer *answer)
{
	struct flash_request request = {
		.op = cmd->sc_data_direction == DMA_TO_DEVICE ? FLASH_WRITE : FLASH_READ,
		.sector = sector,
		.sectors = sectors,
		.durable = cmd->cmnd[1] & FUA,
	};
	u64 capacity = disk->config->sectors;
	struct flash_result result;

	if (sector >= capacity || sectors > capacity - sector) {
		fail(cmd, ILLEGAL_REQUEST, ASC_LBA_OUT_OF_RANGE);
		return;
	}
	if (sectors * FLASH_SECTOR_BYTES > min(scsi_bufflen(cmd), SSCSI_REQUEST_BYTES)) {
		fail(cmd, ILLEGAL_REQUEST, ASC_INVALID_CDB_FIELD);
		return;
	}
	if (!sectors || !submit(disk, cmd, &request, now_ns, answer, &result))
		return;
	if (move_data(disk, cmd, &request, &result))
		fail(cmd, HARDWARE_ERROR, 0);
}

static void flush(struct sscsi_disk *disk, struct scsi_cmnd *cmd, u64 now_ns,
		  struct sscsi_answer *answer)
{
	struct flash_request request = {.op = FLASH_FLUSH};
	struct flash_result result;

	if (submit(disk, cmd, &request, now_ns, answer, &result) && result.drained &&
	    media_store_drain(disk->store))
		fail(cmd, HARDWARE_ERROR, 0);
}

static void run_command(struct sscsi_disk *disk, struct scsi_cmnd *cmd, u64 now_ns,
			struct sscsi_answer *answer)
{
	const u8 *cdb = cmd->cmnd;

	switch (cdb[0]) {
	case TEST_UNIT_READY:
	case START_STOP:
		break;
	case INQUIRY:
		inquiry(disk, cmd);
		break;
	case MODE_SENSE:
		mode_sense(disk, cmd);
		break;
	case READ_CAPACITY:
		read_capacity(disk, cmd);
		break;
	case READ_10:
	case WRITE_10:
		transfer(disk, cmd, get_number(cdb + 2, 4), get_number(cdb + 7, 2), now_ns, answer);
		break;
	case SYNCHRONIZE_CACHE:
		flush(disk, cmd, now_ns, answer);
		break;
	default:
		fail(cmd, ILLEGAL_REQUEST, ASC_INVALID_OPCODE);
	}
}

/* Called once per command, in the order of their arrival. */
void sscsi_disk_command(struct sscsi_disk *disk, struct scsi_cmnd *cmd, u64 now_ns,
			struct sscsi_answer *answer)
{
	mutex_lock(&disk->lock);
	run_command(disk, cmd, now_ns, answer);
	mutex_unlock(&disk->lock);
}
