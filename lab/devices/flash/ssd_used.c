// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The state of a used drive. */
#include "ssd_internal.h"

/* Gives slots first..end-1 places one after the other, from *place on. */
static void fill(struct ssd *ssd, u32 first, u32 end, u64 *place)
{
	u32 slot;

	for (slot = first; slot < end; slot++, (*place)++) {
		ssd->map[slot] = *place;
		ssd->owner[*place] = slot;
		ssd->lines[*place / ssd->geometry.line_slots].valid++;
	}
}

void ssd_used(struct ssd *ssd)
{
	const struct ssd_geometry *geometry = &ssd->geometry;
	u32 used = (u64)geometry->user_slots * ssd->params.used_permille / 1000;
	u32 parts = (used + SSD_MAP_SLOT_SLOTS - 1) / SSD_MAP_SLOT_SLOTS, lines, line;
	u64 place = 0;

	if (!used)
		return;
	fill(ssd, 0, used, &place);
	fill(ssd, geometry->user_slots, geometry->user_slots + parts, &place);
	lines = (place + geometry->line_slots - 1) / geometry->line_slots;
	for (line = 0; line < lines; line++) {
		ssd_drop(&ssd->free_lines);
		ssd->lines[line].closed = line != lines - 1;
	}
	ssd->open_line = lines - 1;
	ssd->open_unit = (place + geometry->unit_slots - 1) / geometry->unit_slots -
			 ssd->open_line * geometry->line_units;
}
