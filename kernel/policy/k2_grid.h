/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Arrivals that keep to a grid: each a little off its place, by no more after a hundred of them.
 *
 * Problem: where each arrival is up to 0.2 ms off, the gap between two is up to 0.4 ms off, so the
 * last one alone tells the next only within 0.8 ms. Earlier ones tell more: it comes two periods
 * after the last but one, too, less what two such gaps were shorter. What all of them allow is
 * narrower.
 *
 * Over so many gaps as in K2_GRID_SPANS the shortest and the longest time are remembered. Of a
 * stream that keeps to no grid these differ by much, and tell nothing.
 *
 * Pure C: no allocation, no lock, no clock.
 */
#ifndef K2_GRID_H
#define K2_GRID_H

#include "k2_gaps.h"

/* 2, 4 and 8 gaps. */
#define K2_GRID_SPANS 3
#define K2_GRID_PAST  8

struct k2_grid {
	u64 past_ns[K2_GRID_PAST]; /* the last arrivals, a ring */
	u32 count; /* of all arrivals */
	struct k2_range span[K2_GRID_SPANS];
};

void k2_grid_init(struct k2_grid *grid);
void k2_grid_add(struct k2_grid *grid, u64 now_ns);
void k2_grid_next_epoch(struct k2_grid *grid);

/* The next arrival comes no earlier, and no later unless it is late, as far as is known. */
u64 k2_grid_earliest_ns(const struct k2_grid *grid);
u64 k2_grid_latest_ns(const struct k2_grid *grid);

#endif /* K2_GRID_H */
