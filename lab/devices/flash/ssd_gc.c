// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Garbage collection. When fewer than gc_free_lines are free, the line with the fewest valid slots
 * is the victim. With v of its L slots valid, it yields L - v slots. Thus v slots are copied per L
 * - v slots that the host writes, one unit ahead. Dies that work for the host delay copying; when
 * it is behind by more than gc_lag_permille of a line, programs of the host wait. When the host has
 * used its free lines, or the drive has no command, copying runs at the speed of the dies. While
 * the drive is idle, lines with one bit per cell are victims even if no line is needed.
 */
#include "ssd_internal.h"

/* Each missing line speeds copying up by this part; otherwise none would be regained. */
#define MISSING_PART 8

/* The closed line with the fewest valid slots, of those with one bit per cell only, or of all. */
static u32 emptiest(const struct ssd *ssd, bool slc_only)
{
	u32 line, best = SSD_NONE, fewest = ssd->geometry.line_slots;

	for (line = 0; line < ssd->geometry.lines; line++) {
		const struct ssd_line *one = &ssd->lines[line];

		if (one->closed && !one->programs && one->valid < fewest &&
		    (one->slc || !slc_only)) {
			best = line;
			fewest = one->valid;
		}
	}
	return best;
}

static bool choose(struct ssd *ssd)
{
	bool needed = ssd->free_lines.count < ssd->params.gc_free_lines;
	u32 line = SSD_NONE;

	if (needed)
		line = emptiest(ssd, false);
	else if (ssd->params.slc_lines && ssd_is_idle(ssd))
		line = emptiest(ssd, true);
	if (line == SSD_NONE)
		return false;
	ssd->gc.victim = line;
	ssd->gc.valid = ssd->lines[line].valid;
	ssd->gc.missing = needed ? ssd->params.gc_free_lines - ssd->free_lines.count : 0;
	ssd->gc.page = 0;
	ssd->gc.written = 0;
	return true;
}

/* How many slots must have left the victim by now. */
static u64 due(const struct ssd *ssd)
{
	const struct ssd_gc *gc = &ssd->gc;
	u64 slots = gc->written * gc->valid / (ssd->geometry.line_slots - gc->valid);

	return slots + slots * gc->missing / MISSING_PART;
}

/* How many have, copied or written again by the host. */
static u64 gone(const struct ssd *ssd)
{
	return ssd->gc.valid - ssd->lines[ssd->gc.victim].valid;
}

bool ssd_gc_allows(const struct ssd *ssd)
{
	return ssd->gc.victim == SSD_NONE ||
	       due(ssd) <=
		       gone(ssd) + ssd->params.gc_lag_permille * ssd->geometry.line_slots / 1000;
}

static bool reads_more(const struct ssd *ssd)
{
	const struct ssd_gc *gc = &ssd->gc;

	if (gc->reading == ssd->params.gc_reads || gc->units > ssd->geometry.dies ||
	    gc->page == ssd->geometry.line_slots / ssd->geometry.page_slots)
		return false;
	return ssd->free_lines.count <= ssd->params.gc_reserve_lines || ssd_is_idle(ssd) ||
	       gone(ssd) + gc->asked < due(ssd) + ssd->geometry.unit_slots;
}

/* Reads the victim's next page that has valid slots. */
static void read_next(struct ssd *ssd)
{
	u32 page_slots = ssd->geometry.page_slots, valid = 0, part, i;
	u32 page = ssd->gc.victim * (ssd->geometry.line_slots / page_slots) + ssd->gc.page++;

	for (i = 0; i < page_slots; i++)
		valid += ssd->owner[(u64)page * page_slots + i] != SSD_NONE;
	if (!valid)
		return;
	part = ssd->free_parts.head;
	ssd_drop(&ssd->free_parts);
	ssd->parts[part] =
		(struct ssd_part){.page = page, .pages = 1, .command = SSD_NONE, .slots = valid};
	ssd->gc.reading++;
	ssd->gc.asked += valid;
	ssd_die_read(ssd, part);
}

void ssd_gc_page_done(struct ssd *ssd, u32 page, u32 asked)
{
	u32 page_slots = ssd->geometry.page_slots, i;

	ssd->gc.reading--;
	ssd->gc.asked -= asked;
	for (i = 0; i < page_slots; i++) {
		u32 slot = ssd->owner[(u64)page * page_slots + i];

		if (slot != SSD_NONE)
			ssd_unit_put(ssd, &ssd->gc.unit, slot, true);
	}
}

/* Returns whether anything changed; then the caller tries again. */
bool ssd_gc_pump(struct ssd *ssd)
{
	while (ssd->full_copies.count) {
		u32 unit = ssd->full_copies.head;

		if (!ssd_ftl_place(ssd, unit))
			break;
		ssd_drop(&ssd->full_copies);
		ssd_die_program(ssd, unit);
	}
	if (ssd->gc.victim == SSD_NONE && !choose(ssd))
		return false;
	if (!ssd->lines[ssd->gc.victim].valid && !ssd->gc.reading) {
		ssd_ftl_line_free(ssd, ssd->gc.victim);
		ssd->gc.victim = SSD_NONE;
		return true;
	}
	while (reads_more(ssd))
		read_next(ssd);
	return false;
}
