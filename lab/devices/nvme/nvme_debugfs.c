// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs steady_nvme/
 *   stats          one "key value" per line
 *   inflight_max   the most I/O commands that the drive had at a time; write 0 to restart
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "steady_nvme.h"

static struct dentry *root;

static int stats_show(struct seq_file *out, void *unused)
{
	struct snvme *dev = out->private;
	struct snvme_stats stats;

	spin_lock_irq(&dev->lock);
	stats = dev->stats;
	spin_unlock_irq(&dev->lock);
	seq_printf(out, "reads %llu\n", stats.reads);
	seq_printf(out, "read_kib %llu\n", stats.read_sectors / 2);
	seq_printf(out, "writes %llu\n", stats.writes);
	seq_printf(out, "written_kib %llu\n", stats.written_sectors / 2);
	seq_printf(out, "writes_fua %llu\n", stats.fua_writes);
	seq_printf(out, "flushes %llu\n", stats.flushes);
	seq_printf(out, "discards %llu\n", stats.discards);
	seq_printf(out, "zeroes %llu\n", stats.zeroes);
	seq_printf(out, "admin %llu\n", stats.admin);
	seq_printf(out, "refused %llu\n", stats.refused);
	seq_printf(out, "failed %llu\n", stats.failed);
	seq_printf(out, "silent %llu\n", stats.silent);
	seq_printf(out, "interrupts %llu\n", stats.interrupts);
	seq_printf(out, "inflight %u\n", stats.inflight);
	seq_printf(out, "inflight_max %u\n", stats.inflight_max);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int inflight_max_get(void *context, u64 *value)
{
	struct snvme *dev = context;

	*value = READ_ONCE(dev->stats.inflight_max);
	return 0;
}

static int inflight_max_set(void *context, u64 value)
{
	struct snvme *dev = context;

	if (value) {
		pr_err("steady_nvme: inflight_max: write 0\n");
		return -EINVAL;
	}
	spin_lock_irq(&dev->lock);
	dev->stats.inflight_max = dev->stats.inflight;
	spin_unlock_irq(&dev->lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(inflight_max_fops, inflight_max_get, inflight_max_set, "%llu\n");

/* Missing debugfs is no error: the drive works without. */
void snvme_debugfs_create(struct snvme *dev)
{
	root = debugfs_create_dir("steady_nvme", NULL);
	debugfs_create_file("stats", 0400, root, dev, &stats_fops);
	debugfs_create_file_unsafe("inflight_max", 0600, root, dev, &inflight_max_fops);
}

void snvme_debugfs_remove(void)
{
	debugfs_remove_recursive(root);
}
