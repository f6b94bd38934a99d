// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The map of slots, and lines. Units of the host and of copies get places in the order in which
 * they become full, one line after the other, so that each block is programmed in order.
 */
#include "ssd_internal.h"

void ssd_ftl_line_free(struct ssd *ssd, u32 line)
{
	if (ssd->lines[line].slc)
		ssd->slc_units_left += ssd->geometry.line_units;
	ssd->lines[line].closed = false;
	ssd->lines[line].slc = false;
	ssd_push(&ssd->free_lines, line);
}

void ssd_ftl_unmap(struct ssd *ssd, u32 slot)
{
	u32 place = ssd->map[slot], line;

	ssd->map[slot] = SSD_NONE;
	if (place >= ssd->geometry.flash_slots)
		return;
	ssd->owner[place] = SSD_NONE;
	line = place / ssd->geometry.line_slots;
	/* ssd_gc.c frees the victim when no page of it is being read. */
	if (!--ssd->lines[line].valid && ssd->lines[line].closed && line != ssd->gc.victim)
		ssd_ftl_line_free(ssd, line);
}

static void close_line(struct ssd *ssd, struct ssd_open *open)
{
	ssd->lines[open->line].closed = true;
	if (!ssd->lines[open->line].valid)
		ssd_ftl_line_free(ssd, open->line);
	open->line = SSD_NONE;
}

static bool open_line(struct ssd *ssd, struct ssd_open *open, bool slc)
{
	u32 line = ssd->free_lines.head;

	if (line == SSD_NONE)
		return false;
	ssd_drop(&ssd->free_lines);
	ssd->lines[line].slc = slc;
	*open = (struct ssd_open){.line = line};
	return true;
}

/* Slots that were written again since they came into the unit are not valid in it. */
static void place_slots(struct ssd *ssd, u32 index)
{
	const struct ssd_unit *unit = &ssd->units[index];
	u32 unit_slots = ssd->geometry.unit_slots;
	u32 from = ssd->geometry.flash_slots + index * unit_slots, to = unit->place * unit_slots, i;

	for (i = 0; i < unit->fill; i++) {
		u32 slot = ssd->unit_slot[index * unit_slots + i];

		if (ssd->map[slot] != from + i)
			continue;
		ssd->map[slot] = to + i;
		ssd->owner[to + i] = slot;
		ssd->lines[unit->place / ssd->geometry.line_units].valid++;
	}
}

bool ssd_ftl_place(struct ssd *ssd, u32 index)
{
	const struct ssd_geometry *geometry = &ssd->geometry;
	struct ssd_unit *unit = &ssd->units[index];
	struct ssd_open *open = unit->slc ? &ssd->open_slc : &ssd->open;
	bool full = open->line == SSD_NONE;

	/* Host data leaves the last lines to copies, so that copying can always continue. */
	if (!unit->copies && ssd->free_lines.count < ssd->params.gc_reserve_lines + full)
		return false;
	if (full && !open_line(ssd, open, unit->slc))
		return false;
	unit->place = open->line * geometry->line_units + open->unit++;
	ssd->lines[open->line].programs++;
	ssd_ahead_drop(ssd, unit->place);
	place_slots(ssd, index);
	if (open->unit == geometry->line_units)
		close_line(ssd, open);
	if (unit->copies)
		ssd->counts.copied += unit->fill;
	else
		ssd->gc.written += geometry->unit_slots;
	ssd->counts.padded += unit->slots - unit->fill;
	return true;
}

/* Unmaps the slots that lie entirely in the range. */
void ssd_ftl_discard(struct ssd *ssd, u64 sector, u32 sectors)
{
	u64 slot = (sector + SSD_SLOT_SECTORS - 1) / SSD_SLOT_SECTORS;

	for (; (slot + 1) * SSD_SLOT_SECTORS <= sector + sectors; slot++)
		ssd_ftl_unmap(ssd, slot);
}
