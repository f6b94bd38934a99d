// SPDX-License-Identifier: GPL-2.0-only
/* The module: one disk behind one host. */
#include <linux/module.h>

#include "steady_scsi.h"

static struct sscsi_config config;
static struct sscsi_disk disk;

static int __init sscsi_init(void)
{
	int err = sscsi_params_load(&config) ?: sscsi_disk_create(&disk, &config);

	if (err)
		return err;
	err = sscsi_host_create(&disk);
	if (err) {
		sscsi_disk_destroy(&disk);
		return err;
	}
	sscsi_debugfs_create(&disk);
	return 0;
}

static void __exit sscsi_exit(void)
{
	sscsi_debugfs_remove();
	sscsi_host_destroy();
	sscsi_disk_destroy(&disk);
}

module_init(sscsi_init);
module_exit(sscsi_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Emulated SCSI disk with modelled timing");
