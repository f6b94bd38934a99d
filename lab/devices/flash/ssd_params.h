/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The numbers of a drive. ssd_params.c has their meanings, ranges and defaults. */
#ifndef STEADY_SSD_PARAMS_H
#define STEADY_SSD_PARAMS_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>

/* The kernel's names, in user space. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

#define SSD_SLOT_SECTORS	8 /* 4 KiB: the unit of the map */
#define SSD_COMMAND_SECTORS_MAX 2048
#define SSD_BITS_MAX		3

struct ssd_params {
	/* Size and geometry. */
	u64 capacity_mib;
	u64 spare_permille;
	u64 channels;
	u64 dies_per_channel;
	u64 planes;
	u64 read_planes;
	u64 page_kib;
	u64 bits;
	u64 rows;
	u64 seed;
	/* Controller. */
	u64 queue_commands;
	u64 read_command_ns;
	u64 write_command_ns;
	u64 link_per_kib_ns;
	u64 read_front_ns;
	u64 write_front_ns;
	u64 discard_front_ns;
	/* Flash. */
	u64 read_lsb_ns;
	u64 read_csb_ns;
	u64 read_msb_ns;
	u64 retry_ppm;
	u64 retry_ns;
	u64 transfer_ns;
	u64 program_ns;
	u64 program_jitter_ns;
	u64 erase_ns;
	u64 erase_every;
	u64 read_streak;
	u64 suspend_ns;
	u64 resume_ns;
	u64 suspends_max;
	u64 ahead_pages;
	u64 ahead_kept;
	u64 house_period_us;
	u64 house_ns;
	/* Write buffer and map. */
	u64 buffer_kib;
	u64 map_permille;
	u64 map_cached;
	u64 slc_lines;
	u64 slc_program_ns;
	/* Garbage collection. */
	u64 gc_free_lines;
	u64 gc_reserve_lines;
	u64 gc_lag_permille;
	u64 gc_reads;
	/* State at the start. */
	u64 used_permille;
	u64 hot_permille;
};

/* One number: its place in struct ssd_params, and its range. */
struct ssd_number {
	const char *name;
	size_t offset;
	u64 low;
	u64 high;
	u64 value; /* default */
	const char *error; /* the text for a value out of range */
};

/* The last entry has no name. */
extern const struct ssd_number ssd_numbers[];

/* All defaults: the Samsung 970 EVO Plus 250 GB of experiments/devices, smaller. */
void ssd_params_default(struct ssd_params *params);

/* Returns which value is wrong and its range, or NULL if all are valid. */
const char *ssd_params_error(const struct ssd_params *params);

#endif
