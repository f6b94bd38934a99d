/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The state of a drive. Callers of ssd.h need only its size; tests and debugfs read
 * ssd_counts.
 *
 * A slot is 4 KiB. Its place in flash is a number: line, then unit (all bits and planes of a row of
 * a die, which one program writes), then slot in the unit. Units of a line go around the dies.
 */
#ifndef STEADY_SSD_STATE_H
#define STEADY_SSD_STATE_H

#include "ssd_params.h"

#define SSD_DIES_MAX	   256
#define SSD_CHANNELS_MAX   16
#define SSD_UNIT_SLOTS_MAX 192 /* 4 planes of 64 KiB, 3 bits */
#define SSD_MAP_CACHED_MAX 64
#define SSD_AHEAD_KEPT_MAX 64
#define SSD_STREAMS	   16 /* streams of reads in order */

struct ssd_geometry {
	u32 dies;
	u32 page_slots; /* delivered by one read: the page of read_planes planes */
	u32 unit_pages; /* reads that cover one program */
	u32 bit_pages; /* of these, of one bit */
	u32 unit_slots;
	u32 line_units;
	u32 line_slots;
	u32 lines;
	u32 user_slots;
	u32 map_slots_end; /* user slots, then the slots of the map itself */
	u64 flash_slots;
	u32 units; /* objects for programs: of the host, then for copies */
	u32 host_units;
	u32 parts; /* objects for page reads: of the host, then for copies */
	u32 host_parts;
};

/* Counts since ssd_init(), in slots unless the name has another unit. */
struct ssd_counts {
	u64 host; /* written by the host */
	u64 map;
	u64 copied; /* by garbage collection */
	u64 padded; /* programmed empty */
	u64 programs;
	u64 slc_programs;
	u64 erases;
	u64 page_reads;
	u64 ahead_reads; /* reads of more pages than the command needs */
	u64 retries;
	u64 suspends;
	u64 buffer_waits; /* writes that found no room */
	u64 gc_waits; /* programs that had to wait for copies */
};

enum ssd_stage {
	SSD_FREE,
	SSD_FRONT, /* in the controller until its event */
	SSD_READING, /* some of its slots are with dies */
	SSD_WAITS_BUFFER,
	SSD_WAITS_FLASH, /* flush or FUA: for programs */
	SSD_ENDING, /* its event is its end */
	SSD_ENDED, /* not yet returned */
};

/* A command inside the drive. */
struct ssd_entry {
	u64 sector;
	u64 end_ns; /* not before this */
	u32 sectors;
	u32 tag;
	u32 next; /* in its queue */
	u32 slot; /* its next slot to read or accept, counted from its first */
	u32 parts; /* page reads it waits for */
	u32 programs; /* that it waits for ... */
	u64 program_first; /* ... numbered from, to */
	u64 program_last;
	u8 op;
	u8 stage;
	bool fua;
	bool in_order; /* a read that continues an earlier one */
	bool asked; /* all slots that must be read were given to dies */
	bool filled; /* a write of partial slots has read the rest */
};

/* Elements of an array, linked by their field next. */
struct ssd_queue {
	u32 *first_next; /* the field of element 0 */
	u32 element_bytes;
	u32 head; /* index, or SSD_NONE: empty */
	u32 tail;
	u32 count;
};

/* The slots of one command (or of a copy) on one page. */
struct ssd_part {
	u32 next;
	u32 page;
	u32 pages; /* the die reads this many at once, from page on */
	u32 command; /* SSD_NONE: for a copy */
	u32 slots;
};

/* A sequence of reads that continue each other. */
struct ssd_stream {
	u64 next_sector;
	u64 used; /* the number of its last read, over all streams */
	u32 reads;
};

/* Pages in the controller's memory. */
struct ssd_ahead {
	u32 page;
	u32 pages;
};

/* The data of one program, from its first slot to the program's end. */
struct ssd_unit {
	u64 number; /* of the host's units, in order */
	u32 next;
	u32 place; /* in flash, in units; SSD_NONE until known */
	u32 fill;
	u32 slots; /* its capacity: smaller with one bit per cell */
	u32 buffered; /* slots that it holds in the buffer */
	bool copies;
	bool slc;
	bool erase; /* the block is erased before */
};

enum ssd_work {
	SSD_IDLE,
	SSD_ARRAY, /* a page read */
	SSD_TRANSFER, /* slots of that page to the controller */
	SSD_LOAD, /* slots of a program to the die */
	SSD_ERASE,
	SSD_PROGRAM,
	SSD_HOUSE,
	SSD_SUSPEND, /* an erase or a program is being interrupted */
	SSD_RESUME,
};

struct ssd_die {
	struct ssd_queue reads; /* parts */
	struct ssd_queue copies; /* parts */
	struct ssd_queue programs; /* units; the first one may be under way */
	u64 until_ns; /* when its present work ends */
	u64 left_ns; /* of the suspended work */
	u32 page; /* in its register, or being read into it; or SSD_NONE */
	u32 pages; /* that are read together, from page on */
	u32 streak; /* reads since the last program or erase */
	u32 suspends;
	u32 house_due;
	u32 opened; /* blocks */
	u8 work;
	u8 suspended; /* SSD_ERASE or SSD_PROGRAM: interrupted; else SSD_IDLE */
	u32 copying; /* slots of the page being transferred that are for a copy */
};

struct ssd_line {
	u32 valid;
	u32 next; /* in the queue of free lines */
	u32 programs; /* its units that are not programmed yet */
	bool closed; /* written to its end, not free */
	bool slc; /* one bit per cell */
};

/* Sources with at most one event each: commands, dies, housekeeping. */
struct ssd_events {
	u32 *heap; /* sources; the first one is due first */
	u32 *where; /* source -> index in heap, or SSD_NONE */
	u64 *at_ns; /* by source */
	u64 *order; /* by source: events at the same time run in order of creation */
	u64 made;
	u32 count;
};

/* Garbage collection; ssd_gc.c. */
struct ssd_gc {
	u32 victim; /* line, or SSD_NONE */
	u32 valid; /* slots of it when it was chosen */
	u32 missing; /* free lines that were missing then */
	u32 page; /* its next page to check */
	u32 reading; /* page reads under way */
	u32 asked; /* slots of these */
	u64 written; /* slots of the host since it was chosen */
	u32 unit; /* being filled, or SSD_NONE */
	u32 units; /* in use */
};

/* A line that is being written. */
struct ssd_open {
	u32 line; /* or SSD_NONE */
	u32 unit; /* the next one in it */
};

struct ssd {
	struct ssd_params params;
	struct ssd_geometry geometry;
	struct ssd_counts counts;
	struct ssd_events events;
	struct ssd_gc gc;
	u64 now_ns;
	u64 controller_free_ns;
	u64 channel_free_ns[SSD_CHANNELS_MAX];
	u64 draws; /* random numbers taken */

	struct ssd_entry *entries;
	struct ssd_part *parts;
	struct ssd_unit *units;
	u32 *unit_slot; /* unit x unit_slots -> logical slot */
	struct ssd_die *dies;
	struct ssd_line *lines;
	u32 *map; /* logical slot -> place in flash, place in a unit object, or SSD_NONE */
	u32 *owner; /* place in flash -> logical slot, or SSD_NONE: not valid */

	struct ssd_queue free_entries;
	struct ssd_queue reading; /* commands with slots that no die has yet */
	struct ssd_queue writing; /* commands that wait for the buffer */
	struct ssd_queue syncing; /* commands that wait for programs */
	struct ssd_queue ended;
	struct ssd_queue free_parts;
	struct ssd_queue free_units;
	struct ssd_queue full_units; /* of the host, without a place in flash */
	struct ssd_queue full_copies;
	struct ssd_queue free_lines;

	u32 host_parts; /* in use */
	u32 host_units;
	u32 unit; /* of the host, being filled, or SSD_NONE */
	u32 buffered; /* slots in the buffer */
	u64 units_opened; /* of the host */
	struct ssd_open open;
	struct ssd_open open_slc;
	u64 slc_units_left; /* that may be opened */
	u32 map_cached[SSD_MAP_CACHED_MAX]; /* parts of the map written lately */
	u32 map_oldest;
	u32 map_debt; /* thousandths of a slot */
	u32 house_die;

	struct ssd_stream streams[SSD_STREAMS];
	u64 reads; /* commands */
	struct ssd_ahead ahead[SSD_AHEAD_KEPT_MAX];
	u32 ahead_oldest;
};

#endif
