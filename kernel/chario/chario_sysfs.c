// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/chardisk/chardiskN/: properties, knobs and counters of the device.
 */
#include <linux/kernel.h>
#include <linux/sysfs.h>

#include "chario.h"

void chario_count(struct chario_disk *disk, struct chario_file *file, enum chario_counter counter,
		  u64 amount)
{
	atomic64_add(amount, &disk->stats.count[counter]);
	if (file)
		atomic64_add(amount, &file->stats.count[counter]);
}

static struct chario_disk *to_disk(struct device *dev)
{
	return container_of(dev, struct chario_disk, dev);
}

static ssize_t card_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%s\n", to_disk(dev)->card_name);
}
static DEVICE_ATTR_RO(card);

static ssize_t mode_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%s\n", to_disk(dev)->mode == CHARDISK_MODE_OWN ? "own" : "lane");
}
static DEVICE_ATTR_RO(mode);

/* The partition of a lane; an empty line for a whole card. */
static ssize_t partition_show(struct device *dev, struct device_attribute *attr, char *text)
{
	const struct chario_lane *lane = to_disk(dev)->queue.lane;

	return sysfs_emit(text, "%s\n", lane ? chario_lane_partition(lane) : "");
}
static DEVICE_ATTR_RO(partition);

static ssize_t size_bytes_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%llu\n", chario_disk_bytes(to_disk(dev)));
}
static DEVICE_ATTR_RO(size_bytes);

static ssize_t regions_show(struct device *dev, struct device_attribute *attr, char *text)
{
	const struct chario_regions *regions = &to_disk(dev)->regions;
	ssize_t length = 0;
	u32 i;

	for (i = 0; i < regions->count; i++)
		length += sysfs_emit_at(text, length, "%llu+%llu%s\n", regions->region[i].offset,
					regions->region[i].bytes,
					regions->region[i].read_only ? "ro" : "");
	return length;
}
static DEVICE_ATTR_RO(regions);

/* Parses KiB: a multiple of the block size, from `least` to the size of a chunk. */
static int kib_from(const struct chario_disk *disk, const char *text, u32 least, u32 *kib)
{
	unsigned int value;
	int error = kstrtouint(text, 10, &value);

	if (error)
		return -EINVAL;
	if (value < least || value > CHARIO_CHUNK_BYTES / 1024)
		return -EINVAL;
	if (value * 1024 % disk->block_bytes)
		return -EINVAL;
	WRITE_ONCE(*kib, value);
	return 0;
}

static ssize_t bg_kib_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(to_disk(dev)->bg_kib));
}

static ssize_t bg_kib_store(struct device *dev, struct device_attribute *attr, const char *text,
			    size_t length)
{
	struct chario_disk *disk = to_disk(dev);

	return kib_from(disk, text, 1, &disk->bg_kib) ?: length;
}
static DEVICE_ATTR_RW(bg_kib);

static ssize_t command_kib_show(struct device *dev, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(to_disk(dev)->command_kib));
}

static ssize_t command_kib_store(struct device *dev, struct device_attribute *attr,
				 const char *text, size_t length)
{
	struct chario_disk *disk = to_disk(dev);

	return kib_from(disk, text, 0, &disk->command_kib) ?: length;
}
static DEVICE_ATTR_RW(command_kib);

static const char *const counter_name[CHARIO_COUNTERS] = {
	[CHARIO_READS] = "reads",
	[CHARIO_READ_BYTES] = "read_bytes",
	[CHARIO_READ_COMMANDS] = "read_commands",
	[CHARIO_WRITES] = "writes",
	[CHARIO_WRITE_BYTES] = "write_bytes",
	[CHARIO_WRITE_COMMANDS] = "write_commands",
	[CHARIO_FLUSHES] = "flushes",
	[CHARIO_DISCARDS] = "discards",
	[CHARIO_RETRIES] = "retries",
	[CHARIO_RESETS] = "resets",
	[CHARIO_ERRORS] = "errors",
	[CHARIO_RT_CALLS] = "rt_calls",
};

static ssize_t stats_show(struct device *dev, struct device_attribute *attr, char *text)
{
	const struct chario_stats *stats = &to_disk(dev)->stats;
	ssize_t length = 0;
	int i;

	for (i = 0; i < CHARIO_COUNTERS; i++)
		length += sysfs_emit_at(text, length, "%s %lld\n", counter_name[i],
					atomic64_read(&stats->count[i]));
	return length;
}
static DEVICE_ATTR_RO(stats);

static struct attribute *chario_attrs[] = {
	&dev_attr_card.attr,	    &dev_attr_mode.attr,    &dev_attr_partition.attr,
	&dev_attr_size_bytes.attr,  &dev_attr_regions.attr, &dev_attr_bg_kib.attr,
	&dev_attr_command_kib.attr, &dev_attr_stats.attr,   NULL,
};

static const struct attribute_group chario_group = {.attrs = chario_attrs};

const struct attribute_group *chario_groups[] = {&chario_group, NULL};
