// SPDX-License-Identifier: GPL-2.0-only
/* The module. The drive exists until shutdown: nvme_pci.c explains why it cannot be unloaded. */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "steady_nvme.h"

static struct snvme_config config;
static struct snvme nvme = {.config = &config};
static struct ssd ssd;

static int drive_create(struct snvme *dev)
{
	dev->ssd = &ssd;
	dev->ssd_memory = kvmalloc(ssd_memory_bytes(&config.ssd), GFP_KERNEL);
	if (!dev->ssd_memory)
		return -ENOMEM;
	ssd_init(dev->ssd, &config.ssd, dev->ssd_memory);
	dev->store = media_store_create(config.ssd.capacity_mib << 20, config.path);
	if (!IS_ERR(dev->store))
		return 0;
	kvfree(dev->ssd_memory);
	return PTR_ERR(dev->store);
}

static void drive_destroy(struct snvme *dev)
{
	media_store_destroy(dev->store);
	kvfree(dev->ssd_memory);
}

static int create(struct snvme *dev)
{
	int err = drive_create(dev);

	if (err)
		return err;
	err = snvme_queues_create(dev);
	if (err)
		goto out_drive;
	err = snvme_pci_create(dev);
	if (err)
		goto out_queues;
	snvme_debugfs_create(dev);
	err = snvme_pci_start();
	if (!err)
		return 0;

	snvme_debugfs_remove();
	snvme_pci_destroy();
out_queues:
	snvme_queues_destroy(dev);
out_drive:
	drive_destroy(dev);
	return err;
}

static int __init snvme_init(void)
{
	return snvme_params_load(&config) ?: create(&nvme);
}

module_init(snvme_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Emulated NVMe SSD with modelled timing");
