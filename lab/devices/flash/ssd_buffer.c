// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The write buffer collects the slots of writes to units; one program writes a unit. A write ends
 * when all its slots are in the buffer; with FUA it ends when their programs have ended. A flush
 * also programs a unit that is not full.
 */
#include "ssd_internal.h"

static u32 place_in_unit(const struct ssd *ssd, u32 unit, u32 index)
{
	return ssd->geometry.flash_slots + unit * ssd->geometry.unit_slots + index;
}

static u32 unit_open(struct ssd *ssd, bool copies)
{
	u32 unit = ssd->free_units.head;

	ssd_drop(&ssd->free_units);
	ssd->units[unit] = (struct ssd_unit){
		.place = SSD_NONE, .slots = ssd->geometry.unit_slots, .copies = copies};
	if (copies) {
		ssd->gc.units++;
		return unit;
	}
	ssd->host_units++;
	ssd->units[unit].number = ssd->units_opened++;
	if (ssd->slc_units_left) {
		ssd->slc_units_left--;
		ssd->units[unit].slc = true;
		ssd->units[unit].slots /= ssd->params.bits;
	}
	return unit;
}

void ssd_unit_put(struct ssd *ssd, u32 *unit, u32 slot, bool copies)
{
	u32 unit_slots = ssd->geometry.unit_slots;
	struct ssd_unit *to;

	if (*unit == SSD_NONE)
		*unit = unit_open(ssd, copies);
	to = &ssd->units[*unit];
	ssd_ftl_unmap(ssd, slot);
	ssd->map[slot] = place_in_unit(ssd, *unit, to->fill);
	ssd->unit_slot[*unit * unit_slots + to->fill] = slot;
	if (++to->fill < to->slots)
		return;
	ssd_push(copies ? &ssd->full_copies : &ssd->full_units, *unit);
	*unit = SSD_NONE;
}

/* Programs the unit that is being filled, even if it is not full. */
static void close_unit(struct ssd *ssd)
{
	if (ssd->unit == SSD_NONE)
		return;
	ssd_push(&ssd->full_units, ssd->unit);
	ssd->unit = SSD_NONE;
}

/* Puts a slot of the host or of the map into the buffer; returns its unit. */
static u32 put(struct ssd *ssd, u32 slot)
{
	u32 unit = ssd->unit;

	if (unit == SSD_NONE)
		unit = ssd->free_units.head;
	ssd_unit_put(ssd, &ssd->unit, slot, false);
	ssd->units[unit].buffered++;
	ssd->buffered++;
	return unit;
}

/*
 * A write changes its part of the map. Memory keeps the parts that changed lately. When a part
 * leaves it, its slot of the map is written; map_permille scales this cost.
 */
static void charge_map(struct ssd *ssd, u32 slot)
{
	u32 part = slot / SSD_MAP_SLOT_SLOTS, i, leaving;

	for (i = 0; i < ssd->params.map_cached; i++)
		if (ssd->map_cached[i] == part)
			return;
	leaving = ssd->map_cached[ssd->map_oldest];
	ssd->map_cached[ssd->map_oldest] = part;
	ssd->map_oldest = (ssd->map_oldest + 1) % ssd->params.map_cached;
	if (leaving == SSD_NONE)
		return;
	for (ssd->map_debt += ssd->params.map_permille; ssd->map_debt >= 1000;
	     ssd->map_debt -= 1000) {
		put(ssd, ssd->geometry.user_slots + leaving);
		ssd->counts.map++;
	}
}

/* Is the slot in the unit that is being filled? Then new data replaces the old. */
static bool is_being_collected(const struct ssd *ssd, u32 slot)
{
	u32 place = ssd->map[slot];

	return ssd->unit != SSD_NONE && place != SSD_NONE &&
	       place >= place_in_unit(ssd, ssd->unit, 0) &&
	       place < place_in_unit(ssd, ssd->unit, ssd->geometry.unit_slots);
}

/* Is there room for a slot and the slots of the map that it may cost? Each may begin a unit. */
static bool has_room(const struct ssd *ssd)
{
	return ssd->buffered + SSD_WRITE_SLOTS_MAX <= ssd->params.buffer_kib / 4 &&
	       ssd->host_units + SSD_WRITE_SLOTS_MAX <= ssd->geometry.host_units;
}

static bool accept_slot(struct ssd *ssd, struct ssd_entry *entry)
{
	u32 slot = entry->sector / SSD_SLOT_SECTORS + entry->slot, unit = ssd->unit;

	if (!has_room(ssd))
		return false;
	if (!is_being_collected(ssd, slot))
		unit = put(ssd, slot);
	entry->program_last = ssd->units[unit].number;
	if (!entry->slot++)
		entry->program_first = entry->program_last;
	ssd->counts.host++;
	charge_map(ssd, slot);
	return true;
}

/* Waits for the running programs of units program_first to program_last. */
static void wait_programs(struct ssd *ssd, u32 index)
{
	struct ssd_entry *entry = &ssd->entries[index];
	u32 i;

	if (ssd->unit != SSD_NONE && ssd->units[ssd->unit].number <= entry->program_last)
		close_unit(ssd);
	entry->programs = 0;
	for (i = 0; i < ssd->geometry.units; i++) {
		const struct ssd_unit *unit = &ssd->units[i];

		entry->programs += unit->fill && !unit->copies &&
				   unit->number >= entry->program_first &&
				   unit->number <= entry->program_last;
	}
	if (!entry->programs) {
		ssd_end_at(ssd, index, ssd->now_ns);
		return;
	}
	entry->stage = SSD_WAITS_FLASH;
	ssd_push(&ssd->syncing, index);
}

/* A flush has passed the controller. Called by ssd_model.c. */
void ssd_sync_start(struct ssd *ssd, u32 index)
{
	ssd->entries[index].program_first = 0;
	ssd->entries[index].program_last = ssd->units_opened;
	wait_programs(ssd, index);
}

static bool accept_write(struct ssd *ssd)
{
	u32 index = ssd->writing.head;
	struct ssd_entry *entry = &ssd->entries[index];
	u64 last = (entry->sector + entry->sectors - 1) / SSD_SLOT_SECTORS;
	u32 slots = last - entry->sector / SSD_SLOT_SECTORS + 1;

	while (entry->slot < slots)
		if (!accept_slot(ssd, entry))
			return false;
	ssd_drop(&ssd->writing);
	if (entry->fua)
		wait_programs(ssd, index);
	else
		ssd_end_at(ssd, index, ssd->now_ns);
	return true;
}

/* Programs full units and accepts slots that have room. Returns whether anything changed. */
bool ssd_buffer_pump(struct ssd *ssd)
{
	u64 before = ssd->counts.host;
	bool placed = false;

	while (ssd->full_units.count) {
		u32 unit = ssd->full_units.head;

		if (!ssd_gc_allows(ssd) || !ssd_ftl_place(ssd, unit)) {
			ssd->counts.gc_waits++;
			break;
		}
		ssd_drop(&ssd->full_units);
		ssd_die_program(ssd, unit);
		placed = true;
	}
	while (ssd->writing.count && accept_write(ssd))
		;
	return placed || ssd->counts.host != before;
}

/* Wakes the commands that waited for this program; each counts its own programs. */
static void wake_syncing(struct ssd *ssd, u64 number)
{
	u32 left = ssd->syncing.count;

	while (left--) {
		u32 index = ssd->syncing.head;
		struct ssd_entry *entry = &ssd->entries[index];

		ssd_drop(&ssd->syncing);
		if (number >= entry->program_first && number <= entry->program_last)
			entry->programs--;
		if (entry->programs)
			ssd_push(&ssd->syncing, index);
		else
			ssd_end_at(ssd, index, ssd->now_ns);
	}
}

void ssd_program_ended(struct ssd *ssd, u32 index)
{
	struct ssd_unit *unit = &ssd->units[index];

	ssd->lines[unit->place / ssd->geometry.line_units].programs--;
	ssd->buffered -= unit->buffered;
	if (unit->copies) {
		ssd->gc.units--;
	} else {
		ssd->host_units--;
		wake_syncing(ssd, unit->number);
	}
	unit->fill = 0;
	ssd_push(&ssd->free_units, index);
}
