// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_gaps.h"

#define NONE (~0U)
/* 40 us. A gap belongs to a kind if it is not further from it than an eighth of itself, or this. */
#define KIND_DISTANCE 40U
/* See range_margin(). */
#define MARGIN_MIN	     20U
#define MARGIN_DISTANCES     3U
#define MARGIN_DISTANCES_FEW 6U
/* So many gaps are few: what is known of the edge may be chance. */
#define FEW 128
/* How far gaps of a kind are apart counts if that is known of so many. */
#define APART_MIN 16
/* Ignore a kind with fewer gaps than this, or than the second if there are few gaps in all. */
#define REGULAR_MIN	4
#define REGULAR_MIN_FEW 16
/* Epochs. */
#define NOW    0
#define BEFORE 1

static u32 min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static u32 max_u32(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* Sums of gaps stay gaps. */
static u32 plus(u32 a, u32 b)
{
	return min_u32(a + b, K2_GAP_MAX);
}

static u32 minus(u32 a, u32 b)
{
	return a > b ? a - b : 0;
}

u32 k2_gap(u64 ns)
{
	return ns >> K2_GAP_SHIFT < K2_GAP_MAX ? (u32)(ns >> K2_GAP_SHIFT) : K2_GAP_MAX;
}

/* Ranges. */

u32 k2_range_shortest(const struct k2_range *range)
{
	return min_u32(range->shortest[NOW][0], range->shortest[BEFORE][0]);
}

u32 k2_range_longest(const struct k2_range *range)
{
	return max_u32(range->longest[NOW], range->longest[BEFORE]);
}

static u32 range_spread(const struct k2_range *range)
{
	return k2_range_longest(range) - k2_range_shortest(range);
}

static u32 range_count(const struct k2_range *range)
{
	return range->count[NOW] + range->count[BEFORE];
}

/*
 * By how much the next one may be shorter than all before: a multiple of the distance between the
 * shortest ones, which shows how sharp the edge is, and the more the fewer there are.
 */
static u32 range_margin(const struct k2_range *range)
{
	u32 shortest = k2_range_shortest(range), distance = 0;
	u32 count = range_count(range), epoch, shift = 2;
	u32 distances = count < FEW ? MARGIN_DISTANCES_FEW : MARGIN_DISTANCES;
	bool is_known = false;

	for (epoch = 0; epoch < 2; epoch++) {
		u32 last = range->shortest[epoch][K2_SHORTEST - 1];

		if (last == NONE)
			continue;
		is_known = true;
		distance = max_u32(distance, last - range->shortest[epoch][0]);
	}
	if (!is_known)
		return shortest >> 2;
	/* shortest / (4 * count), without a division */
	for (; count > 1; count >>= 1)
		shift++;
	/* No edge: the next may be as short as can be. */
	if (distance >= shortest / distances)
		return shortest;
	return min_u32(distances * distance + (shortest >> shift) + MARGIN_MIN, shortest);
}

static void draw_limits(struct k2_range *range)
{
	u32 longest = k2_range_longest(range);

	u32 count = range_count(range);
	u32 more = count >= REGULAR_MIN && count < FEW / 2 ? longest : longest >> 3;

	range->latest = plus(longest, more + KIND_DISTANCE);
	range->earliest = range_count(range) ? k2_range_shortest(range) - range_margin(range) : 0;
}

static void forget_epoch(struct k2_range *range, u32 epoch)
{
	u32 i;

	for (i = 0; i < K2_SHORTEST; i++)
		range->shortest[epoch][i] = NONE;
	range->longest[epoch] = 0;
	range->count[epoch] = 0;
}

void k2_range_forget(struct k2_range *range)
{
	forget_epoch(range, NOW);
	forget_epoch(range, BEFORE);
	draw_limits(range);
}

static void note(struct k2_range *range, u32 epoch, u32 gap)
{
	u32 *shortest = range->shortest[epoch];
	u32 i;

	range->longest[epoch] = max_u32(range->longest[epoch], gap);
	for (i = 0; i < K2_SHORTEST; i++) {
		u32 other = shortest[i];

		if (gap >= other)
			continue;
		shortest[i] = gap;
		gap = other;
	}
}

void k2_range_add(struct k2_range *range, u32 gap)
{
	note(range, NOW, gap);
	range->count[NOW]++;
	draw_limits(range);
}

/* @from becomes part of @to. */
static void join(struct k2_range *to, const struct k2_range *from)
{
	u32 epoch, i;

	for (epoch = 0; epoch < 2; epoch++) {
		for (i = 0; i < K2_SHORTEST && from->shortest[epoch][i] != NONE; i++)
			note(to, epoch, from->shortest[epoch][i]);
		to->longest[epoch] = max_u32(to->longest[epoch], from->longest[epoch]);
		to->count[epoch] += from->count[epoch];
	}
	draw_limits(to);
}

void k2_range_next_epoch(struct k2_range *range)
{
	u32 i;

	for (i = 0; i < K2_SHORTEST; i++)
		range->shortest[BEFORE][i] = range->shortest[NOW][i];
	range->longest[BEFORE] = range->longest[NOW];
	range->count[BEFORE] = range->count[NOW];
	forget_epoch(range, NOW);
	draw_limits(range);
}

bool k2_range_is_regular(const struct k2_range *range)
{
	return range_count(range) >= APART_MIN &&
	       range_spread(range) < k2_range_shortest(range) >> 3;
}

/* Kinds. */

static void remove_kind(struct k2_gaps *gaps, u32 i)
{
	gaps->kinds--;
	for (; i < gaps->kinds; i++)
		gaps->kind[i] = gaps->kind[i + 1];
}

static void join_with_next(struct k2_gaps *gaps, u32 i)
{
	struct k2_kind *kind = &gaps->kind[i];

	join(&kind->gap, &kind[1].gap);
	/* How far apart those of both are was not measured. */
	k2_range_forget(&kind->apart);
	kind->since = min_u32(kind->since, kind[1].since);
	remove_kind(gaps, i + 1);
}

/* Are they so near that they are one kind? */
static bool touch(u32 low, u32 high)
{
	return high <= low || high - low <= (high >> 3) + KIND_DISTANCE;
}

static void join_nearest(struct k2_gaps *gaps)
{
	u32 nearest = NONE, i, at = 0;

	for (i = 0; i + 1 < gaps->kinds; i++) {
		u32 distance = minus(k2_range_shortest(&gaps->kind[i + 1].gap),
				     k2_range_longest(&gaps->kind[i].gap));

		if (distance < nearest) {
			nearest = distance;
			at = i;
		}
	}
	join_with_next(gaps, at);
}

static void insert_kind(struct k2_gaps *gaps, u32 at)
{
	struct k2_kind *kind = &gaps->kind[at];
	u32 i;

	for (i = gaps->kinds; i > at; i--)
		gaps->kind[i] = gaps->kind[i - 1];
	k2_range_forget(&kind->gap);
	k2_range_forget(&kind->apart);
	kind->since = NONE;
	gaps->kinds++;
}

/* The kind that @gap belongs to; made if there is none. */
static u32 kind_of(struct k2_gaps *gaps, u32 gap)
{
	u32 i = 0;

	while (i < gaps->kinds && !touch(k2_range_longest(&gaps->kind[i].gap), gap))
		i++;
	/* The kinds before are all shorter. */
	if (i < gaps->kinds && touch(gap, k2_range_shortest(&gaps->kind[i].gap)))
		return i;
	if (gaps->kinds == K2_KINDS) {
		join_nearest(gaps);
		return kind_of(gaps, gap);
	}
	insert_kind(gaps, i);
	return i;
}

void k2_gaps_add(struct k2_gaps *gaps, u32 gap)
{
	u32 at = kind_of(gaps, gap), i;
	struct k2_kind *kind = &gaps->kind[at];
	bool follows_itself = kind->since == 0;

	for (i = 0; i < gaps->kinds; i++)
		if (gaps->kind[i].since != NONE)
			gaps->kind[i].since = plus(gaps->kind[i].since, gap);
	/* Two in a row: how far apart they are is their length. */
	if (follows_itself)
		k2_range_forget(&kind->apart);
	else if (kind->since != NONE)
		k2_range_add(&kind->apart, kind->since);
	kind->since = 0;
	k2_range_add(&kind->gap, gap);
	gaps->count++;
	if (at + 1 < gaps->kinds &&
	    touch(k2_range_longest(&kind->gap), k2_range_shortest(&gaps->kind[at + 1].gap)))
		join_with_next(gaps, at);
}

void k2_gaps_next_epoch(struct k2_gaps *gaps)
{
	u32 i = 0;

	gaps->count = 0;
	while (i < gaps->kinds) {
		struct k2_kind *kind = &gaps->kind[i];

		if (!kind->gap.count[NOW]) {
			remove_kind(gaps, i);
			continue;
		}
		k2_range_next_epoch(&kind->gap);
		k2_range_next_epoch(&kind->apart);
		gaps->count += range_count(&kind->gap);
		i++;
	}
}

/* Was such a gap seen often enough to be no accident? */
static bool is_regular(const struct k2_kind *kind)
{
	return range_count(&kind->gap) >= REGULAR_MIN;
}

/* Do such gaps end at regular times, at least as regular as their length is? */
static bool has_rhythm(const struct k2_kind *kind)
{
	return range_count(&kind->apart) >= APART_MIN &&
	       range_spread(&kind->apart) <= range_spread(&kind->gap);
}

/* The shortest gap of this kind that may be next. Of a few that may be no accidents, it is any. */
static u32 kind_earliest(const struct k2_kind *kind, bool are_few)
{
	if (are_few && range_count(&kind->gap) < REGULAR_MIN_FEW)
		return 0;
	if (has_rhythm(kind))
		return minus(kind->apart.earliest, kind->since);
	return kind->gap.earliest;
}

/*
 * Between two kinds there is no gap only if they are far apart and the later one is no accident: a
 * late request is then not taken for one of the other kind. Is there such a kind from @i on?
 */
static bool is_far(const struct k2_gaps *gaps, u32 i, u32 latest)
{
	for (; i < gaps->kinds; i++)
		if (is_regular(&gaps->kind[i]) && gaps->kind[i].gap.earliest >= 2 * latest)
			return true;
	return false;
}

static struct k2_window window(const struct k2_kind *kind, u32 earliest)
{
	u32 latest = has_rhythm(kind) ? minus(k2_range_longest(&kind->apart), kind->since)
				      : k2_range_longest(&kind->gap);

	return (struct k2_window){earliest, plus(latest, KIND_DISTANCE)};
}

struct k2_window k2_gaps_next(const struct k2_gaps *gaps, u32 gap)
{
	static const struct k2_window no_telling;
	u32 latest = 0, i;

	for (i = 0; i < gaps->kinds; i++) {
		const struct k2_kind *kind = &gaps->kind[i];
		u32 earliest = kind_earliest(kind, gaps->count < FEW);

		/* One such gap has just been. */
		if (earliest > kind->gap.latest)
			continue;
		if (gap < earliest && latest && !is_far(gaps, i, latest))
			return no_telling;
		if (gap <= kind->gap.latest)
			return window(kind, earliest);
		if (is_regular(kind))
			latest = kind->gap.latest;
	}
	return no_telling;
}

u32 k2_gaps_longest(const struct k2_gaps *gaps)
{
	return gaps->kinds ? k2_range_longest(&gaps->kind[gaps->kinds - 1].gap) : 0;
}

u32 k2_gaps_spread(const struct k2_gaps *gaps)
{
	u32 spread = 0, i;

	for (i = 0; i < gaps->kinds; i++)
		spread = plus(spread, range_spread(&gaps->kind[i].gap));
	return spread;
}
