// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Finds the pages and dies of the slots that commands read, or that no read is needed. */
#include "ssd_internal.h"

static u32 first_slot(const struct ssd_entry *entry)
{
	return entry->sector / SSD_SLOT_SECTORS;
}

static u32 slots(const struct ssd_entry *entry)
{
	return (entry->sector + entry->sectors - 1) / SSD_SLOT_SECTORS - first_slot(entry) + 1;
}

/* Does the command need the slot from flash? A write does if it covers the slot partly. */
static bool wanted(const struct ssd_entry *entry, u32 slot)
{
	u64 start = ((u64)first_slot(entry) + slot) * SSD_SLOT_SECTORS;

	return entry->op == SSD_READ || start < entry->sector ||
	       start + SSD_SLOT_SECTORS > entry->sector + entry->sectors;
}

/* The page to read the slot from, or SSD_NONE: it is unmapped, or still in the buffer. */
static u32 page_of(const struct ssd *ssd, const struct ssd_entry *entry, u32 slot)
{
	u32 place = ssd->map[first_slot(entry) + slot];

	if (!wanted(entry, slot) || place >= ssd->geometry.flash_slots ||
	    ssd_die_holds(ssd, place / ssd->geometry.unit_slots))
		return SSD_NONE;
	return place / ssd->geometry.page_slots;
}

/* Gives the command's slots to dies. False: no part is free, and it continues later. */
static bool ask(struct ssd *ssd, u32 index)
{
	struct ssd_entry *entry = &ssd->entries[index];
	u32 count = slots(entry);

	while (entry->slot < count) {
		u32 page = page_of(ssd, entry, entry->slot), part, run = 1;

		if (page == SSD_NONE || ssd_ahead_holds(ssd, page)) {
			entry->slot++;
			continue;
		}
		if (ssd->host_parts == ssd->geometry.host_parts)
			return false;
		while (entry->slot + run < count && page_of(ssd, entry, entry->slot + run) == page)
			run++;
		part = ssd->free_parts.head;
		ssd_drop(&ssd->free_parts);
		ssd->parts[part] =
			(struct ssd_part){.page = page, .pages = 1, .command = index, .slots = run};
		if (entry->in_order)
			ssd->parts[part].pages =
				ssd_ahead_pages(ssd, first_slot(entry) + entry->slot, page);
		ssd->host_parts++;
		entry->parts++;
		entry->slot += run;
		ssd_die_read(ssd, part);
	}
	return true;
}

static void finish(struct ssd *ssd, u32 index)
{
	struct ssd_entry *entry = &ssd->entries[index];

	if (entry->op == SSD_READ) {
		ssd_end_at(ssd, index, entry->end_ns);
		return;
	}
	entry->filled = true;
	entry->stage = SSD_FRONT;
	ssd_event_set(&ssd->events, index, entry->end_ns);
}

/* Called by ssd_model.c when the command has passed the controller. */
void ssd_read_start(struct ssd *ssd, u32 index)
{
	ssd->entries[index].stage = SSD_READING;
	ssd->entries[index].end_ns = ssd->now_ns;
	ssd_push(&ssd->reading, index);
}

void ssd_read_pump(struct ssd *ssd)
{
	while (ssd->reading.count) {
		u32 index = ssd->reading.head;

		if (!ask(ssd, index))
			return;
		ssd_drop(&ssd->reading);
		ssd->entries[index].asked = true;
		if (!ssd->entries[index].parts)
			finish(ssd, index);
	}
}

void ssd_part_done(struct ssd *ssd, u32 part, u64 at_ns)
{
	u32 index = ssd->parts[part].command;
	struct ssd_entry *entry;

	ssd_push(&ssd->free_parts, part);
	if (index == SSD_NONE)
		return;
	entry = &ssd->entries[index];
	ssd->host_parts--;
	entry->end_ns = ssd_max(entry->end_ns, at_ns);
	if (!--entry->parts && entry->asked)
		finish(ssd, index);
}
