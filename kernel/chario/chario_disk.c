// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creates and ends a device, and checks which parts of it a call may access.
 *
 * Its memory lives until the last file is closed (cdev_device_add() ties the device to the cdev,
 * and each open inode refers to that). The card is gone earlier.
 */
#include <linux/log2.h>
#include <linux/mmc/card.h>
#include <linux/mmc/mmc.h>
#include <linux/mmc/sd.h>
#include <linux/slab.h>

#include "chario.h"

#include "card.h"
#include "core.h"
#include "host.h"
#include "mmc_names.h"

#define BG_KIB_DEFAULT 128

/* Commands address 2^32 sectors; larger cards need a prefix that chario does not support. */
#define BYTES_MAX ((u64)U32_MAX * CHARIO_SECTOR_BYTES)

/* The present partition of a lane. False: the disk is a whole card, or gone. */
static bool part_now(struct chario_disk *disk, struct chario_part *part)
{
	struct chario_queue *queue = &disk->queue;
	bool is_part;

	if (!queue->lane)
		return false;
	spin_lock_irq(&queue->lock);
	is_part = !queue->gone;
	if (is_part)
		*part = chario_lane_part(queue->lane);
	spin_unlock_irq(&queue->lock);
	return is_part;
}

static u64 part_bytes(const struct chario_disk *disk, const struct chario_part *part)
{
	u64 begin = min(part->first_sector * CHARIO_SECTOR_BYTES, BYTES_MAX);

	return round_down(min(part->sectors * CHARIO_SECTOR_BYTES, BYTES_MAX - begin),
			  (u64)disk->block_bytes);
}

/* The present size of the device. */
u64 chario_disk_bytes(struct chario_disk *disk)
{
	struct chario_part part;

	return part_now(disk, &part) ? part_bytes(disk, &part) : disk->bytes;
}

bool chario_disk_can_write(struct chario_disk *disk)
{
	struct chario_part part;

	return disk->can_write && !(part_now(disk, &part) && part.read_only);
}

/* Returns 0 or an error: a call must lie inside one region, and a write in a writable one. */
int chario_disk_may(struct chario_disk *disk, u64 offset, u64 bytes, bool write)
{
	const struct chario_regions *regions = &disk->regions;
	u32 i;

	if (write && !chario_disk_can_write(disk))
		return -EROFS;
	if (!regions->count)
		return 0;
	for (i = 0; i < regions->count; i++) {
		const struct chario_region *region = &regions->region[i];

		if (offset < region->offset || offset - region->offset >= region->bytes)
			continue;
		if (bytes > region->bytes - (offset - region->offset))
			return -EACCES;
		return write && region->read_only ? -EROFS : 0;
	}
	return -EACCES;
}

static void disk_free(struct device *dev)
{
	struct chario_disk *disk = container_of(dev, struct chario_disk, dev);

	chario_devt_free(dev->devt);
	kfree(disk);
}

static u64 card_bytes(const struct mmc_card *card)
{
	if (mmc_card_mmc(card) && mmc_card_blockaddr(card))
		return (u64)card->ext_csd.sectors * CHARIO_SECTOR_BYTES;
	return (u64)card->csd.capacity << card->csd.read_blkbits;
}

static void learn_host(struct chario_disk *disk, const struct mmc_host *host)
{
	u32 sectors = min(host->max_blk_count, host->max_req_size / CHARIO_SECTOR_BYTES);

	disk->segments_max = host->max_segs;
	disk->segment_bytes_max = round_down(host->max_seg_size, disk->block_bytes);
	disk->host_command_bytes = round_down(sectors * CHARIO_SECTOR_BYTES, disk->block_bytes);
	disk->host_command_bytes = min(disk->host_command_bytes, CHARIO_CHUNK_BYTES);
}

/* CMD23 and reliable write need support in the card's registers and the host. */
static void learn_commands(struct chario_disk *disk, const struct mmc_card *card)
{
	if (mmc_host_can_cmd23(card->host))
		disk->has_cmd23 = (mmc_card_mmc(card) && card->csd.mmca_vsn >= CSD_SPEC_VER_3) ||
				  (mmc_card_sd(card) && card->scr.cmds & SD_SCR_CMD23_SUPPORT);
	if (!mmc_card_mmc(card) || !disk->has_cmd23)
		return;
	disk->has_reliable_write = card->ext_csd.rel_param & EXT_CSD_WR_REL_PARAM_EN ||
				   card->ext_csd.rel_sectors;
	if (!(card->ext_csd.rel_param & EXT_CSD_WR_REL_PARAM_EN))
		disk->reliable_sectors = card->ext_csd.rel_sectors;
}

static void learn_card(struct chario_disk *disk, struct mmc_card *card)
{
	disk->bytes = min(card_bytes(card), BYTES_MAX);
	disk->block_bytes = CHARIO_SECTOR_BYTES;
	if (mmc_card_mmc(card) && card->ext_csd.data_sector_size)
		disk->block_bytes = card->ext_csd.data_sector_size;
	disk->bytes = round_down(disk->bytes, disk->block_bytes);
	disk->can_write = !mmc_card_readonly(card) && card->csd.cmdclass & CCC_BLOCK_WRITE;
	disk->has_cache = mmc_cache_enabled(card->host);
	disk->erase_arg = card->erase_arg;
	disk->erase_bytes = card->pref_erase * CHARIO_SECTOR_BYTES;
	/* Only if any block can be discarded: not with coarse erase, nor if CMD38 is not enough. */
	disk->can_discard = disk->can_write && mmc_card_can_erase(card) &&
			    (mmc_card_sd(card) || card->erase_arg != MMC_ERASE_ARG) &&
			    !(card->quirks & MMC_QUIRK_INAND_CMD38);
}

static void learn_part(struct chario_disk *disk, const struct chario_part *part)
{
	disk->mode = CHARDISK_MODE_LANE;
	disk->queue.lane = part->lane;
	chario_lane_gets(part->lane, disk);
	disk->first_sector = part->first_sector;
	disk->bytes = part_bytes(disk, part);
}

static int check_regions(const struct chario_disk *disk)
{
	const struct chario_regions *regions = &disk->regions;
	u32 i;

	for (i = 0; i < regions->count; i++) {
		const struct chario_region *region = &regions->region[i];

		if (region->bytes > disk->bytes || region->offset > disk->bytes - region->bytes) {
			pr_err("%s: region %llu+%llu: beyond the end of %s, %llu bytes\n",
			       CHARIO_NAME, region->offset, region->bytes, disk->card_name,
			       disk->bytes);
			return -ERANGE;
		}
		if (!chario_is_aligned(disk, region->offset | region->bytes)) {
			pr_err("%s: region %llu+%llu: not in multiples of %u bytes\n", CHARIO_NAME,
			       region->offset, region->bytes, disk->block_bytes);
			return -EINVAL;
		}
	}
	return 0;
}

static int disk_setup(struct chario_disk *disk, struct mmc_card *card,
		      const struct chario_part *part)
{
	int error;

	disk->card = card;
	disk->mode = CHARDISK_MODE_OWN;
	disk->bg_kib = BG_KIB_DEFAULT;
	strscpy(disk->card_name, dev_name(&card->dev), sizeof(disk->card_name));
	learn_card(disk, card);
	learn_host(disk, card->host);
	learn_commands(disk, card);
	if (part)
		learn_part(disk, part);
	error = check_regions(disk);
	if (error)
		return error;
	chario_queue_init(&disk->queue);
	cdev_init(&disk->cdev, &chario_fops);
	disk->cdev.owner = THIS_MODULE;
	return chario_devt_alloc(&disk->dev.devt);
}

/* Called by probe, and by lane.c with a part. On return the device can be opened. */
struct chario_disk *chario_disk_create(struct mmc_card *card, const struct chario_regions *regions,
				       const struct chario_part *part)
{
	struct chario_disk *disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	int error;

	if (!disk)
		return ERR_PTR(-ENOMEM);
	disk->regions = *regions;
	error = disk_setup(disk, card, part);
	if (error) {
		kfree(disk);
		return ERR_PTR(error);
	}
	device_initialize(&disk->dev);
	disk->dev.class = &chario_class;
	disk->dev.parent = &card->dev;
	disk->dev.groups = chario_groups;
	disk->dev.release = disk_free;
	error = dev_set_name(&disk->dev, "chardisk%u", MINOR(disk->dev.devt));
	if (!error)
		error = cdev_device_add(&disk->cdev, &disk->dev);
	if (error) {
		put_device(&disk->dev);
		return ERR_PTR(error);
	}
	return disk;
}

/* Called by remove. Waiting callers get ENODEV; chario does not use the card afterwards. */
void chario_disk_end(struct chario_disk *disk)
{
	cdev_device_del(&disk->cdev, &disk->dev);
	chario_queue_end(disk);
	put_device(&disk->dev);
}
