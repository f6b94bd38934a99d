// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs steady_emmc/
 *   power_cut   write 1: the card loses power now; its cache is lost, and it answers nothing
 *               until the driver is bound again or the module loaded again
 *   stats       one "key value" per line
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "emmc.h"

static struct dentry *emmc_debugfs_root;

static ssize_t power_cut_write(struct file *file, const char __user *from, size_t count,
			       loff_t *pos)
{
	bool cut;
	int err = kstrtobool_from_user(from, count, &cut);

	if (err || !cut) {
		pr_err("steady_emmc: power_cut: write 1\n");
		return -EINVAL;
	}
	emmc_card_cut_power(file->private_data);
	return count;
}

static const struct file_operations power_cut_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = power_cut_write,
	.llseek = noop_llseek,
};

static int stats_show(struct seq_file *out, void *unused)
{
	struct emmc_card *card = out->private;
	const struct emmc_stats *stats = &card->stats;

	mutex_lock(&card->lock);
	seq_printf(out, "reads %llu\n", stats->ops[FLASH_READ]);
	seq_printf(out, "writes %llu\n", stats->ops[FLASH_WRITE]);
	seq_printf(out, "writes_durable %llu\n", stats->durable_writes);
	seq_printf(out, "writes_acked %lld\n", atomic64_read(&card->writes_acked));
	seq_printf(out, "erases %llu\n", stats->ops[FLASH_ERASE]);
	seq_printf(out, "flushes %llu\n", stats->ops[FLASH_FLUSH]);
	seq_printf(out, "failed %llu\n", stats->failed);
	seq_printf(out, "silent %llu\n", stats->silent);
	seq_printf(out, "cached_kib %llu\n", card->flash.cached_sectors / 2);
	seq_printf(out, "lost_kib %llu\n", stats->lost_pages * 4);
	seq_printf(out, "inflight %u\n", stats->inflight);
	seq_printf(out, "inflight_max %u\n", stats->inflight_max);
	seq_printf(out, "dead %d\n", READ_ONCE(card->dead));
	mutex_unlock(&card->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/* Missing debugfs is no error: the card works without. */
void emmc_debugfs_create(struct emmc_card *card)
{
	emmc_debugfs_root = debugfs_create_dir("steady_emmc", NULL);
	debugfs_create_file("power_cut", 0200, emmc_debugfs_root, card, &power_cut_fops);
	debugfs_create_file("stats", 0400, emmc_debugfs_root, card, &stats_fops);
}

void emmc_debugfs_remove(void)
{
	debugfs_remove_recursive(emmc_debugfs_root);
}
