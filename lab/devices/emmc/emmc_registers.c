// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registers of a card: CID, CSD, EXT_CSD (JEDEC JESD84-B51, sections 7.2 to 7.4). They have the
 * fields that the kernel's MMC stack needs for an eMMC 5.1 card in HS400, and the config's values.
 * All other fields read as "not supported".
 */
#include <linux/bits.h>
#include <linux/mmc/mmc.h>
#include <linux/string.h>

#include "emmc.h"

/* Puts @value into bits start+size-1..start of a 128-bit register, the format of R2 answers. */
static void put_bits(u32 reg[4], unsigned int start, unsigned int size, u32 value)
{
	unsigned int bit;

	for (bit = 0; bit < size; bit++)
		if (value & BIT(bit))
			reg[3 - (start + bit) / 32] |= BIT((start + bit) % 32);
}

/* The serial number is the config's seed: the card of a spec is the same in each boot. */
void emmc_registers_cid(const struct emmc_config *config, u32 cid[4])
{
	unsigned int i;

	memset(cid, 0, 4 * sizeof(*cid));
	put_bits(cid, 112, 2, 1); /* CBX: BGA, embedded */
	for (i = 0; i < EMMC_NAME_CHARS; i++)
		put_bits(cid, 96 - 8 * i, 8, config->name[i] ?: ' ');
	put_bits(cid, 48, 8, 0x10); /* PRV 1.0 */
	put_bits(cid, 16, 32, (u32)config->flash.seed);
	put_bits(cid, 8, 8, 0x1b); /* MDT: January 2024 */
	put_bits(cid, 0, 1, 1);
}

void emmc_registers_csd(u32 csd[4])
{
	memset(csd, 0, 4 * sizeof(*csd));
	put_bits(csd, 126, 2, CSD_STRUCT_EXT_CSD);
	put_bits(csd, 122, 4, CSD_SPEC_VER_4);
	/*
	 * TAAC 50 ms: the kernel's data time limit is 10 times this for reads, so an emulated
	 * time-out costs 500 ms, and 2^R2W_FACTOR times that for writes.
	 */
	put_bits(csd, 112, 8, 0x67);
	put_bits(csd, 96, 8, 0x32); /* TRAN_SPEED 26 MHz */
	put_bits(csd, 84, 12,
		 CCC_BASIC | CCC_BLOCK_READ | CCC_BLOCK_WRITE | CCC_ERASE | CCC_SWITCH);
	put_bits(csd, 80, 4, 9); /* READ_BL_LEN: 512 */
	put_bits(csd, 62, 12, 0xfff); /* C_SIZE: size is in EXT_CSD */
	put_bits(csd, 47, 3, 7); /* C_SIZE_MULT */
	put_bits(csd, 42, 5, 31); /* ERASE_GRP_SIZE and _MULT: 1024 sectors */
	put_bits(csd, 37, 5, 31);
	put_bits(csd, 26, 3, 2); /* R2W_FACTOR */
	put_bits(csd, 22, 4, 9); /* WRITE_BL_LEN: 512 */
	put_bits(csd, 0, 1, 1);
}

static void put_le32(u8 *ext_csd, unsigned int at, u32 value)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		ext_csd[at + i] = value >> (8 * i);
}

void emmc_registers_ext_csd(const struct emmc_config *config, u8 *ext_csd)
{
	memset(ext_csd, 0, EMMC_EXT_CSD_BYTES);
	ext_csd[EXT_CSD_REV] = 8; /* eMMC 5.1 */
	ext_csd[EXT_CSD_STRUCTURE] = 2;
	ext_csd[EXT_CSD_CARD_TYPE] = EXT_CSD_CARD_TYPE_HS | EXT_CSD_CARD_TYPE_HS200_1_8V |
				     EXT_CSD_CARD_TYPE_HS400_1_8V;
	put_le32(ext_csd, EXT_CSD_SEC_CNT, config->sectors);
	ext_csd[EXT_CSD_HC_ERASE_GRP_SIZE] = 1; /* 512 KiB */
	ext_csd[EXT_CSD_HC_WP_GRP_SIZE] = 1;
	ext_csd[EXT_CSD_ERASE_TIMEOUT_MULT] = 1;
	ext_csd[EXT_CSD_TRIM_MULT] = 1;
	ext_csd[EXT_CSD_SEC_FEATURE_SUPPORT] = EXT_CSD_SEC_GB_CL_EN;
	ext_csd[EXT_CSD_PART_SWITCH_TIME] = 10;
	ext_csd[EXT_CSD_GENERIC_CMD6_TIME] = 50;
	ext_csd[EXT_CSD_POWER_OFF_LONG_TIME] = 50;
	ext_csd[EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A] = 1;
	ext_csd[EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_B] = 1;
	ext_csd[EXT_CSD_PRE_EOL_INFO] = 1;
	if (config->flash.cache_kib) {
		/* In kilobits. Without a cache no data is volatile, and FUA has no effect. */
		put_le32(ext_csd, EXT_CSD_CACHE_SIZE, config->flash.cache_kib * 8);
		ext_csd[EXT_CSD_WR_REL_PARAM] = EXT_CSD_WR_REL_PARAM_EN;
		ext_csd[EXT_CSD_REL_WR_SEC_C] = 1;
	}
	if (config->queue_depth) {
		ext_csd[EXT_CSD_CMDQ_SUPPORT] = EXT_CSD_CMDQ_SUPPORTED;
		ext_csd[EXT_CSD_CMDQ_DEPTH] = config->queue_depth - 1;
	}
}
