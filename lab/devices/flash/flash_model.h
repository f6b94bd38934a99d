/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Timing model of managed flash: when does the card finish a command?
 *
 * Problem: an emulated card must answer after the time a real one takes, deterministically, so that
 * a figure can be reproduced to the byte.
 *
 * Model: a card works on at most `depth` commands at a time (1: no command queue). A command is cut
 * along stripes over `units` that work in parallel. Their data crosses one bus, one piece
 * after the other. The first piece on a unit pays `base_ns`, every KiB pays `per_kib_ns`, and a
 * command that does not continue where the one before it ended pays `jump_ns` (mapping looked up,
 * read-ahead data is useless). Each time `pause_sectors` more have been written, a write waits
 * `pause_ns` (a block is full, the next one is prepared). In a slow episode (housekeeping of the
 * card) every command pays `slow_ns` more. Episodes are a function of (seed, time) alone, so
 * neither load nor order of requests moves them. A volatile cache accepts writes early and is
 * emptied by a flush, or by the write that finds no room.
 *
 * Three things that only some cards do are off by default. A card may keep several runs of writes
 * open: a write that continues any of the last `write_runs` does not jump, whatever was read in
 * between. It may stall: no command starts in a stall, and each `stall_period_ns` has one. It may
 * get hot: `hot_after_ns` of work, minus the time without work, slow each KiB down to
 * `hot_percent`, until half of that time is left.
 *
 * Not modelled: mapping tables, garbage collection that depends on past writes, wear.
 *
 * Pure C: no kernel headers, no floating point, no allocation, no clock, no locks; callers pass
 * the time in and serialise calls. Compiled into the emulated devices and into the unit tests.
 * 64-bit only: times are divided as 64-bit numbers.
 */
#ifndef STEADY_FLASH_MODEL_H
#define STEADY_FLASH_MODEL_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>

/* The kernel's names, in user space. */
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

#define FLASH_DEPTH_MAX	   32 /* tasks of an eMMC command queue (JESD84-B51, CMDQ_DEPTH) */
#define FLASH_UNITS_MAX	   16
#define FLASH_FAULTS_MAX   8
#define FLASH_RUNS_MAX	   16
#define FLASH_SECTOR_BYTES 512

enum flash_op {
	FLASH_READ,
	FLASH_WRITE,
	FLASH_ERASE,
	FLASH_FLUSH,
	FLASH_OPS,
	FLASH_ANY_OP = FLASH_OPS, /* in faults only */
};

enum flash_outcome {
	FLASH_DONE,
	FLASH_FAILED, /* the card reports an error at finish_ns */
	FLASH_SILENT, /* the card never answers: the host's own time limit ends it */
};

/* Time of one operation: base + KiB * per_kib +- jitter, + jump, + slow in a slow episode. */
struct flash_cost {
	u64 base_ns;
	u32 per_kib_ns;
	u64 jump_ns; /* reads and writes only */
	u64 slow_ns;
	u64 jitter_ns; /* uniform in [-jitter_ns, +jitter_ns]; at most base_ns */
};

enum flash_fault_when {
	FLASH_AT_OP, /* the first-th operation of this kind, counted from 1 */
	FLASH_AT_SECTORS, /* every operation that touches sectors first..last */
	FLASH_AT_RANDOM, /* first in a million operations, by the seed */
};

struct flash_fault {
	enum flash_op on;
	enum flash_outcome outcome; /* FLASH_FAILED or FLASH_SILENT */
	enum flash_fault_when when;
	u64 first;
	u64 last;
};

struct flash_params {
	u64 seed;
	u32 depth; /* 1..FLASH_DEPTH_MAX */
	u32 units; /* 1..FLASH_UNITS_MAX */
	u32 stripe_sectors; /* > 0: consecutive sectors on one unit */
	u32 bus_per_kib_ns;
	u64 slow_period_ns; /* one episode in each period; 0: never slow */
	u64 slow_length_ns; /* at most 3/4 of the period */
	u64 pause_sectors; /* 0: never */
	u64 pause_ns;
	u32 write_runs; /* that stay open; 0: the last read or write is the only run */
	u64 stall_period_ns; /* one stall in each period; 0: never */
	u64 stall_low_ns; /* its length is drawn between these two */
	u64 stall_high_ns; /* at most 3/4 of the period */
	u64 hot_after_ns; /* of work; 0: never hot */
	u32 hot_percent; /* time per KiB while hot, of that while cool; at least 100 */
	u32 cache_kib; /* 0: write-through */
	u64 cache_base_ns; /* time to accept a write into the cache */
	u32 cache_per_kib_ns;
	u32 fault_count;
	struct flash_cost cost[FLASH_OPS];
	struct flash_fault fault[FLASH_FAULTS_MAX];
};

struct flash_model {
	struct flash_params params;
	u64 slot_free_ns[FLASH_DEPTH_MAX];
	u64 unit_free_ns[FLASH_UNITS_MAX];
	u64 bus_free_ns;
	u64 next_sector; /* where the last read or write ended */
	enum flash_op last_op;
	u64 run_end[FLASH_RUNS_MAX]; /* of open runs of writes, the latest first */
	u64 heat_ns; /* work that has not cooled off */
	u64 worked_until_ns;
	bool hot;
	u64 written_sectors; /* on the flash, since the start */
	u64 cached_sectors; /* accepted, not yet on the flash */
	u64 submitted; /* operations so far: the jitter's counter */
	u64 fault_seen[FLASH_FAULTS_MAX];
};

struct flash_request {
	enum flash_op op;
	u64 sector;
	u64 sectors; /* 0 for a flush */
	bool durable; /* write only: past the cache (reliable write, FUA) */
};

struct flash_result {
	u64 start_ns;
	u64 finish_ns;
	enum flash_outcome outcome;
	bool cached; /* write: accepted by the cache, lost if power fails */
	bool drained; /* everything cached before is on the flash now */
};

/* Returns false, and does not change *model, if a value is outside the ranges above. */
bool flash_init(struct flash_model *model, const struct flash_params *params);

/*
 * Called once per request in the order the card receives them; now_ns never decreases.
 * Fills *result; the card's state already includes the request afterwards.
 */
void flash_submit(struct flash_model *model, const struct flash_request *request, u64 now_ns,
		  struct flash_result *result);

/* Power failed or was switched off: nothing is in flight and the cache is empty. */
void flash_power_off(struct flash_model *model);

/* Whether a command that starts at time_ns falls into a slow episode. */
bool flash_is_slow(const struct flash_params *params, u64 time_ns);

/* Returns when a command starts that could start at time_ns: then, or at the end of a stall. */
u64 flash_after_stall(const struct flash_params *params, u64 time_ns);

#endif
