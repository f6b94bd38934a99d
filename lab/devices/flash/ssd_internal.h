/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Functions that the files of the SSD model share. */
#ifndef STEADY_SSD_INTERNAL_H
#define STEADY_SSD_INTERNAL_H

#include "ssd.h"

#define SSD_NONE	    0xffffffffu
#define SSD_FLASH_SLOTS_MAX 0xf0000000ull /* places above are slots of unit objects */
#define SSD_WRITE_SLOTS_MAX 5 /* one of the host, and 4 of the map at the largest map_permille */
#define SSD_MAP_SLOT_SLOTS  1024 /* slots that one slot of the map covers */

static inline u64 ssd_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* ssd_params.c and ssd_model.c: sizes that are computed from valid parameters. */
void ssd_geometry(struct ssd_geometry *geometry, const struct ssd_params *params);

/* ssd_events.c */
void ssd_events_init(struct ssd_events *events, u32 sources);
void ssd_event_set(struct ssd_events *events, u32 source, u64 at_ns);
/* Removes and returns the source that is due first, or SSD_NONE. */
u32 ssd_event_take(struct ssd_events *events, u64 until_ns);

/* Sources. */
static inline u32 ssd_die_source(const struct ssd *ssd, u32 die)
{
	return ssd->params.queue_commands + die;
}

static inline u32 ssd_house_source(const struct ssd *ssd)
{
	return ssd->params.queue_commands + ssd->geometry.dies;
}

/* Does the drive have no command? */
static inline bool ssd_is_idle(const struct ssd *ssd)
{
	return ssd->free_entries.count == ssd->params.queue_commands;
}

static inline u32 *ssd_next_of(const struct ssd_queue *queue, u32 index)
{
	return (u32 *)((u8 *)queue->first_next + queue->element_bytes * index);
}

static inline void ssd_push(struct ssd_queue *queue, u32 index)
{
	*ssd_next_of(queue, index) = SSD_NONE;
	if (queue->tail == SSD_NONE)
		queue->head = index;
	else
		*ssd_next_of(queue, queue->tail) = index;
	queue->tail = index;
	queue->count++;
}

/* Removes the first element, which must exist; the queue's head is its index. */
static inline void ssd_drop(struct ssd_queue *queue)
{
	queue->head = *ssd_next_of(queue, queue->head);
	if (queue->head == SSD_NONE)
		queue->tail = SSD_NONE;
	queue->count--;
}

/* A random number in 0..limit-1. */
u64 ssd_draw(struct ssd *ssd, u64 limit);

/* ssd_model.c */
void ssd_end_at(struct ssd *ssd, u32 entry, u64 at_ns);
/* Continues all work that had to wait: buffer, programs, copies. */
void ssd_pump(struct ssd *ssd);

/* ssd_read.c */
void ssd_read_start(struct ssd *ssd, u32 entry);
void ssd_read_pump(struct ssd *ssd);
/* A part's slots have left the die, and reach the controller at at_ns. */
void ssd_part_done(struct ssd *ssd, u32 part, u64 at_ns);

/* ssd_ahead.c */
bool ssd_ahead_in_order(struct ssd *ssd, u64 sector, u32 sectors);
u32 ssd_ahead_pages(const struct ssd *ssd, u32 slot, u32 page);
/* Keeps pages that a die has read ahead; tells whether a page is kept. */
void ssd_ahead_keep(struct ssd *ssd, u32 page, u32 pages);
bool ssd_ahead_holds(const struct ssd *ssd, u32 page);
void ssd_ahead_drop(struct ssd *ssd, u32 unit);

/* ssd_buffer.c */
bool ssd_buffer_pump(struct ssd *ssd);
void ssd_sync_start(struct ssd *ssd, u32 entry);
void ssd_program_ended(struct ssd *ssd, u32 unit);
/* Puts a slot into *unit, or into a new unit if that is SSD_NONE. Full units are queued. */
void ssd_unit_put(struct ssd *ssd, u32 *unit, u32 slot, bool copies);

/* ssd_dies.c */
void ssd_die_read(struct ssd *ssd, u32 part);
void ssd_die_program(struct ssd *ssd, u32 unit);
void ssd_die_event(struct ssd *ssd, u32 die);
void ssd_house_event(struct ssd *ssd);
/* Is the place's program still running, and its data therefore in the controller? */
bool ssd_die_holds(const struct ssd *ssd, u32 place);

/* ssd_ftl.c */
/* Gives a full unit and its slots their places in flash; false: no line is free. */
bool ssd_ftl_place(struct ssd *ssd, u32 unit);
void ssd_ftl_line_free(struct ssd *ssd, u32 line);
/* The slot no longer has a valid place. */
void ssd_ftl_unmap(struct ssd *ssd, u32 slot);
void ssd_ftl_discard(struct ssd *ssd, u64 sector, u32 sectors);

/* ssd_gc.c */
bool ssd_gc_pump(struct ssd *ssd);
bool ssd_gc_allows(const struct ssd *ssd);
void ssd_gc_page_done(struct ssd *ssd, u32 page, u32 asked);

/* ssd_used.c */
void ssd_used(struct ssd *ssd);

#endif
