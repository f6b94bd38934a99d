// SPDX-License-Identifier: GPL-2.0-only
/*
 * The write log: all changes of the device's content, in order, so that `steady-lab power-cut` can
 * rebuild the content after a power cut at any moment.
 *
 * One record per write, erase, discard, flush and loss of power, followed by a write's data unless
 * it is zeroes. A record has the times when the command arrived and ended: a cut in between tears
 * it. A write has the flag CACHED when only the volatile cache holds it. A flush, or a later write
 * with the flag DRAINED, makes all data cached before it stable. Commands that failed by an
 * injected fault changed nothing and are not logged. docs/devices.md has the layout.
 *
 * Callers serialise (the device's lock) and may sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <asm/byteorder.h>
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "media.h"

#define LOG_MAGIC	 "EMMCLOG1"
#define LOG_RECORD_MAGIC 0x52434d45 /* "EMCR" */

struct log_header {
	u8 magic[8];
	__le64 sectors;
	__le32 cache_kib;
	__le32 queue_depth;
};

struct log_record {
	__le32 magic;
	__le16 kind;
	__le16 flags;
	__le64 sequence; /* from 0, without gaps */
	__le64 sector;
	__le64 sectors;
	__le64 arrived_ns; /* CLOCK_MONOTONIC of the guest, as is finish_ns */
	__le64 finish_ns;
	__le32 data_bytes; /* that follow */
	__le32 reserved;
};

enum log_flags {
	LOG_CACHED = BIT(0),
	LOG_DURABLE = BIT(1), /* the host asked for it: reliable write, FUA */
	LOG_DRAINED = BIT(2),
	LOG_ZEROES = BIT(3), /* no data follow */
};

struct media_log {
	struct file *file;
	u64 pos;
	u64 sequence;
	bool broken;
};

static void put(struct media_log *log, const void *from, size_t len)
{
	int err;

	if (log->broken)
		return;
	err = media_file_write(log->file, log->pos, from, len);
	log->pos += len;
	if (!err)
		return;
	log->broken = true;
	pr_err("write_log ends early: cannot be written: %d\n", err);
}

struct media_log *media_log_create(const char *path, u64 sectors, u32 cache_kib, u32 queue_depth)
{
	struct log_header header = {
		.sectors = cpu_to_le64(sectors),
		.cache_kib = cpu_to_le32(cache_kib),
		.queue_depth = cpu_to_le32(queue_depth),
	};
	struct media_log *log = kzalloc(sizeof(*log), GFP_KERNEL);
	int err;

	BUILD_BUG_ON(sizeof(struct log_header) != 24 || sizeof(struct log_record) != 56);
	if (!log)
		return ERR_PTR(-ENOMEM);
	log->file = media_file_open("write_log", path, O_TRUNC);
	if (IS_ERR(log->file)) {
		err = PTR_ERR(log->file);
		kfree(log);
		return ERR_PTR(err);
	}
	memcpy(header.magic, LOG_MAGIC, sizeof(header.magic));
	put(log, &header, sizeof(header));
	return log;
}

void media_log_destroy(struct media_log *log)
{
	if (!log)
		return;
	filp_close(log->file, NULL);
	kfree(log);
}

static void put_record(struct media_log *log, enum media_log_kind kind, u16 flags, u64 sector,
		       u64 sectors, u64 arrived_ns, u64 finish_ns, u32 data_bytes)
{
	struct log_record record = {
		.magic = cpu_to_le32(LOG_RECORD_MAGIC),
		.kind = cpu_to_le16(kind),
		.flags = cpu_to_le16(flags),
		.sequence = cpu_to_le64(log->sequence++),
		.sector = cpu_to_le64(sector),
		.sectors = cpu_to_le64(sectors),
		.arrived_ns = cpu_to_le64(arrived_ns),
		.finish_ns = cpu_to_le64(finish_ns),
		.data_bytes = cpu_to_le32(data_bytes),
	};

	put(log, &record, sizeof(record));
}

void media_log_write(struct media_log *log, const struct flash_request *request, u64 arrived_ns,
		     const struct flash_result *result, const void *data)
{
	size_t len = request->sectors * FLASH_SECTOR_BYTES;
	u16 flags = 0;

	if (!log)
		return;
	if (result->cached)
		flags |= LOG_CACHED;
	if (result->drained)
		flags |= LOG_DRAINED;
	if (request->durable)
		flags |= LOG_DURABLE;
	if (!memchr_inv(data, 0, len)) {
		flags |= LOG_ZEROES;
		len = 0;
	}
	put_record(log, MEDIA_LOG_WRITE, flags, request->sector, request->sectors, arrived_ns,
		   result->finish_ns, len);
	if (len)
		put(log, data, len);
}

void media_log_no_data(struct media_log *log, enum media_log_kind kind,
		       const struct flash_request *request, u64 arrived_ns, u64 finish_ns)
{
	if (log)
		put_record(log, kind, 0, request->sector, request->sectors, arrived_ns, finish_ns,
			   0);
}

/* Called when the card loses power, and when power returns: the cache is lost. */
void media_log_power_off(struct media_log *log)
{
	u64 now_ns;

	/* Without a log the clock is not read, as that takes virtual time. */
	if (!log)
		return;
	now_ns = ktime_get_ns();
	put_record(log, MEDIA_LOG_POWER_OFF, 0, 0, 0, now_ns, now_ns, 0);
}
