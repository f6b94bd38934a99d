// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_grid.h"

/* The arrival so many before the next one. */
static u64 past_ns(const struct k2_grid *grid, u32 gaps)
{
	return grid->past_ns[(grid->count - gaps) % K2_GRID_PAST];
}

void k2_grid_init(struct k2_grid *grid)
{
	u32 i;

	grid->count = 0;
	for (i = 0; i < K2_GRID_SPANS; i++)
		k2_range_forget(&grid->span[i]);
}

void k2_grid_add(struct k2_grid *grid, u64 now_ns)
{
	u32 i;

	for (i = 0; i < K2_GRID_SPANS && grid->count >= 2U << i; i++) {
		u64 then_ns = past_ns(grid, 2U << i);
		u32 gap = k2_gap(now_ns > then_ns ? now_ns - then_ns : 0);

		/* A pause is not of the grid. */
		if (gap / 2 <= k2_range_shortest(&grid->span[i]))
			k2_range_add(&grid->span[i], gap);
	}
	grid->past_ns[grid->count % K2_GRID_PAST] = now_ns;
	grid->count++;
}

void k2_grid_next_epoch(struct k2_grid *grid)
{
	u32 i;

	for (i = 0; i < K2_GRID_SPANS; i++)
		k2_range_next_epoch(&grid->span[i]);
}

u64 k2_grid_earliest_ns(const struct k2_grid *grid)
{
	u64 earliest_ns = 0;
	u32 i;

	for (i = 0; i < K2_GRID_SPANS; i++) {
		const struct k2_range *span = &grid->span[i];
		u64 ns = past_ns(grid, 2U << i) + span->earliest * K2_GAP_NS;

		if (ns > earliest_ns && k2_range_is_regular(span))
			earliest_ns = ns;
	}
	return earliest_ns;
}

u64 k2_grid_latest_ns(const struct k2_grid *grid)
{
	u64 latest_ns = ~0ULL;
	u32 i;

	for (i = 0; i < K2_GRID_SPANS; i++) {
		const struct k2_range *span = &grid->span[i];
		u64 ns = past_ns(grid, 2U << i) + k2_range_longest(span) * K2_GAP_NS;

		if (ns < latest_ns && k2_range_is_regular(span))
			latest_ns = ns;
	}
	return latest_ns;
}
