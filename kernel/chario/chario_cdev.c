// SPDX-License-Identifier: GPL-2.0-only
/*
 * File operations of /dev/chardiskN: open, read, write, lseek and fsync.
 */
#include <linux/fs.h>
#include <linux/ioprio.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/xarray.h>

#include "chario.h"
#include "iter_segment.h"

/* The largest ssize_t; read(2) and write(2) have a smaller limit, 2 GiB. */
#define CALL_BYTES_MAX (SSIZE_MAX & PAGE_MASK)

/*
 * O_EXCL: no other file of the device is open, through any node, and none can be opened until this
 * one is closed. A lock of the file would cover only one node.
 */
static int enter(struct chario_disk *disk, bool is_exclusive)
{
	if (is_exclusive)
		return atomic_cmpxchg(&disk->opened, 0, -1) ? -EBUSY : 0;
	return atomic_inc_unless_negative(&disk->opened) ? 0 : -EBUSY;
}

static void leave(struct chario_disk *disk, bool is_exclusive)
{
	if (is_exclusive)
		atomic_set_release(&disk->opened, 0);
	else
		atomic_dec(&disk->opened);
}

static int chario_open(struct inode *inode, struct file *filp)
{
	struct chario_disk *disk = container_of(inode->i_cdev, struct chario_disk, cdev);
	struct chario_file *file;
	int error;

	if (READ_ONCE(disk->queue.gone))
		return -ENODEV;
	if (filp->f_mode & FMODE_WRITE && !chario_disk_can_write(disk))
		return -EROFS;
	file = kzalloc(sizeof(*file), GFP_KERNEL);
	if (!file)
		return -ENOMEM;
	file->disk = disk;
	file->is_exclusive = filp->f_flags & O_EXCL;
	error = enter(disk, file->is_exclusive);
	if (error) {
		kfree(file);
		return error;
	}
	xa_init_flags(&file->buffers, XA_FLAGS_ALLOC);
	filp->private_data = file;
	/* All I/O is direct, so O_DIRECT is accepted. */
	filp->f_mode |= FMODE_CAN_ODIRECT;
	return 0;
}

/* The inode's reference to the cdev keeps the memory of the disk. */
static int chario_release(struct inode *inode, struct file *filp)
{
	struct chario_file *file = filp->private_data;

	chario_buffers_free(file);
	leave(file->disk, file->is_exclusive);
	kvfree(file->spare);
	kfree(file);
	return 0;
}

static loff_t chario_llseek(struct file *filp, loff_t offset, int whence)
{
	struct chario_file *file = filp->private_data;
	loff_t before = filp->f_pos, after;

	after = fixed_size_llseek(filp, offset, whence, chario_disk_bytes(file->disk));
	if (after < 0 || chario_is_aligned(file->disk, after))
		return after;
	filp->f_pos = before;
	return -EINVAL;
}

/* Returns a real-time level, 0 to 7, or CHARIO_BACKGROUND. ioprio is as for ioprio_set(2). */
u8 chario_level(u16 ioprio)
{
	return IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_RT ? ioprio % CHARIO_RT_LEVELS
							    : CHARIO_BACKGROUND;
}

/*
 * Checks and counts a transfer of `bytes` at call->offset. Returns the number of bytes to transfer,
 * 0 at the end of the device, or an error.
 */
ssize_t chario_call_begin(struct chario_call *call, u64 bytes)
{
	struct chario_disk *disk = call->file->disk;
	u64 disk_bytes = chario_disk_bytes(disk);
	int error;

	if (READ_ONCE(disk->queue.gone))
		return -ENODEV;
	if (!chario_is_aligned(disk, call->offset | bytes))
		return -EINVAL;
	if (!bytes)
		return 0;
	if (call->offset >= disk_bytes)
		return call->write ? -ENOSPC : 0;
	bytes = min3(bytes, disk_bytes - call->offset, (u64)CALL_BYTES_MAX);
	bytes = round_down(bytes, disk->block_bytes);
	error = chario_disk_may(disk, call->offset, bytes, call->write);
	if (error)
		return error;
	chario_count(call->file->disk, call->file, call->write ? CHARIO_WRITES : CHARIO_READS, 1);
	if (chario_is_rt(call->level))
		chario_count(call->file->disk, call->file, CHARIO_RT_CALLS, 1);
	return bytes;
}

/* Makes a durable write durable, releases the host, counts. Returns 0 or the flush's error. */
int chario_call_end(struct chario_call *call, ssize_t result)
{
	struct chario_file *file = call->file;
	struct chario_disk *disk = file->disk;
	int error = 0;

	if (call->durable && !disk->has_reliable_write && call->done_bytes)
		error = chario_flush(file, call->level);
	chario_queue_rest(disk);
	chario_count(disk, file, call->write ? CHARIO_WRITE_BYTES : CHARIO_READ_BYTES,
		     call->done_bytes);
	if (result == -EIO || error == -EIO)
		chario_count(disk, file, CHARIO_ERRORS, 1);
	return error;
}

/* Transfers each segment of the caller's memory separately; each is aligned. */
static ssize_t transfer_segments(struct chario_call *call, struct iov_iter *iter, size_t bytes)
{
	size_t begun = call->done_bytes;
	ssize_t done = 0;

	while (bytes) {
		unsigned long address;
		size_t segment = min(chario_iter_segment(iter, &address), bytes);

		if (!segment) {
			iov_iter_advance(iter, 0); /* skip an empty segment */
			continue;
		}
		done = chario_transfer_user(call, address, segment);
		if (done < 0)
			break;
		iov_iter_advance(iter, done);
		bytes -= done;
		if (done < segment)
			break;
	}
	return call->done_bytes > begun ? call->done_bytes - begun : done;
}

static ssize_t transfer_iter(struct kiocb *iocb, struct iov_iter *iter, bool write)
{
	struct chario_call call = {
		.file = iocb->ki_filp->private_data,
		.write = write,
		.durable = write && iocb_is_dsync(iocb),
		.level = chario_level(iocb->ki_ioprio),
		.offset = iocb->ki_pos,
	};
	ssize_t bytes, done;
	int error;

	if (!user_backed_iter(iter))
		return -EOPNOTSUPP;
	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	if (!chario_is_aligned(call.file->disk, iov_iter_alignment(iter)))
		return -EINVAL;
	bytes = chario_call_begin(&call, iov_iter_count(iter));
	if (bytes <= 0)
		return bytes;
	done = transfer_segments(&call, iter, bytes);
	error = chario_call_end(&call, done);
	if (error)
		return error;
	if (done > 0)
		iocb->ki_pos += done;
	return done;
}

static ssize_t chario_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	return transfer_iter(iocb, to, false);
}

static ssize_t chario_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	return transfer_iter(iocb, from, true);
}

static int chario_fsync(struct file *filp, loff_t start, loff_t end, int datasync)
{
	struct chario_file *file = filp->private_data;
	int error = chario_flush(file, chario_level(get_current_ioprio()));

	chario_queue_rest(file->disk);
	return error;
}

const struct file_operations chario_fops = {
	.owner = THIS_MODULE,
	.open = chario_open,
	.release = chario_release,
	.llseek = chario_llseek,
	.read_iter = chario_read_iter,
	.write_iter = chario_write_iter,
	.fsync = chario_fsync,
	.unlocked_ioctl = chario_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
