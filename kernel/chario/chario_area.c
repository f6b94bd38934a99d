// SPDX-License-Identifier: GPL-2.0-only
/*
 * Selects the area of an eMMC for commands: the user area, where partitions are. Boot areas use the
 * same sector numbers.
 *
 * mmcblk switches to a boot area, stays there, and remembers the area. A lane switches to the user
 * area, and restores the area that mmcblk remembers. Otherwise a later write to a boot area would
 * go to the user area. For a whole card there is nothing to restore, but mmcblk may have failed to
 * switch back when it released the card.
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

/* Called with the host claimed, before each command and before a reset, which selects area 0. */
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
	/* Disable the command queue first: with it, the area cannot be switched. */
	if (card->ext_csd.cmdq_en && mmc_cmdq_disable(card))
		return -EIO;
	return choose_area(card, 0);
}

/* Called before the card returns to mmcblk. */
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
	/* mmcblk would now write to the wrong area, so it must not write at all. */
	if (error)
		mmc_card_set_removed(card);
	return error;
}
