// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Computes the state of a used drive, instead of reaching it by hours of writes.
 *
 * Written in order: one slot after the other.
 *
 * Overwritten at random until nothing changes: every slot of the hot part is equally likely to be
 * written next, and a slot of a line is still valid after each further line with the same
 * probability q. Lines by age hold f L, f L q, f L q^2, .. valid slots (L: slots of a line; f: the
 * part of them that is no map), down to the victim, the oldest of R. The victim's slots, x = q^R,
 * are copied into the line being written. The rest of that line is the host's, with m slots of the
 * map for each slot: f = 1 / ((1 + m) (1 - x) + x). All valid slots together are the hot part,
 * which determines q. (Desnoyers, "Analytic models of SSD write performance", 2014, has this for
 * lines by age. For large lines, greedy choice is that.)
 *
 * Integers: probabilities are multiples of 2^-32.
 */
#include "ssd_internal.h"

#define ONE	0x100000000ull
#define MISSING 2 /* free lines below gc_free_lines where copying keeps up with writing */

/* The lines with the hot part: the numbers that determine their valid slots. */
struct decay {
	u64 lines; /* R */
	u64 line_slots; /* L */
	u64 map; /* m */
	u64 keep; /* q */
	u64 user; /* f */
};

/* @value * @part, where @part is at most ONE. */
static u64 scaled(u64 value, u64 part)
{
	return (value >> 32) * part + ((value & (ONE - 1)) * part >> 32);
}

static u64 power(u64 base, u64 exponent)
{
	u64 result = ONE;

	for (; exponent; exponent >>= 1) {
		if (exponent & 1)
			result = scaled(result, base);
		base = scaled(base, base);
	}
	return result;
}

/* Sets keep and the values that depend on it; returns the resulting number of valid slots. */
static u64 valid_slots(struct decay *decay, u64 keep)
{
	u64 victim = power(keep, decay->lines);
	u64 host = ONE - victim + scaled(decay->map, ONE - victim);
	u64 lines; /* filled by the valid slots, in multiples of 2^-16 */

	decay->keep = keep;
	decay->user = (ONE << 31) / ((host + victim) / 2);
	lines = (((ONE - victim) << 16) / (ONE - keep) * (decay->user >> 16)) >> 16;
	return (decay->line_slots * lines) >> 16;
}

static void solve(struct decay *decay, u64 slots)
{
	u64 low = 0, high = ONE - 1;

	while (low < high) {
		u64 middle = low + (high - low + 1) / 2;

		if (valid_slots(decay, middle) <= slots)
			low = middle;
		else
			high = middle - 1;
	}
	valid_slots(decay, low);
}

/* Slots of the map per slot written at random to the hot part. */
static u64 map_writes(const struct ssd *ssd, u64 hot)
{
	u64 parts = (hot + SSD_MAP_SLOT_SLOTS - 1) / SSD_MAP_SLOT_SLOTS;
	u64 cached = ssd->params.map_cached;

	if (parts <= cached)
		return 0;
	return ONE * ssd->params.map_permille / 1000 * (parts - cached) / parts;
}

static u32 take_line(struct ssd *ssd)
{
	u32 line = ssd->free_lines.head;

	ssd_drop(&ssd->free_lines);
	return line;
}

static void put(struct ssd *ssd, u32 slot, u64 place)
{
	ssd->map[slot] = place;
	ssd->owner[place] = slot;
	ssd->lines[place / ssd->geometry.line_slots].valid++;
}

/* Gives slots first..end-1 their places one after the other, from *place on; opens lines. */
static void fill(struct ssd *ssd, u32 first, u32 end, u64 *place)
{
	u32 slot;

	for (slot = first; slot < end; slot++, (*place)++) {
		if (*place % ssd->geometry.line_slots == 0) {
			if (ssd->open.line != SSD_NONE)
				ssd->lines[ssd->open.line].closed = true;
			ssd->open.line = take_line(ssd);
		}
		put(ssd, slot, *place);
	}
}

/* Slots written in order, and their parts of the map; the last line stays open. */
static void fill_in_order(struct ssd *ssd, u32 hot, u32 used)
{
	const struct ssd_geometry *geometry = &ssd->geometry;
	u32 map_first = geometry->user_slots + hot / SSD_MAP_SLOT_SLOTS;
	u32 map_end = geometry->user_slots + (used + SSD_MAP_SLOT_SLOTS - 1) / SSD_MAP_SLOT_SLOTS;
	u64 place = 0;

	fill(ssd, hot, used, &place);
	fill(ssd, map_first, map_end, &place);
	ssd->open.unit = (place + geometry->unit_slots - 1) / geometry->unit_slots -
			 ssd->open.line * geometry->line_units;
	if (ssd->open.unit == geometry->line_units) {
		ssd->lines[ssd->open.line].closed = true;
		ssd->open.line = SSD_NONE;
	}
}

/*
 * Fills a line of the hot part with @valid slots at random places. The map collects the places,
 * from *slot on. The map's own slots get the remaining room of the line.
 */
static void scatter(struct ssd *ssd, u32 line, u32 valid, u32 *slot, u32 *map_slot, u32 map_end)
{
	u32 line_slots = ssd->geometry.line_slots, i;
	u64 first = (u64)line * line_slots;

	ssd->lines[line].closed = true;
	ssd->lines[line].valid += valid;
	for (i = 0; i < line_slots; i++) {
		if (valid && ssd_draw(ssd, line_slots - i) < valid) {
			valid--;
			ssd->map[(*slot)++] = first + i;
		} else if (*map_slot < map_end) {
			put(ssd, (*map_slot)++, first + i);
		}
	}
}

/* Assigns the slots to the places at random. */
static void shuffle(struct ssd *ssd, u32 slots)
{
	u32 slot;

	for (slot = slots - 1; slot; slot--) {
		u32 other = ssd_draw(ssd, slot + 1), place = ssd->map[slot];

		ssd->map[slot] = ssd->map[other];
		ssd->map[other] = place;
	}
	for (slot = 0; slot < slots; slot++)
		ssd->owner[ssd->map[slot]] = slot;
}

/* The youngest line is first. Lines without valid slots stay free. */
static void overwrite_at_random(struct ssd *ssd, u32 hot)
{
	u32 map_slot = ssd->geometry.user_slots, slot = 0, line;
	u32 map_end = map_slot + hot / SSD_MAP_SLOT_SLOTS;
	struct decay decay = {
		.lines = ssd->free_lines.count - (ssd->params.gc_free_lines - MISSING),
		.line_slots = ssd->geometry.line_slots,
		.map = map_writes(ssd, hot),
	};
	u64 expected, sum = 0;

	solve(&decay, hot);
	expected = decay.line_slots * decay.user; /* of the line, in multiples of 2^-32 */
	for (line = 0; line < decay.lines && slot < hot; line++) {
		u64 room = (decay.lines - 1 - line) * decay.line_slots;
		u64 valid;

		sum += expected;
		expected = scaled(expected, decay.keep);
		valid = ssd_max(sum >> 32, slot) - slot;
		if (valid > hot - slot)
			valid = hot - slot;
		/* The oldest line takes the remainder of the rounding. */
		if (hot - slot - valid > room)
			valid = hot - slot - room;
		if (!valid)
			continue;
		scatter(ssd, take_line(ssd), valid, &slot, &map_slot, map_end);
	}
	shuffle(ssd, hot);
}

void ssd_used(struct ssd *ssd)
{
	u32 used = (u64)ssd->geometry.user_slots * ssd->params.used_permille / 1000;
	u32 hot = (u64)ssd->geometry.user_slots * ssd->params.hot_permille / 1000;

	if (used > hot)
		fill_in_order(ssd, hot, used);
	if (hot)
		overwrite_at_random(ssd, hot);
}
