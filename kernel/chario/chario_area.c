// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which area of an eMMC the commands go to: the user area, where partitions are. Boot areas have
 * sectors of the same numbers.
 *
 * mmcblk switches to a boot area and stays there, and remembers where it is. A lane switches back
 * to the user area, and leaves the card as mmcblk remembers it: else a later write to a boot area
 * would go to the user area. On a whole card nobody remembers anything, but mmcblk may have
 * failed to switch back when it gave the card up.
 */
#include <linux/mmc/card.h>
#include <linux/mmc/mmc.h>

#include "chario.h"

#include "card.h"
#include "core.h"
#include "mmc_ops.h"

static u8 area_of(const struct mmc_card *card)
{
	return mmc_card_mmc(card) ? card->ext_csd.part_config & EXT_CSD_PART_CONFIG_ACC_MASK : 0;
}

static int choose_area(struct mmc_card *card, u8 area)
{
	u8 config = (card->ext_csd.part_config & ~EXT_CSD_PART_CONFIG_ACC_MASK) | area;
	int error = mmc_switch(card, EXT_CSD_CMD_SET_NORMAL, EXT_CSD_PART_CONFIG, config,
			       card->ext_csd.part_time);

	if (!error)
		card->ext_csd.part_config = config;
	return error;
}

/* Called with the host claimed, before each command and before a reset, which forgets the area. */
void chario_area_note(struct chario_disk *disk)
{
	u8 area = area_of(disk->card);

	if (area && disk->queue.lane)
		disk->queue.other_area = area;
}

/* Called with the host claimed, before each command. */
int chario_area_enter(struct chario_disk *disk)
{
	struct mmc_card *card = disk->card;

	if (!area_of(card))
		return 0;
	/* The queue first, which does not let the area be switched. */
	if (card->ext_csd.cmdq_en && mmc_cmdq_disable(card))
		return -EIO;
	return choose_area(card, 0);
}

/* Called before mmcblk has the card again. */
int chario_area_leave(struct chario_disk *disk)
{
	struct mmc_card *card = disk->card;
	u8 area = disk->queue.other_area;
	int error;

	disk->queue.other_area = 0;
	if (!area)
		return 0;
	error = choose_area(card, area);
	if (error && !mmc_hw_reset(card))
		error = choose_area(card, area);
	/* What mmcblk writes now would be in the wrong area: it must not write. */
	if (error)
		mmc_card_set_removed(card);
	return error;
}
