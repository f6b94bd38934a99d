// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transfers a call of any size: pins memory in chunks of 4 MiB, and transfers each chunk in
 * operations as large as the host, the card and the knobs allow.
 *
 * Failed operations are retried here, because only the caller may shrink them: first unchanged,
 * then block by block, so that the good blocks around a bad one are transferred.
 */
#include <linux/freezer.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "chario.h"

#define TRIES_MAX 3

/* The pages of a chunk; offset counts from the start of the first page. */
struct memory {
	struct page **pages;
	size_t offset;
};

struct chario_work *chario_work_get(struct chario_file *file)
{
	struct chario_work *work = xchg(&file->spare, NULL);

	if (!work) {
		work = kvzalloc(struct_size(work, sg, file->disk->segments_max), GFP_KERNEL);
		if (work)
			INIT_LIST_HEAD(&work->op.entry);
	}
	return work;
}

void chario_work_put(struct chario_file *file, struct chario_work *work)
{
	if (cmpxchg(&file->spare, NULL, work))
		kvfree(work);
}

/* The largest command of this level. It is read for each command, so knobs act at once. */
static u32 command_bytes(const struct chario_disk *disk, u8 level)
{
	u32 bytes = disk->host_command_bytes, kib = READ_ONCE(disk->command_kib);

	if (kib)
		bytes = min(bytes, kib * 1024);
	if (!chario_is_rt(level))
		bytes = min(bytes, READ_ONCE(disk->bg_kib) * 1024);
	return bytes;
}

static void op_begin(struct chario_op *op, enum chario_kind kind, u8 level)
{
	op->kind = kind;
	op->level = level;
	op->durable = false;
	op->reset_first = false;
	op->keeps_place = false;
	op->was_sent = false;
}

static void count_command(struct chario_call *call, struct chario_op *op, u32 tries)
{
	struct chario_file *file = call->file;

	if (!op->was_sent)
		return;
	call->commands++;
	chario_count(file->disk, file, call->write ? CHARIO_WRITE_COMMANDS : CHARIO_READ_COMMANDS,
		     1);
	if (tries)
		chario_count(file->disk, file, CHARIO_RETRIES, 1);
}

/* Runs one operation from `memory`, of at most `limit` bytes. Its result is in op. */
static int run_one(struct chario_call *call, struct chario_work *work, struct memory *memory,
		   size_t limit, u32 tries)
{
	const struct chario_disk *disk = call->file->disk;
	struct chario_op *op = &work->op;
	u32 bytes;

	op->sector = disk->first_sector + (call->offset + call->done_bytes) / CHARIO_SECTOR_BYTES;
	bytes = min_t(size_t, limit, command_bytes(disk, call->level));
	bytes = chario_map(disk, memory->pages, memory->offset, bytes, work->sg, &op->sg_len);
	op->sectors = bytes / CHARIO_SECTOR_BYTES;
	op->sg = work->sg;
	op->was_sent = false;
	chario_queue_run(call->file->disk, op);
	count_command(call, op, tries);
	return op->error;
}

/*
 * Handles an error. Returns whether to go on, and shrinks *limit to one block after the same
 * operation has failed twice.
 */
static bool try_again(const struct chario_disk *disk, struct chario_op *op, u32 *tries,
		      size_t *limit)
{
	if (op->error != -EIO || ++*tries >= TRIES_MAX || fatal_signal_pending(current))
		return false;
	/* If the card does not even take commands, the last try begins with a reset. */
	op->reset_first = !op->card_answers && *tries == TRIES_MAX - 1;
	if (*tries == TRIES_MAX - 1 && op->card_answers &&
	    op->sectors * CHARIO_SECTOR_BYTES > disk->block_bytes) {
		*limit = disk->block_bytes;
		*tries = 1;
	}
	return true;
}

/* Transfers a chunk. Returns 0 or the error that ended it, and adds to call->done_bytes. */
static int run_chunk(struct chario_call *call, struct chario_work *work, struct memory memory,
		     size_t bytes)
{
	const struct chario_disk *disk = call->file->disk;
	struct chario_op *op = &work->op;
	size_t limit = bytes, careful = 0;
	u32 tries = 0;
	int error = 0;

	op_begin(op, call->write ? CHARIO_OP_WRITE : CHARIO_OP_READ, call->level);
	op->durable = call->durable && disk->has_reliable_write;
	while (bytes) {
		op->keeps_place = chario_is_rt(call->level);
		error = run_one(call, work, &memory, min(bytes, limit), tries);
		if (error) {
			careful = max_t(size_t, careful, op->sectors * CHARIO_SECTOR_BYTES);
			if (!try_again(disk, op, &tries, &limit))
				break;
			continue;
		}
		/* The host reports neither progress nor an error. */
		if (!op->done_bytes) {
			error = -EIO;
			break;
		}
		tries = 0;
		op->reset_first = false;
		call->done_bytes += op->done_bytes;
		memory.offset += op->done_bytes;
		bytes -= op->done_bytes;
		if (careful <= op->done_bytes)
			limit = SIZE_MAX;
		else
			careful -= op->done_bytes;
	}
	chario_queue_leave(call->file->disk, op);
	return error;
}

/* Between chunks, a killed process leaves, and a freezing one freezes. */
static int pause_point(void)
{
	if (fatal_signal_pending(current))
		return -EINTR;
	try_to_freeze();
	return 0;
}

/* Returns the result of read(2) or write(2). */
static ssize_t result_of(struct chario_call *call, u64 before, int error)
{
	call->error = error;
	return call->done_bytes > before ? call->done_bytes - before : error;
}

/* Transfers from or to memory of the caller, which is pinned chunk by chunk. */
ssize_t chario_transfer_user(struct chario_call *call, unsigned long address, size_t bytes)
{
	struct chario_work *work = chario_work_get(call->file);
	u64 before = call->done_bytes;
	int error = 0;

	if (!work)
		return -ENOMEM;
	while (bytes && !error) {
		size_t chunk = min_t(size_t, bytes, CHARIO_CHUNK_BYTES);
		struct memory memory = {work->pages, offset_in_page(address)};
		u64 done = call->done_bytes;
		int pages;

		error = pause_point();
		if (error)
			break;
		pages = chario_pin(address, chunk, !call->write, work->pages);
		if (pages <= 0) {
			error = pages ?: -EFAULT;
			break;
		}
		chunk = min_t(size_t, chunk, pages * PAGE_SIZE - memory.offset);
		chunk = round_down(chunk, call->file->disk->block_bytes);
		error = chunk ? run_chunk(call, work, memory, chunk) : -EFAULT;
		chario_unpin(work->pages, pages, !call->write);
		done = call->done_bytes - done;
		address += done;
		bytes -= done;
	}
	chario_work_put(call->file, work);
	return result_of(call, before, error);
}

/* Transfers from or to a registered buffer. The caller has checked its size. */
ssize_t chario_transfer_buffer(struct chario_call *call, struct chario_buffer *buffer, u64 offset,
			       size_t bytes)
{
	struct chario_work *work = chario_work_get(call->file);
	u64 before = call->done_bytes;
	int error = 0;

	if (!work)
		return -ENOMEM;
	while (bytes && !error) {
		size_t chunk = min_t(size_t, bytes, CHARIO_CHUNK_BYTES);
		struct memory memory = {buffer->pages, offset};
		u64 done = call->done_bytes;

		error = pause_point();
		if (!error)
			error = run_chunk(call, work, memory, chunk);
		done = call->done_bytes - done;
		offset += done;
		bytes -= done;
	}
	chario_work_put(call->file, work);
	return result_of(call, before, error);
}

/* Returns 0 when all earlier writes are on flash. */
int chario_flush(struct chario_file *file, u8 level)
{
	struct chario_work *work;
	int error;

	if (!file->disk->has_cache)
		return READ_ONCE(file->disk->queue.gone) ? -ENODEV : 0;
	work = chario_work_get(file);
	if (!work)
		return -ENOMEM;
	op_begin(&work->op, CHARIO_OP_FLUSH, level);
	error = chario_queue_run(file->disk, &work->op);
	if (work->op.was_sent)
		chario_count(file->disk, file, CHARIO_FLUSHES, 1);
	chario_work_put(file, work);
	return error;
}

/* Discards in parts that end at multiples of a chunk, so few cross an erase unit. */
int chario_discard(struct chario_file *file, u8 level, u64 offset, u64 bytes)
{
	struct chario_work *work = chario_work_get(file);
	struct chario_op *op;
	int error = 0;

	if (!work)
		return -ENOMEM;
	op = &work->op;
	while (bytes && !error) {
		u32 part = min_t(u64, bytes, CHARIO_CHUNK_BYTES - offset % CHARIO_CHUNK_BYTES);

		error = pause_point();
		if (error)
			break;
		op_begin(op, CHARIO_OP_DISCARD, level);
		op->sector = file->disk->first_sector + offset / CHARIO_SECTOR_BYTES;
		op->sectors = part / CHARIO_SECTOR_BYTES;
		error = chario_queue_run(file->disk, op);
		if (op->was_sent)
			chario_count(file->disk, file, CHARIO_DISCARDS, 1);
		offset += part;
		bytes -= part;
	}
	chario_work_put(file, work);
	return error;
}
