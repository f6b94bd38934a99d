// SPDX-License-Identifier: GPL-2.0-only
/* Log pages (section 5.14): errors, SMART, firmware. */
#include <linux/math64.h>
#include <linux/slab.h>

#include "steady_nvme.h"

#define PAGE_BYTES     4096
#define ERROR_BYTES    64 /* one entry, which is empty */
#define FIRMWARE_BYTES 512
#define DATA_UNIT      1000 /* sectors, in SMART */
#define SPARE_PERCENT  100
#define KELVIN_40_C    313

static void fill_smart(struct snvme *dev, struct nvme_smart_log *log)
{
	struct snvme_stats stats;

	spin_lock_irq(&dev->lock);
	stats = dev->stats;
	spin_unlock_irq(&dev->lock);
	log->temperature[0] = KELVIN_40_C & 0xff;
	log->temperature[1] = KELVIN_40_C >> 8;
	log->avail_spare = SPARE_PERCENT;
	log->spare_thresh = 10;
	snvme_put_u128(log->data_units_read, DIV_ROUND_UP_ULL(stats.read_sectors, DATA_UNIT));
	snvme_put_u128(log->data_units_written, DIV_ROUND_UP_ULL(stats.written_sectors, DATA_UNIT));
	snvme_put_u128(log->host_reads, stats.reads);
	snvme_put_u128(log->host_writes, stats.writes);
	snvme_put_u128(log->power_cycles, 1);
	snvme_put_u128(log->media_errors, stats.failed);
}

/* Returns the length of the log, or 0: there is no such log. */
static u32 fill(struct snvme *dev, u8 id, void *page)
{
	switch (id) {
	case NVME_LOG_ERROR:
		return ERROR_BYTES;
	case NVME_LOG_SMART:
		fill_smart(dev, page);
		return sizeof(struct nvme_smart_log);
	case NVME_LOG_FW_SLOT:
		*(u8 *)page = 1; /* slot 1 is active */
		memcpy(page + 8, "1       ", 8);
		return FIRMWARE_BYTES;
	}
	return 0;
}

/* Called by the worker. Bytes beyond the end of a log read as zeroes. */
u16 snvme_get_log(struct snvme *dev, const struct nvme_command *command)
{
	const struct nvme_get_log_page_command *get = &command->get_log_page;
	u64 bytes = ((le16_to_cpu(get->numdu) << 16 | le16_to_cpu(get->numdl)) + 1ull) * 4;
	u64 offset = le64_to_cpu(get->lpo);
	u16 status;
	u32 length;
	void *page;

	page = kzalloc(2 * PAGE_BYTES, GFP_NOIO);
	if (!page)
		return NVME_SC_INTERNAL;
	length = fill(dev, get->lid, page);
	if (!length)
		status = NVME_SC_INVALID_LOG_PAGE | SNVME_DNR;
	else if (bytes > PAGE_BYTES || offset % 4 || offset > length)
		status = NVME_SC_INVALID_FIELD | SNVME_DNR;
	else
		status = snvme_dma_to_host(command, page + offset, bytes);
	kfree(page);
	return status;
}
