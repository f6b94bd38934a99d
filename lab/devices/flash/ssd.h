/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Model of an NVMe SSD with garbage collection: predicts when the drive finishes a command.
 *
 * Problem: a request in an SSD waits for the state of the drive: which die reads, programs or
 * erases, how full the write buffer is, how far garbage collection is behind. A time cannot be
 * computed when a command comes, as flash_model.h does for a card. The drive is simulated event by
 * event.
 *
 * Model: commands pass the controller (with its link to the host) one by one, and take a fixed
 * time more.
 *   Read: each 4 KiB slot lies on a page of a die. The die reads the page, which takes a time by
 *   the page's bit in the cell, and sends the slots over its channel. A read that waits for the
 *   same page gets its data from the same die read. The page stays in the die's register until the
 *   die does something else.
 *   With ahead_pages, a read that continues an earlier one gets more pages of its row at once.
 *   Write: it ends when the buffer has taken its slots, and waits while the buffer is full. Slots
 *   go to the dies in turn. One program writes all pages of the cells and planes of a die. The
 *   slots leave the buffer when the program ends.
 * Slots are mapped one by one. A write to a part of the map that was not written lately costs extra
 * writes. A line (one block of each die) is written in order. When few lines are free, the line
 * with the fewest valid slots is copied and becomes free. ssd_gc.c has the pace of that.
 *
 * Not modelled: wear, temperature, data (the caller stores it), damage by a power failure.
 *
 * Pure C: no kernel headers, no floating point, no clock, no locks, and no allocation: ssd_init()
 * gets all memory. Callers pass the time in and serialise calls. 64-bit only.
 *
 *   ssd_params.c    the numbers of a drive and their ranges.
 *   ssd_model.c     the interface; commands on their way through the drive.
 *   ssd_read.c      maps the slots of a command to pages of dies.
 *   ssd_ahead.c     reads in order: pages that are read at once, and kept.
 *   ssd_buffer.c    collects slots of writes to programs.
 *   ssd_dies.c      the order of a die's work.
 *   ssd_ftl.c       the map and the lines.
 *   ssd_gc.c        garbage collection.
 *   ssd_used.c      computes the state of a used drive.
 *   ssd_events.c    the queue of events.
 */
#ifndef STEADY_SSD_H
#define STEADY_SSD_H

#include "ssd_params.h"
#include "ssd_state.h"

#define SSD_NEVER (~0ull)

enum ssd_op {
	SSD_READ,
	SSD_WRITE,
	SSD_FLUSH, /* ends when all earlier accepted writes are on the flash */
	SSD_DISCARD, /* unmaps the 4 KiB slots that lie entirely in its range */
};

struct ssd_command {
	u32 tag; /* the caller's; ssd_run() returns it */
	enum ssd_op op;
	u64 sector; /* of 512 bytes */
	u32 sectors; /* 0 for a flush; at most SSD_COMMAND_SECTORS_MAX for reads and writes */
	bool fua; /* for writes: it ends when its data is on the flash */
};

/* The memory that ssd_init() needs, in bytes. The parameters must be valid. */
u64 ssd_memory_bytes(const struct ssd_params *params);

/*
 * @memory: ssd_memory_bytes(), aligned to 8. The drive starts in the state that used_* describe.
 * Parameters must be valid (ssd_params_error()).
 */
void ssd_init(struct ssd *ssd, const struct ssd_params *params, void *memory);

/*
 * A command comes at now_ns, which never decreases over calls of this and ssd_run(). Returns false,
 * without effect, if the drive has no room (queue_commands are inside), or if the command is too
 * long or goes beyond the capacity.
 */
bool ssd_submit(struct ssd *ssd, const struct ssd_command *command, u64 now_ns);

/* When ssd_run() is due next, or SSD_NEVER. It is in the past if that stopped at its max. */
u64 ssd_next_ns(const struct ssd *ssd);

/*
 * Runs all events until now_ns. Returns the number of commands that ended, with their tags in order
 * of their ends. It stops after max of them; the next call does the rest.
 */
u32 ssd_run(struct ssd *ssd, u64 now_ns, u32 *done_tags, u32 max);

#endif
