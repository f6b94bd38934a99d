// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The numbers of a drive: ranges, defaults, relations.
 *
 * The defaults are fitted to published measurements of one drive (docs/devices.md). Other models of
 * SSDs use the numbers below.
 *   NVMeVirt, its Samsung 970 PRO: 8 channels of 2 dies; read 30 us (LSB, 4 KiB) or 42 us, 21.5 us
 *   firmware on top; program 185 us per 32 KiB; a write buffer of 2 stripes over all dies.
 *   FEMU: 8 channels of 8 dies; read 40 us, program 200 us, erase 2 ms. For TLC: read 56/77/106 us,
 *   program 820/2225/5734 us, erase 3 ms.
 *   MQSim: read 75 us, program 75 us (750 us in its SSD examples), erase 3.8 ms; 7 %
 *   over-provisioning.
 */
#include "ssd.h"
#include "ssd_internal.h"

#define NUMBER(name, low, high, value)                                                             \
	{                                                                                          \
#name, offsetof(struct ssd_params, name), low, high, value,                        \
			#name ": must be a number in " #low ".." #high                             \
	}

const struct ssd_number ssd_numbers[] = {
	/* The size for the host, and the flash beyond it. */
	NUMBER(capacity_mib, 16, 4194304, 8192),
	NUMBER(spare_permille, 1, 2000, 99),
	NUMBER(channels, 1, 16, 8),
	NUMBER(dies_per_channel, 1, 16, 1),
	NUMBER(planes, 1, 4, 2), /* filled by one program */
	NUMBER(read_planes, 1, 4, 1), /* delivered by one read; must divide planes */
	NUMBER(page_kib, 4, 64, 16), /* of one plane; a multiple of 4 */
	NUMBER(bits, 1, 3, 3), /* per cell: pages per plane of one program */
	NUMBER(rows, 1, 4096, 92), /* programs of a block */
	NUMBER(seed, 0, 18446744073709551615ull, 1),
	/* The most commands inside the drive. */
	NUMBER(queue_commands, 1, 4096, 1024),
	/* Time of the controller per command, serial, and per KiB on the link. */
	NUMBER(read_command_ns, 0, 1000000000, 4550),
	NUMBER(write_command_ns, 0, 1000000000, 8360),
	NUMBER(link_per_kib_ns, 0, 10000000, 285),
	/* Time added to each command; commands overlap in it. */
	NUMBER(read_front_ns, 0, 1000000000, 34000),
	NUMBER(write_front_ns, 0, 1000000000, 4000),
	NUMBER(discard_front_ns, 0, 1000000000, 50000),
	/* A page read, by bit; one read in a million / retry_ppm takes retry_ns more. */
	NUMBER(read_lsb_ns, 1, 1000000000, 45000),
	NUMBER(read_csb_ns, 1, 1000000000, 50000),
	NUMBER(read_msb_ns, 1, 1000000000, 58000),
	NUMBER(retry_ppm, 0, 1000000, 0),
	NUMBER(retry_ns, 0, 1000000000, 0),
	NUMBER(transfer_ns, 0, 1000000000, 3000), /* of 4 KiB on a channel */
	NUMBER(program_ns, 1, 1000000000, 1528000), /* of all bits and planes, +- jitter */
	NUMBER(program_jitter_ns, 0, 1000000000, 65000), /* at most program_ns */
	NUMBER(erase_ns, 1, 1000000000, 3600000),
	/* One block in this many is erased: for lines that are smaller than those of the drive. */
	NUMBER(erase_every, 1, 1000, 4),
	/* This many reads in a row may go before a program or an erase that waits for the die. */
	NUMBER(read_streak, 1, 1000000, 8),
	/* Reads interrupt programs and erases: time to stop, time to resume; 0: reads wait. */
	NUMBER(suspend_ns, 0, 1000000000, 0),
	NUMBER(resume_ns, 0, 1000000000, 0),
	NUMBER(suspends_max, 1, 1000000, 16), /* of one program or erase */
	/*
	 * For a read that continues an earlier one, the die reads up to ahead_pages pages of the
	 * row at once, and the read waits for all. The controller's memory keeps the last
	 * ahead_kept such reads. 1: page by page.
	 */
	NUMBER(ahead_pages, 1, 48, 1),
	NUMBER(ahead_kept, 1, 64, 8),
	/* The dies in turn are busy for house_ns, one per period; 0: never. */
	NUMBER(house_period_us, 0, 1000000000, 0),
	NUMBER(house_ns, 0, 1000000000, 0),
	NUMBER(buffer_kib, 4, 1048576, 1376),
	/*
	 * A slot of the map covers 1024 slots. A write to a part of the map that is not among the
	 * last map_cached ones costs map_permille / 1000 of a slot.
	 */
	NUMBER(map_permille, 0, 4000, 644),
	NUMBER(map_cached, 1, 64, 16),
	/*
	 * The host's data first goes to lines with one bit per cell, while at most slc_lines are in
	 * use. They are copied while the drive has no command, or like any line. 0: there are none.
	 */
	NUMBER(slc_lines, 0, 10000, 0),
	NUMBER(slc_program_ns, 1, 1000000000, 200000),
	/* Copying begins when fewer lines are free; the last ones are reserved for copies. */
	NUMBER(gc_free_lines, 3, 10000, 6),
	NUMBER(gc_reserve_lines, 2, 10000, 2), /* fewer than gc_free_lines */
	NUMBER(gc_lag_permille, 0, 1000, 30), /* of a line: how far copies may lag */
	NUMBER(gc_reads, 1, 256, 32), /* concurrent page reads for copies */
	/*
	 * The first used_permille of the capacity were written, in order. Then the first
	 * hot_permille were overwritten at random until nothing changes any more.
	 */
	NUMBER(used_permille, 0, 1000, 0),
	NUMBER(hot_permille, 0, 1000, 0), /* at most used_permille */
	{},
};

static u64 *value_of(struct ssd_params *params, const struct ssd_number *number)
{
	return (u64 *)((u8 *)params + number->offset);
}

void ssd_params_default(struct ssd_params *params)
{
	const struct ssd_number *number;

	for (number = ssd_numbers; number->name; number++)
		*value_of(params, number) = number->value;
}

static const char *range_error(const struct ssd_params *params)
{
	const struct ssd_number *number;

	for (number = ssd_numbers; number->name; number++) {
		u64 value = *(const u64 *)((const u8 *)params + number->offset);

		if (value < number->low || value > number->high)
			return number->error;
	}
	return NULL;
}

const char *ssd_params_error(const struct ssd_params *params)
{
	const char *error = range_error(params);
	struct ssd_geometry geometry;
	u64 kept;

	if (error)
		return error;
	if (params->page_kib % 4)
		return "page_kib: must be a multiple of 4";
	if (params->planes % params->read_planes)
		return "read_planes: must divide planes";
	if (params->program_jitter_ns > params->program_ns)
		return "program_jitter_ns: must be at most program_ns";
	if (params->gc_reserve_lines >= params->gc_free_lines)
		return "gc_reserve_lines: must be less than gc_free_lines";
	if (params->hot_permille > params->used_permille)
		return "hot_permille: must be at most used_permille";
	if (params->house_ns && params->house_period_us * 500 < params->house_ns)
		return "house_period_us: must be at least twice house_ns";
	ssd_geometry(&geometry, params);
	/* Slots that do not fill a unit are programmed only by a flush. */
	if (params->buffer_kib / 4 < geometry.unit_slots + SSD_WRITE_SLOTS_MAX)
		return "buffer_kib: must be at least planes x page_kib x bits + 20";
	if (geometry.flash_slots > SSD_FLASH_SLOTS_MAX)
		return "capacity_mib: with the spare more than 15 TiB";
	/* Two lines may be open, and garbage collection needs a line that is not fully valid. */
	kept = params->gc_free_lines + 3 + params->slc_lines;
	if (geometry.lines < kept ||
	    geometry.map_slots_end > (geometry.lines - kept) * geometry.line_slots)
		return "spare_permille: the flash beyond the capacity must hold gc_free_lines + "
		       "slc_lines + 3 lines; larger spare, or fewer rows, or fewer of these lines";
	return NULL;
}
