// SPDX-License-Identifier: GPL-2.0-only
/* debugfs steady_scsi/stats: one "key value" per line. */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "steady_scsi.h"

static struct dentry *sscsi_debugfs_root;

static int stats_show(struct seq_file *out, void *unused)
{
	struct sscsi_disk *disk = out->private;
	const struct sscsi_stats *stats = &disk->stats;

	mutex_lock(&disk->lock);
	seq_printf(out, "reads %llu\n", stats->ops[FLASH_READ]);
	seq_printf(out, "writes %llu\n", stats->ops[FLASH_WRITE]);
	seq_printf(out, "writes_durable %llu\n", stats->durable_writes);
	seq_printf(out, "flushes %llu\n", stats->ops[FLASH_FLUSH]);
	seq_printf(out, "failed %llu\n", stats->failed);
	seq_printf(out, "silent %llu\n", stats->silent);
	seq_printf(out, "cached_kib %llu\n", disk->flash.cached_sectors / 2);
	seq_printf(out, "inflight_max %u\n", stats->inflight_max);
	mutex_unlock(&disk->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/* Missing debugfs is no error: the disk works without. */
void sscsi_debugfs_create(struct sscsi_disk *disk)
{
	sscsi_debugfs_root = debugfs_create_dir("steady_scsi", NULL);
	debugfs_create_file("stats", 0400, sscsi_debugfs_root, disk, &stats_fops);
}

void sscsi_debugfs_remove(void)
{
	debugfs_remove_recursive(sscsi_debugfs_root);
}
