// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The order of a die's work. Reads of the host go first, but not more than read_streak in a row
 * while a program waits. Reads for copies follow, then housekeeping, then programs in order of
 * arrival. A block's first program includes its erase. A die does one thing at a time, transfers
 * included; the dies of a channel take turns with transfers.
 */
#include "ssd_internal.h"

static void work_until(struct ssd *ssd, u32 index, enum ssd_work work, u64 until_ns)
{
	struct ssd_die *die = &ssd->dies[index];

	die->work = work;
	die->until_ns = until_ns;
	ssd_event_set(&ssd->events, ssd_die_source(ssd, index), until_ns);
}

static u64 channel_until(struct ssd *ssd, u32 index, u32 slots)
{
	u64 *free_ns = &ssd->channel_free_ns[index % ssd->params.channels];

	*free_ns = ssd_max(*free_ns, ssd->now_ns) + slots * ssd->params.transfer_ns;
	return *free_ns;
}

static u64 page_read_ns(struct ssd *ssd, u32 page)
{
	const struct ssd_params *params = &ssd->params;
	const u64 by_bit[SSD_BITS_MAX] = {params->read_lsb_ns, params->read_csb_ns,
					  params->read_msb_ns};
	u64 ns = by_bit[page % ssd->geometry.unit_pages / ssd->geometry.bit_pages];

	ssd->counts.page_reads++;
	if (params->retry_ppm && ssd_draw(ssd, 1000000) < params->retry_ppm) {
		ssd->counts.retries++;
		ns += params->retry_ns;
	}
	return ns;
}

static u64 array_read_ns(struct ssd *ssd, u32 page, u32 pages)
{
	u64 ns = 0;

	while (pages--)
		ns += page_read_ns(ssd, page++);
	return ns;
}

/* All pages that were read at once go to the controller; a read of one waits for all. */
static void send_ahead(struct ssd *ssd, u32 index)
{
	struct ssd_die *die = &ssd->dies[index];
	u32 left = die->reads.count;
	u64 until_ns = channel_until(ssd, index, die->pages * ssd->geometry.page_slots);

	while (left--) {
		u32 part = die->reads.head;

		ssd_drop(&die->reads);
		if (ssd->parts[part].page - die->page < die->pages)
			ssd_part_done(ssd, part, until_ns);
		else
			ssd_push(&die->reads, part);
	}
	work_until(ssd, index, SSD_TRANSFER, until_ns);
}

/* Transfers all parts in the queue that wait for the page in the register; returns their end. */
static u64 send_waiting(struct ssd *ssd, u32 index, struct ssd_queue *queue)
{
	struct ssd_die *die = &ssd->dies[index];
	u32 left = queue->count;
	u64 until_ns = ssd->now_ns;

	while (left--) {
		u32 part = queue->head;

		ssd_drop(queue);
		if (ssd->parts[part].page != die->page) {
			ssd_push(queue, part);
			continue;
		}
		if (ssd->parts[part].command == SSD_NONE)
			die->copying = ssd->parts[part].slots;
		until_ns = channel_until(ssd, index, ssd->parts[part].slots);
		ssd_part_done(ssd, part, until_ns);
	}
	return until_ns;
}

static void send(struct ssd *ssd, u32 index)
{
	struct ssd_die *die = &ssd->dies[index];
	u64 until_ns;

	if (die->pages > 1) {
		send_ahead(ssd, index);
		return;
	}
	until_ns = send_waiting(ssd, index, &die->reads);
	until_ns = ssd_max(until_ns, send_waiting(ssd, index, &die->copies));
	work_until(ssd, index, SSD_TRANSFER, until_ns);
}

static void read_page(struct ssd *ssd, u32 index, const struct ssd_queue *queue)
{
	struct ssd_die *die = &ssd->dies[index];
	const struct ssd_part *part = &ssd->parts[queue->head];

	die->streak++;
	if (die->page == part->page) {
		send(ssd, index);
		return;
	}
	die->page = part->page;
	die->pages = part->pages;
	work_until(ssd, index, SSD_ARRAY,
		   ssd->now_ns + array_read_ns(ssd, part->page, part->pages));
}

static void load(struct ssd *ssd, u32 index)
{
	const struct ssd_unit *unit = &ssd->units[ssd->dies[index].programs.head];

	work_until(ssd, index, SSD_LOAD, channel_until(ssd, index, unit->fill));
}

static void begin_program(struct ssd *ssd, u32 index)
{
	struct ssd_die *die = &ssd->dies[index];

	die->streak = 0;
	die->suspends = 0;
	die->page = SSD_NONE;
	if (ssd->units[die->programs.head].erase) {
		ssd->counts.erases++;
		work_until(ssd, index, SSD_ERASE, ssd->now_ns + ssd->params.erase_ns);
	} else {
		load(ssd, index);
	}
}

static void program(struct ssd *ssd, u32 index)
{
	const struct ssd_params *params = &ssd->params;
	u64 ns = params->program_ns;

	ssd->counts.programs++;
	if (ssd->units[ssd->dies[index].programs.head].slc) {
		ns = params->slc_program_ns;
		ssd->counts.slc_programs++;
	} else if (params->program_jitter_ns) {
		ns = ns - params->program_jitter_ns +
		     ssd_draw(ssd, 2 * params->program_jitter_ns + 1);
	}
	work_until(ssd, index, SSD_PROGRAM, ssd->now_ns + ns);
}

/* Called whenever the die is idle. */
static void next(struct ssd *ssd, u32 index)
{
	struct ssd_die *die = &ssd->dies[index];
	bool writes = die->suspended || die->programs.count || die->house_due;

	die->work = SSD_IDLE;
	if (die->reads.count && !(writes && die->streak >= ssd->params.read_streak)) {
		read_page(ssd, index, &die->reads);
	} else if (die->suspended) {
		work_until(ssd, index, SSD_RESUME, ssd->now_ns + ssd->params.resume_ns);
	} else if (die->copies.count) {
		read_page(ssd, index, &die->copies);
	} else if (die->house_due) {
		die->house_due--;
		die->streak = 0;
		work_until(ssd, index, SSD_HOUSE, ssd->now_ns + ssd->params.house_ns);
	} else if (die->programs.count) {
		begin_program(ssd, index);
	}
}

/* A read has come: interrupts an erase or a program if the drive can, and if that saves time. */
static void suspend(struct ssd *ssd, u32 index)
{
	struct ssd_die *die = &ssd->dies[index];
	u64 suspend_ns = ssd->params.suspend_ns;

	if (!suspend_ns || (die->work != SSD_ERASE && die->work != SSD_PROGRAM) ||
	    die->suspends == ssd->params.suspends_max || die->until_ns <= ssd->now_ns + suspend_ns)
		return;
	die->suspends++;
	ssd->counts.suspends++;
	die->left_ns = die->until_ns - ssd->now_ns;
	die->suspended = die->work;
	work_until(ssd, index, SSD_SUSPEND, ssd->now_ns + suspend_ns);
}

static u32 die_of_unit(const struct ssd *ssd, u32 place)
{
	return place % ssd->geometry.dies;
}

void ssd_die_read(struct ssd *ssd, u32 part)
{
	u32 page = ssd->parts[part].page;
	u32 index = die_of_unit(ssd, page / ssd->geometry.unit_pages);
	struct ssd_die *die = &ssd->dies[index];
	bool copy = ssd->parts[part].command == SSD_NONE;

	if (!copy && die->work == SSD_TRANSFER && die->pages > 1 && page - die->page < die->pages) {
		ssd_part_done(ssd, part, die->until_ns);
		return;
	}
	if (!copy && die->work == SSD_TRANSFER && die->page == page) {
		u64 until_ns = channel_until(ssd, index, ssd->parts[part].slots);

		ssd_part_done(ssd, part, until_ns);
		work_until(ssd, index, SSD_TRANSFER, until_ns);
		return;
	}
	ssd_push(copy ? &die->copies : &die->reads, part);
	if (die->work == SSD_IDLE)
		next(ssd, index);
	else if (!copy)
		suspend(ssd, index);
}

void ssd_die_program(struct ssd *ssd, u32 unit)
{
	u32 place = ssd->units[unit].place;
	u32 index = die_of_unit(ssd, place);
	struct ssd_die *die = &ssd->dies[index];

	if (place % ssd->geometry.line_units < ssd->geometry.dies)
		ssd->units[unit].erase = die->opened++ % ssd->params.erase_every == 0;
	ssd_push(&die->programs, unit);
	if (die->work == SSD_IDLE)
		next(ssd, index);
}

bool ssd_die_holds(const struct ssd *ssd, u32 place)
{
	u32 unit = ssd->dies[die_of_unit(ssd, place)].programs.head;

	while (unit != SSD_NONE && ssd->units[unit].place != place)
		unit = ssd->units[unit].next;
	return unit != SSD_NONE;
}

void ssd_house_event(struct ssd *ssd)
{
	u32 index = ssd->house_die;

	ssd->house_die = (index + 1) % ssd->geometry.dies;
	ssd->dies[index].house_due++;
	if (ssd->dies[index].work == SSD_IDLE)
		next(ssd, index);
	ssd_event_set(&ssd->events, ssd_house_source(ssd),
		      ssd->now_ns + ssd->params.house_period_us * 1000);
}

static void program_over(struct ssd *ssd, u32 index)
{
	struct ssd_die *die = &ssd->dies[index];
	u32 unit = die->programs.head;

	ssd_drop(&die->programs);
	ssd_program_ended(ssd, unit);
	next(ssd, index);
}

static void transfer_over(struct ssd *ssd, u32 index)
{
	struct ssd_die *die = &ssd->dies[index];

	if (die->pages > 1) {
		ssd_ahead_keep(ssd, die->page, die->pages);
		die->page = SSD_NONE;
		die->pages = 1;
	}
	if (die->copying) {
		ssd_gc_page_done(ssd, die->page, die->copying);
		die->copying = 0;
	}
	next(ssd, index);
}

/* The die's present work has ended. */
void ssd_die_event(struct ssd *ssd, u32 index)
{
	struct ssd_die *die = &ssd->dies[index];

	switch (die->work) {
	case SSD_ARRAY:
		send(ssd, index);
		break;
	case SSD_TRANSFER:
		transfer_over(ssd, index);
		break;
	case SSD_ERASE:
		load(ssd, index);
		break;
	case SSD_LOAD:
		program(ssd, index);
		break;
	case SSD_PROGRAM:
		program_over(ssd, index);
		break;
	case SSD_RESUME:
		die->streak = 0;
		work_until(ssd, index, die->suspended, ssd->now_ns + die->left_ns);
		die->suspended = SSD_IDLE;
		break;
	default: /* housekeeping is over, or the program is suspended */
		next(ssd, index);
	}
}
