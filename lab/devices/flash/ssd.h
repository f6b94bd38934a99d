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
 * Slots are mapped one by one. Parts of the map that were not written lately cost writes of their
 * own. A line (one block of each die) is written in order; when few are free, the line with the
 * fewest valid slots is copied and becomes free. ssd_gc.c says how that is paced.
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
	SSD_FLUSH, /* ends when all that was accepted before is on the flash */
	SSD_DISCARD, /* unmaps the 4 KiB slots that lie in it entirely */
};

struct ssd_command {
	u32 tag; /* the caller's; ssd_run() returns it */
	enum ssd_op op;
	u64 sector; /* of 512 bytes */
	u32 sectors; /* 0 for a flush; at most SSD_COMMAND_SECTORS_MAX for reads and writes */
	bool fua; /* writes: ends when it is on the flash */
};

/* What ssd_init() needs, in bytes; valid parameters only. */
u64 ssd_memory_bytes(const struct ssd_params *params);

/*
 * @memory: ssd_memory_bytes(), aligned to 8. The drive is in the state that used_* describe.
 * Parameters must be valid (ssd_params_error()).
 */
void ssd_init(struct ssd *ssd, const struct ssd_params *params, void *memory);

/*
 * A command comes at now_ns, which never decreases over calls of this and ssd_run(). Returns false,
 * and nothing has happened, if the drive has no room (queue_commands are inside) or the command
 * goes beyond the capacity or is too long.
 */
bool ssd_submit(struct ssd *ssd, const struct ssd_command *command, u64 now_ns);

/* When ssd_run() has something to do next, or SSD_NEVER. In the past if that stopped at its max. */
u64 ssd_next_ns(const struct ssd *ssd);

/*
 * Does what is due until now_ns and returns how many commands ended: their tags in the order of
 * their ends. It stops when it has max of them; the rest is done by the next call.
 */
u32 ssd_run(struct ssd *ssd, u64 now_ns, u32 *done_tags, u32 max);

#endif
