/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a drive consists of. Callers of ssd.h need it for its size only; tests and debugfs read
 * ssd_counts.
 *
 * A slot is 4 KiB. Its place in flash is a number: line, then unit (what one program writes: all
 * bits and planes of a row of one die), then slot in the unit. Units of a line go around the dies.
 */
#ifndef STEADY_SSD_STATE_H
#define STEADY_SSD_STATE_H

#include "ssd_params.h"

#define SSD_DIES_MAX	   256
#define SSD_CHANNELS_MAX   16
#define SSD_UNIT_SLOTS_MAX 192 /* 4 planes of 64 KiB, 3 bits */
#define SSD_MAP_CACHED_MAX 64
#define SSD_AHEAD_KEPT_MAX 64
#define SSD_STREAMS	   16 /* of reads that go on where the last one ended */

struct ssd_geometry {
	u32 dies;
	u32 page_slots; /* what one read delivers: the page of read_planes planes */
	u32 unit_pages; /* such reads for what one program writes */
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

/* What happened since ssd_init(); in slots unless the name says otherwise. */
struct ssd_counts {
	u64 host; /* written by the host */
	u64 map;
	u64 copied; /* by garbage collection */
	u64 padded; /* programmed empty */
	u64 programs;
	u64 slc_programs;
	u64 erases;
	u64 page_reads;
	u64 ahead_reads; /* of more pages than the command needs */
	u64 retries;
	u64 suspends;
	u64 buffer_waits; /* writes that found no room */
	u64 gc_waits; /* programs that had to wait for copies */
};

enum ssd_stage {
	SSD_FREE,
	SSD_FRONT, /* in the controller; its event is due when that ends */
	SSD_READING, /* some of its slots are with dies */
	SSD_WAITS_BUFFER,
	SSD_WAITS_FLASH, /* flush or FUA: for programs */
	SSD_ENDING, /* its event is due when it ends */
	SSD_ENDED, /* not yet returned */
};

/* A command inside the drive. */
struct ssd_entry {
	u64 sector;
	u64 end_ns; /* not before this */
	u32 sectors;
	u32 tag;
	u32 next; /* in the queue it is in */
	u32 slot; /* the next of its slots to be read or accepted; counted from its first */
	u32 parts; /* page reads it waits for */
	u32 programs; /* that it waits for ... */
	u64 program_first; /* ... numbered from, to */
	u64 program_last;
	u8 op;
	u8 stage;
	bool fua;
	bool in_order; /* a read that goes on where one of the last ones ended */
	bool asked; /* all its slots that must be read are with dies, or were */
	bool filled; /* a write of parts of slots has read the rest */
};

/* Elements of an array, linked by their field next. */
struct ssd_queue {
	u32 *first_next; /* the field of element 0 */
	u32 element_bytes;
	u32 head; /* index, or SSD_NONE: empty */
	u32 tail;
	u32 count;
};

/* Slots of one command (or of a copy) on one page. */
struct ssd_part {
	u32 next;
	u32 page;
	u32 pages; /* that the die reads at once, from page on */
	u32 command; /* SSD_NONE: for a copy */
	u32 slots;
};

/* Reads that go on where the last one ended. */
struct ssd_stream {
	u64 next_sector;
	u64 used; /* the read that it had last; counts all reads */
	u32 reads;
};

/* Pages in the controller's memory. */
struct ssd_ahead {
	u32 page;
	u32 pages;
};

/* What one program writes, from the first slot that is put into it to the program's end. */
struct ssd_unit {
	u64 number; /* of the host's units, in order */
	u32 next;
	u32 place; /* in flash, in units; SSD_NONE until known */
	u32 fill;
	u32 slots; /* that it can take: fewer with one bit per cell */
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
	u32 pages; /* that are read at once, from page on */
	u32 streak; /* reads since the last program or erase */
	u32 suspends;
	u32 house_due;
	u32 opened; /* blocks */
	u8 work;
	u8 suspended; /* SSD_ERASE or SSD_PROGRAM: interrupted; else SSD_IDLE */
	u32 copying; /* slots of the page being transferred that a copy asked for */
};

struct ssd_line {
	u32 valid;
	u32 next; /* in the queue of free lines */
	u32 programs; /* units that have their place in it and are not programmed */
	bool closed; /* written to its end, not free */
	bool slc; /* one bit per cell */
};

/* Sources with at most one event each: commands, dies, house keeping. */
struct ssd_events {
	u32 *heap; /* sources, the first one is due first */
	u32 *where; /* source -> index in heap, or SSD_NONE */
	u64 *at_ns; /* by source */
	u64 *order; /* by source: events at the same time happen in the order they were made */
	u64 made;
	u32 count;
};

/* Garbage collection; ssd_gc.c. */
struct ssd_gc {
	u32 victim; /* line, or SSD_NONE */
	u32 valid; /* slots of it when it was chosen */
	u32 missing; /* free lines, then */
	u32 page; /* of it, to look at next */
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
	struct ssd_queue reading; /* commands whose slots are not all with dies */
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
