/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The numbers of task_set.c: of the load, and of each task. */
#ifndef TASK_NUMBERS_H
#define TASK_NUMBERS_H

#include "k2_types.h"

#define TASKS_MAX 32

struct load_numbers {
	u64 inflight_max, split_kib, rt_block_us, background_wait_ms_max, max_sectors_kb;
	u64 host_us; /* added to each command */
	u64 bg_read, bg_write, bg_kib, bg_durable, bg_discard_kib;
	u64 bg_flush_us; /* shortest time between flushes; 0: none */
	u64 bg_depth; /* requests queued */
	u64 bg_whole; /* no request may be split */
	u64 fua_bypasses; /* as on 6.1 */
	u64 greedy; /* background is always queued, as large as possible; tasks are periodic */
	/* Limits of the card's times, for declared tasks. */
	u64 read_limit_ns, read_limit_per_kib_ns, write_limit_ns, write_limit_per_kib_ns;
	u64 trials, periods, load_seed;
};

struct task_numbers {
	u64 write, durable, level, kib, period_us, jitter_us, cpu_us;
	u64 ios, at_once; /* per job, and how many of them are submitted together */
	/* The task is declared if block_us is not 0. */
	u64 block_us, declared_jitter_us, think_us, exact;
};

extern struct load_numbers load;
/* One entry per task. */
extern struct task_numbers task_numbers[TASKS_MAX];
extern u32 task_count;

/* Parses the command line. False: it is invalid, and the reason was printed. */
bool task_numbers_parse(int count, char **words);

#endif /* TASK_NUMBERS_H */
