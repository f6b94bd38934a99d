// SPDX-License-Identifier: GPL-2.0-only
/*
 * I/O commands: checks them, times them, and moves their data.
 *
 * Data moves when the command arrives, but the answer comes later. No program can observe this: a
 * request's data is undefined before its completion. Writes are stored at once, even if the drive's
 * buffer is volatile: the power of this drive does not fail.
 */
#include <linux/slab.h>

#include "steady_nvme.h"

static const struct {
	enum ssd_op drive;
	enum flash_op fault;
	u16 failure; /* status of an injected error */
} kinds[] = {
	[nvme_cmd_flush] = {SSD_FLUSH, FLASH_FLUSH, NVME_SC_INTERNAL},
	[nvme_cmd_write] = {SSD_WRITE, FLASH_WRITE, NVME_SC_WRITE_FAULT},
	[nvme_cmd_read] = {SSD_READ, FLASH_READ, NVME_SC_READ_ERROR},
	[nvme_cmd_write_zeroes] = {SSD_DISCARD, FLASH_ERASE, NVME_SC_WRITE_FAULT},
	[nvme_cmd_dsm] = {SSD_DISCARD, FLASH_ERASE, NVME_SC_WRITE_FAULT},
};

static u64 namespace_start(const struct snvme *dev, u32 nsid)
{
	return (nsid - 1) * dev->config->namespace_sectors;
}

static bool is_in_namespace(const struct snvme *dev, u64 sector, u64 sectors)
{
	u64 size = dev->config->namespace_sectors;

	return sector <= size && sectors <= size - sector;
}

static u16 check_range(struct snvme *dev, struct snvme_slot *slot)
{
	const struct nvme_rw_command *rw = &slot->command.rw;
	u64 sector = le64_to_cpu(rw->slba);

	slot->sectors = le16_to_cpu(rw->length) + 1;
	if (!is_in_namespace(dev, sector, slot->sectors))
		return NVME_SC_LBA_RANGE | SNVME_DNR;
	slot->sector = namespace_start(dev, le32_to_cpu(rw->nsid)) + sector;
	return 0;
}

static u16 check_transfer(struct snvme *dev, struct snvme_slot *slot)
{
	const struct nvme_rw_command *rw = &slot->command.rw;
	u16 status = check_range(dev, slot);

	if (status)
		return status;
	if (slot->sectors > dev->config->mdts_kib * 2)
		return NVME_SC_INVALID_FIELD | SNVME_DNR;
	return snvme_dma_walk(le64_to_cpu(rw->dptr.prp1), le64_to_cpu(rw->dptr.prp2),
			      slot->sectors * SNVME_SECTOR_BYTES, NULL, NULL);
}

static u16 check_namespace(struct snvme *dev, const struct nvme_command *command)
{
	u32 nsid = le32_to_cpu(command->common.nsid);

	if (nsid == NVME_NSID_ALL && command->common.opcode == nvme_cmd_flush)
		return 0;
	if (!nsid || nsid > dev->config->namespaces)
		return NVME_SC_INVALID_NS | SNVME_DNR;
	return 0;
}

/* Fused commands and SGLs are not supported. */
static u16 check(struct snvme *dev, struct snvme_slot *slot)
{
	const struct nvme_common_command *command = &slot->command.common;
	u16 status;

	if (command->flags)
		return NVME_SC_INVALID_FIELD | SNVME_DNR;
	switch (command->opcode) {
	case nvme_cmd_flush:
	case nvme_cmd_dsm:
		return check_namespace(dev, &slot->command);
	case nvme_cmd_write_zeroes:
		status = check_namespace(dev, &slot->command);
		return status ?: check_range(dev, slot);
	case nvme_cmd_read:
	case nvme_cmd_write:
		status = check_namespace(dev, &slot->command);
		return status ?: check_transfer(dev, slot);
	default:
		return NVME_SC_INVALID_OPCODE | SNVME_DNR;
	}
}

static void count(struct snvme *dev, const struct snvme_slot *slot, bool fua)
{
	struct snvme_stats *stats = &dev->stats;

	switch (slot->command.common.opcode) {
	case nvme_cmd_read:
		stats->reads++;
		stats->read_sectors += slot->sectors;
		break;
	case nvme_cmd_write:
		stats->writes++;
		stats->written_sectors += slot->sectors;
		stats->fua_writes += fua;
		break;
	case nvme_cmd_flush:
		stats->flushes++;
		break;
	case nvme_cmd_dsm:
		stats->discards++;
		break;
	case nvme_cmd_write_zeroes:
		stats->zeroes++;
		break;
	}
}

static void give_to_drive(struct snvme *dev, struct snvme_slot *slot, bool fua, u64 now_ns)
{
	struct ssd_command command = {
		.tag = slot - dev->slots,
		.op = slot->op,
		.sector = slot->sector,
		.sectors = slot->sectors,
		.fua = fua,
	};

	slot->parts |= SNVME_TIME;
	slot->in_drive = true;
	/* There is room (snvme.rooms), and check() has validated the range. */
	WARN_ON(!ssd_submit(dev->ssd, &command, now_ns));
}

/* A write ends on the flash if it has FUA, or if the host has disabled the volatile cache. */
static bool is_fua(const struct snvme *dev, const struct snvme_slot *slot)
{
	if (slot->command.common.opcode != nvme_cmd_write)
		return false;
	return le16_to_cpu(slot->command.rw.control) & NVME_RW_FUA ||
	       (dev->config->volatile_cache && !(dev->feature[NVME_FEAT_VOLATILE_WC] & 1));
}

static enum flash_outcome outcome_of(struct snvme *dev, const struct snvme_slot *slot)
{
	struct flash_faults faults = {
		.seed = dev->config->ssd.seed,
		.count = dev->config->fault_count,
		.fault = dev->config->fault,
		.seen = dev->fault_seen,
	};

	return flash_faults_outcome(&faults, kinds[slot->command.common.opcode].fault, slot->sector,
				    slot->sectors);
}

/* Called with the lock held, for each command out of an I/O queue. */
void snvme_io_start(struct snvme *dev, struct snvme_slot *slot, u64 now_ns)
{
	bool fua = is_fua(dev, slot);
	u8 opcode = slot->command.common.opcode;
	enum flash_outcome outcome;

	dev->stats.inflight++;
	dev->stats.inflight_max = max(dev->stats.inflight_max, dev->stats.inflight);
	slot->status = check(dev, slot);
	if (slot->status) {
		dev->stats.refused++;
		snvme_wait_fixed(dev, slot, now_ns);
		return;
	}
	slot->op = kinds[opcode].drive;
	count(dev, slot, fua);
	outcome = outcome_of(dev, slot);
	if (outcome == FLASH_SILENT) {
		dev->stats.silent++;
		slot->silent = true;
		slot->parts = SNVME_TIME;
		return;
	}
	slot->room = true;
	dev->rooms++;
	if (outcome == FLASH_FAILED) {
		dev->stats.failed++;
		slot->status = kinds[opcode].failure;
	}
	/* The host's memory has the ranges of a discard: the worker reads and then times it. */
	if (opcode != nvme_cmd_dsm)
		give_to_drive(dev, slot, fua, now_ns);
	else if (slot->status)
		snvme_wait_fixed(dev, slot, now_ns);
	if (opcode != nvme_cmd_flush && !slot->status)
		snvme_give_to_worker(dev, slot);
}

struct data_job {
	struct snvme *dev;
	u64 pos;
	int err;
};

static u16 read_segment(void *context, void *at, u32 bytes, u32 done)
{
	struct data_job *job = context;

	job->err = media_store_read(job->dev->store, job->pos + done, at, bytes);
	return job->err ? NVME_SC_READ_ERROR : 0;
}

static u16 write_segment(void *context, void *at, u32 bytes, u32 done)
{
	struct data_job *job = context;

	job->err = media_store_write(job->dev->store, job->pos + done, at, bytes);
	return job->err ? NVME_SC_WRITE_FAULT : 0;
}

static u16 move_data(struct snvme *dev, const struct snvme_slot *slot)
{
	const struct nvme_rw_command *rw = &slot->command.rw;
	struct data_job job = {.dev = dev, .pos = slot->sector * SNVME_SECTOR_BYTES};

	return snvme_dma_walk(le64_to_cpu(rw->dptr.prp1), le64_to_cpu(rw->dptr.prp2),
			      slot->sectors * SNVME_SECTOR_BYTES,
			      rw->opcode == nvme_cmd_read ? read_segment : write_segment, &job);
}

static u16 store_zeroes(struct snvme *dev, u64 sector, u64 sectors)
{
	int err = media_store_zero(dev->store, sector * SNVME_SECTOR_BYTES,
				   sectors * SNVME_SECTOR_BYTES);

	return err ? NVME_SC_WRITE_FAULT : 0;
}

/* Reads the ranges of a discard, and zeroes them if all of them are valid. */
static u16 discard(struct snvme *dev, struct snvme_slot *slot)
{
	const struct nvme_dsm_cmd *dsm = &slot->command.dsm;
	u32 count = (le32_to_cpu(dsm->nr) & 0xff) + 1, index;
	u64 start = namespace_start(dev, le32_to_cpu(dsm->nsid));
	struct nvme_dsm_range *ranges;
	u16 status;

	if (!(le32_to_cpu(dsm->attributes) & NVME_DSMGMT_AD))
		return 0; /* hints only */
	ranges = kmalloc_array(count, sizeof(*ranges), GFP_NOIO);
	if (!ranges)
		return NVME_SC_INTERNAL;
	slot->ranges = ranges;
	status = snvme_dma_from_host(&slot->command, ranges, count * sizeof(*ranges));
	for (index = 0; index < count && !status; index++)
		if (!is_in_namespace(dev, le64_to_cpu(ranges[index].slba),
				     le32_to_cpu(ranges[index].nlb)))
			status = NVME_SC_LBA_RANGE | SNVME_DNR;
	for (index = 0; index < count && !status; index++)
		status = store_zeroes(dev, start + le64_to_cpu(ranges[index].slba),
				      le32_to_cpu(ranges[index].nlb));
	slot->range_count = status ? 0 : count;
	return status;
}

/* Gives the next range of a discard to the drive, one at a time; false: there is none. */
bool snvme_io_next_range(struct snvme *dev, struct snvme_slot *slot, u64 now_ns)
{
	lockdep_assert_held(&dev->lock);
	while (slot->range < slot->range_count) {
		const struct nvme_dsm_range *range = &slot->ranges[slot->range++];

		slot->sector = namespace_start(dev, le32_to_cpu(slot->command.dsm.nsid)) +
			       le64_to_cpu(range->slba);
		slot->sectors = le32_to_cpu(range->nlb);
		if (!slot->sectors)
			continue;
		give_to_drive(dev, slot, false, now_ns);
		return true;
	}
	return false;
}

static void start_discard(struct snvme *dev, struct snvme_slot *slot)
{
	u64 now_ns;

	spin_lock_irq(&dev->lock);
	if (!slot->orphan) {
		now_ns = ktime_get_ns();
		if (!snvme_io_next_range(dev, slot, now_ns))
			snvme_wait_fixed(dev, slot, now_ns);
		snvme_timer_at(dev, now_ns);
	}
	spin_unlock_irq(&dev->lock);
}

/* Called by the worker, without the lock. */
void snvme_io_work(struct snvme *dev, struct snvme_slot *slot)
{
	u16 status;

	if (READ_ONCE(slot->orphan))
		return;
	switch (slot->command.common.opcode) {
	case nvme_cmd_write_zeroes:
		status = store_zeroes(dev, slot->sector, slot->sectors);
		break;
	case nvme_cmd_dsm:
		status = discard(dev, slot);
		break;
	default:
		status = move_data(dev, slot);
		break;
	}
	slot->status = status;
	if (slot->command.common.opcode == nvme_cmd_dsm)
		start_discard(dev, slot);
}
