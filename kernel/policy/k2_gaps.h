/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The gaps between events that come again and again, and how long the next one may be.
 *
 * Gaps that lie together form a kind: periodic events have one kind, events in bursts have two, one
 * inside a burst and one between bursts. Of each kind is known, too, how far apart its gaps are:
 * where bursts take now longer, now shorter, the gap between them varies, but not the period at
 * which they begin. What was not seen again for two epochs is forgotten.
 *
 * Pure C: no allocation, no lock, no clock. Gaps are in units of K2_GAP_NS; longer ones than
 * K2_GAP_MAX, 18 minutes, count as that, so that sums of a few still fit.
 */
#ifndef K2_GAPS_H
#define K2_GAPS_H

#include "k2_types.h"

#define K2_GAP_SHIFT 10
#define K2_GAP_NS    1024ULL
#define K2_GAP_MAX   (~0U >> 2)
#define K2_KINDS     6
#define K2_SHORTEST  4

/* What lies together, of this epoch [0] and of the last [1]. count 0: nothing. */
struct k2_range {
	u32 shortest[2][K2_SHORTEST]; /* rising; ~0: none */
	u32 longest[2];
	u32 count[2];
	/* Of the next one: not before, and not after unless it is late. */
	u32 earliest, latest;
};

/* @range: forgotten first. */
void k2_range_forget(struct k2_range *range);
void k2_range_add(struct k2_range *range, u32 gap);
void k2_range_next_epoch(struct k2_range *range);
/* ~0 and 0 if there is none. */
u32 k2_range_shortest(const struct k2_range *range);
u32 k2_range_longest(const struct k2_range *range);
/* Are there enough, and do they differ by less than an eighth? */
bool k2_range_is_regular(const struct k2_range *range);

struct k2_kind {
	struct k2_range gap;
	struct k2_range apart; /* from the end of such a gap to the end of the next */
	u32 since; /* the last such gap ended so long before the last event */
};

/* Kinds in rising order. */
struct k2_gaps {
	u32 count; /* of all kinds */
	u32 kinds;
	struct k2_kind kind[K2_KINDS];
};

u32 k2_gap(u64 ns);

/* An event, @gap after the last one. */
void k2_gaps_add(struct k2_gaps *gaps, u32 gap);
void k2_gaps_next_epoch(struct k2_gaps *gaps);

/* How long the next gap may be, as far as was seen. Both 0: there is no telling. */
struct k2_window {
	u32 earliest, latest;
};

/* Of the next gap, of which @gap is over. */
struct k2_window k2_gaps_next(const struct k2_gaps *gaps, u32 gap);

/* The longest gap remembered; 0: none. */
u32 k2_gaps_longest(const struct k2_gaps *gaps);

/* How much gaps of the same kind differ, all kinds together. */
u32 k2_gaps_spread(const struct k2_gaps *gaps);

#endif /* K2_GAPS_H */
