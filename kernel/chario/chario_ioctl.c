// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls that uapi/chardisk.h describes.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/ioprio.h>
#include <linux/uaccess.h>

#include "chario.h"

static bool all_zero(const void *memory, size_t bytes)
{
	return !memchr_inv(memory, 0, bytes);
}

static u32 kib_limit(u32 kib, u32 bytes_max)
{
	return kib ? min(kib * 1024, bytes_max) : bytes_max;
}

static void describe(const struct chario_file *file, bool writable, struct chardisk_info *info)
{
	struct chario_disk *disk = file->disk;
	bool can_write = chario_disk_can_write(disk);

	memset(info, 0, sizeof(*info));
	info->version = CHARDISK_VERSION;
	info->mode = disk->mode;
	info->capabilities = (can_write && writable ? CHARDISK_CAN_WRITE : 0) |
			     (can_write && disk->can_discard ? CHARDISK_CAN_DISCARD : 0) |
			     (disk->has_cache ? CHARDISK_HAS_CACHE : 0) |
			     (disk->has_reliable_write ? CHARDISK_HAS_DURABLE : 0) |
			     (disk->regions.count ? CHARDISK_HAS_REGIONS : 0) |
			     (chario_has_declared() ? CHARDISK_HAS_MEMORY : 0);
	info->bytes = chario_disk_bytes(disk);
	info->card_offset_bytes = (u64)disk->first_sector * CHARIO_SECTOR_BYTES;
	info->block_bytes = disk->block_bytes;
	info->memory_align_bytes = disk->block_bytes;
	info->command_bytes_max = kib_limit(READ_ONCE(disk->command_kib), disk->host_command_bytes);
	info->bg_command_bytes_max = kib_limit(READ_ONCE(disk->bg_kib), info->command_bytes_max);
	info->segments_max = disk->segments_max;
	info->chunk_bytes = CHARIO_CHUNK_BYTES;
	info->erase_bytes = disk->erase_bytes;
	info->regions = disk->regions.count ?: 1;
	info->buffers_max = CHARIO_BUFFERS_MAX;
	info->buffer_bytes_max = CHARIO_BUFFER_BYTES;
	strscpy(info->card, disk->card_name, sizeof(info->card));
}

static int do_info(struct file *filp, void *argument)
{
	struct chardisk_info *info = argument;

	if (info->flags || !all_zero(info->reserved, sizeof(info->reserved)))
		return -EINVAL;
	describe(filp->private_data, filp->f_mode & FMODE_WRITE, info);
	return 0;
}

static int do_region(struct file *filp, void *argument)
{
	const struct chario_file *file = filp->private_data;
	const struct chario_regions *regions = &file->disk->regions;
	struct chario_region all = {.bytes = chario_disk_bytes(file->disk)};
	const struct chario_region *region = &all;
	struct chardisk_region *out = argument;

	if (out->flags || out->reserved)
		return -EINVAL;
	if (out->index >= (regions->count ?: 1))
		return -ENOENT;
	if (regions->count)
		region = &regions->region[out->index];
	out->offset = region->offset;
	out->bytes = region->bytes;
	out->region_flags = region->read_only ? CHARDISK_REGION_READ_ONLY : 0;
	return 0;
}

static int do_register(struct file *filp, void *argument)
{
	return chario_buffer_register(filp->private_data, argument);
}

static int do_unregister(struct file *filp, void *argument)
{
	const struct chardisk_unregister *request = argument;

	if (request->flags)
		return -EINVAL;
	return chario_buffer_unregister(filp->private_data, request->buffer);
}

/* Checks like ioprio_set(2). Returns 0 to 7 or CHARIO_BACKGROUND, or an error. */
static int level_of(u16 ioprio)
{
	if (!ioprio)
		return chario_level(get_current_ioprio());
	if (IOPRIO_PRIO_CLASS(ioprio) > IOPRIO_CLASS_IDLE ||
	    IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_NONE ||
	    IOPRIO_PRIO_DATA(ioprio) >= CHARIO_RT_LEVELS)
		return -EINVAL;
	if (IOPRIO_PRIO_CLASS(ioprio) == IOPRIO_CLASS_RT && !capable(CAP_SYS_ADMIN) &&
	    !capable(CAP_SYS_NICE))
		return -EPERM;
	return chario_level(ioprio);
}

static int check_transfer(const struct file *filp, const struct chardisk_transfer *request)
{
	if (request->op > CHARDISK_WRITE || request->flags & ~CHARDISK_DURABLE)
		return -EINVAL;
	if (request->flags & CHARDISK_DURABLE && request->op == CHARDISK_READ)
		return -EINVAL;
	if (!(filp->f_mode & (request->op == CHARDISK_WRITE ? FMODE_WRITE : FMODE_READ)))
		return -EBADF;
	return 0;
}

/* Checks both ends of the memory, for any 64-bit numbers. */
static int check_memory(const struct chario_disk *disk, const struct chario_buffer *buffer,
			u64 offset, u64 bytes)
{
	u64 end;

	if (!chario_is_aligned(disk, offset) || check_add_overflow(offset, bytes, &end))
		return -EINVAL;
	if (buffer)
		return end > buffer->bytes ? -EINVAL : 0;
	return end > ULONG_MAX ? -EFAULT : 0;
}

static ssize_t transfer(struct chario_call *call, struct chario_buffer *buffer,
			const struct chardisk_transfer *request)
{
	int error = check_memory(call->file->disk, buffer, request->buffer_offset, request->bytes);
	ssize_t bytes, done;

	if (error)
		return error;
	bytes = chario_call_begin(call, request->bytes);
	if (bytes <= 0)
		return bytes;
	if (buffer)
		done = chario_transfer_buffer(call, buffer, request->buffer_offset, bytes);
	else
		done = chario_transfer_user(call, request->buffer_offset, bytes);
	error = chario_call_end(call, done);
	return error ?: done;
}

static int do_transfer(struct file *filp, void *argument)
{
	struct chardisk_transfer *request = argument;
	struct chario_buffer *buffer = NULL;
	struct chario_call call = {
		.file = filp->private_data,
		.write = request->op == CHARDISK_WRITE,
		.durable = request->op == CHARDISK_WRITE &&
			   (request->flags & CHARDISK_DURABLE || filp->f_flags & O_DSYNC),
		.offset = request->offset,
	};
	int level = level_of(request->ioprio);
	int error = check_transfer(filp, request);
	ssize_t done;

	if (error || level < 0)
		return error ?: level;
	call.level = level;
	if (request->buffer != CHARDISK_NO_BUFFER) {
		buffer = chario_buffer_get(call.file, request->buffer);
		if (IS_ERR(buffer))
			return PTR_ERR(buffer);
	}
	done = transfer(&call, buffer, request);
	if (buffer)
		chario_buffer_put(buffer);
	request->done_bytes = call.done_bytes;
	request->commands = call.commands;
	return done < 0 ? done : call.error;
}

static int do_discard(struct file *filp, void *argument)
{
	const struct chardisk_discard *range = argument;
	struct chario_file *file = filp->private_data;
	struct chario_disk *disk = file->disk;
	u64 end;
	int error;

	if (range->flags || range->reserved ||
	    !chario_is_aligned(disk, range->offset | range->bytes))
		return -EINVAL;
	if (!(filp->f_mode & FMODE_WRITE))
		return -EBADF;
	if (!disk->can_discard)
		return -EOPNOTSUPP;
	if (check_add_overflow(range->offset, range->bytes, &end) || end > chario_disk_bytes(disk))
		return -ERANGE;
	if (!range->bytes)
		return 0;
	error = chario_disk_may(disk, range->offset, range->bytes, true);
	if (error)
		return error;
	error = chario_discard(file, chario_level(get_current_ioprio()), range->offset,
			       range->bytes);
	chario_queue_rest(file->disk);
	if (error == -EIO)
		chario_count(file->disk, file, CHARIO_ERRORS, 1);
	return error;
}

static int do_stats(struct file *filp, void *argument)
{
	struct chario_file *file = filp->private_data;
	struct chardisk_stats *out = argument;
	const struct chario_stats *stats = &file->stats;
	u64 *fields = &out->reads;
	int i;

	if (out->flags || out->scope > CHARDISK_STATS_DEVICE ||
	    !all_zero(out->reserved, sizeof(out->reserved)))
		return -EINVAL;
	if (out->scope == CHARDISK_STATS_DEVICE)
		stats = &file->disk->stats;
	/* The counters are in the order of the fields. */
	BUILD_BUG_ON(offsetof(struct chardisk_stats, rt_calls) !=
		     offsetof(struct chardisk_stats, reads) + CHARIO_RT_CALLS * sizeof(u64));
	for (i = 0; i < CHARIO_COUNTERS; i++)
		fields[i] = atomic64_read(&stats->count[i]);
	return 0;
}

struct command {
	unsigned int request;
	int (*run)(struct file *filp, void *argument);
};

static const struct command commands[] = {
	{CHARDISK_IOC_INFO, do_info},	      {CHARDISK_IOC_REGION, do_region},
	{CHARDISK_IOC_REGISTER, do_register}, {CHARDISK_IOC_UNREGISTER, do_unregister},
	{CHARDISK_IOC_TRANSFER, do_transfer}, {CHARDISK_IOC_DISCARD, do_discard},
	{CHARDISK_IOC_STATS, do_stats},
};

union argument {
	struct chardisk_info info;
	struct chardisk_region region;
	struct chardisk_register buffer;
	struct chardisk_transfer transfer;
	struct chardisk_discard discard;
	struct chardisk_stats stats;
};

/* Are results copied to the caller? After an error only those of a transfer are. */
static bool tells(unsigned int request, int error)
{
	if (!(_IOC_DIR(request) & _IOC_READ))
		return false;
	return !error || request == CHARDISK_IOC_TRANSFER;
}

long chario_ioctl(struct file *filp, unsigned int request, unsigned long argument)
{
	struct chario_file *file = filp->private_data;
	void __user *user = (void __user *)argument;
	union argument copy;
	int error, i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].request == request)
			break;
	if (i == ARRAY_SIZE(commands))
		return -ENOTTY;
	if (request != CHARDISK_IOC_UNREGISTER && READ_ONCE(file->disk->queue.gone))
		return -ENODEV;
	if (copy_from_user(&copy, user, _IOC_SIZE(request)))
		return -EFAULT;
	error = commands[i].run(filp, &copy);
	if (tells(request, error) && copy_to_user(user, &copy, _IOC_SIZE(request)))
		error = -EFAULT;
	return error;
}
