/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * k2's look-ahead as ssd_load.c calls it. The policy and the SSD model each have the kernel's
 * types, so nothing includes both.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>

#define GUARD_NEVER (~0ULL)

/* @pace_kb_s: the background writes at this pace; 0: at the one that the policy learns. */
void guard_begin(unsigned int rt_block_us, unsigned int pace_kb_s);

/* A request of the real-time process comes, or has ended. */
void guard_rt_arrival(bool write, unsigned long long now_ns);
void guard_rt_end(unsigned long long now_ns);

/* May the background dispatch @bytes beside @inflight others? */
bool guard_allows(bool write, unsigned int bytes, unsigned int inflight, unsigned long long now_ns);
/* If not and none is in flight, when to ask again. */
unsigned long long guard_wait_until_ns(void);

/* A command goes to the drive; returns its number for guard_done(). */
unsigned int guard_watch(bool write, unsigned int bytes, unsigned int inflight,
			 unsigned long long now_ns);
void guard_done(unsigned int flight, unsigned long long now_ns);

#endif /* GUARD_H */
