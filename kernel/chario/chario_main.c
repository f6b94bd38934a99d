// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module, and the mmc_driver that binds only to cards that were named.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/mmc/card.h>
#include <linux/mmc/mmc.h>
#include <linux/module.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>

#include "chario.h"

#include "bus.h"
#include "card.h"
#include "core.h"
#include "host.h"
#include "mmc_ops.h"
#include "quirks.h"

#define DISKS_MAX      64
#define AUTOSUSPEND_MS 3000

static char *cards;
module_param(cards, charp, 0444);
MODULE_PARM_DESC(cards, "cards that may be taken: CARD[@START+LENGTH[ro]]..., comma between cards");

static char *memory;
module_param(memory, charp, 0444);
MODULE_PARM_DESC(memory, "reserved memory that may be registered by address: START+LENGTH,...");

static dev_t first_devt;
static DEFINE_IDA(minors);

struct class chario_class = {.name = "chardisk"};

int chario_devt_alloc(dev_t *devt)
{
	int minor = ida_alloc_max(&minors, DISKS_MAX - 1, GFP_KERNEL);

	if (minor < 0)
		return minor;
	*devt = MKDEV(MAJOR(first_devt), minor);
	return 0;
}

void chario_devt_free(dev_t devt)
{
	ida_free(&minors, MINOR(devt));
}

/* Like mmcblk: the card sleeps after some time without use. */
static void power_begin(struct mmc_card *card)
{
	pm_runtime_set_autosuspend_delay(&card->dev, AUTOSUSPEND_MS);
	pm_runtime_use_autosuspend(&card->dev);
	pm_runtime_set_active(&card->dev);
	pm_runtime_enable(&card->dev);
}

static void power_end(struct mmc_card *card)
{
	pm_runtime_get_sync(&card->dev);
	pm_runtime_disable(&card->dev);
	pm_runtime_put_noidle(&card->dev);
}

static bool is_usable(const struct mmc_card *card)
{
	return (mmc_card_mmc(card) || mmc_card_sd(card)) && card->csd.cmdclass & CCC_BLOCK_READ &&
	       !mmc_host_is_spi(card->host);
}

static int chario_probe(struct mmc_card *card)
{
	struct chario_regions regions;
	struct chario_disk *disk;

	if (!is_usable(card) || chario_names_use(card, &regions))
		return -ENODEV;
	/* The card may not have been bound to mmcblk before. */
	mmc_fixup_device(card, mmc_blk_fixups);
	power_begin(card);
	disk = chario_disk_create(card, &regions, NULL);
	if (IS_ERR(disk)) {
		power_end(card);
		return PTR_ERR(disk);
	}
	dev_set_drvdata(&card->dev, disk);
	dev_info(&disk->dev, "%llu MiB of %s\n", disk->bytes >> 20, disk->card_name);
	return 0;
}

/* Enables the command queue again, as mmcblk expects it. */
static void queue_on(struct mmc_card *card)
{
	if (!card->reenable_cmdq || card->ext_csd.cmdq_en || mmc_card_removed(card))
		return;
	mmc_get_card(card, NULL);
	if (mmc_cmdq_enable(card))
		pr_err("%s: %s: command queue not enabled\n", CHARIO_NAME, dev_name(&card->dev));
	mmc_put_card(card, NULL);
}

static void chario_remove(struct mmc_card *card)
{
	struct chario_disk *disk = dev_get_drvdata(&card->dev);

	chario_disk_end(disk);
	queue_on(card);
	power_end(card);
	dev_set_drvdata(&card->dev, NULL);
}

static void chario_shutdown(struct mmc_card *card)
{
	chario_queue_hold(dev_get_drvdata(&card->dev));
}

static int chario_suspend(struct device *dev)
{
	chario_queue_hold(dev_get_drvdata(dev));
	return 0;
}

static int chario_resume(struct device *dev)
{
	chario_queue_resume(dev_get_drvdata(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(chario_pm, chario_suspend, chario_resume);

static ssize_t cards_show(struct device_driver *driver, char *text)
{
	return chario_names_show(text);
}

static ssize_t cards_store(struct device_driver *driver, const char *text, size_t length)
{
	return chario_names_add(text) ?: length;
}
static DRIVER_ATTR_RW(cards);

static ssize_t take_store(struct device_driver *driver, const char *text, size_t length)
{
	return chario_take(text) ?: length;
}
static DRIVER_ATTR_WO(take);

static ssize_t give_store(struct device_driver *driver, const char *text, size_t length)
{
	return chario_give(text) ?: length;
}
static DRIVER_ATTR_WO(give);

static ssize_t lane_store(struct device_driver *driver, const char *text, size_t length)
{
	return chario_lane_add(text) ?: length;
}
static DRIVER_ATTR_WO(lane);

static ssize_t end_lane_store(struct device_driver *driver, const char *text, size_t length)
{
	return chario_lane_remove(text) ?: length;
}
static DRIVER_ATTR_WO(end_lane);

static struct attribute *driver_attrs[] = {
	&driver_attr_cards.attr, &driver_attr_take.attr,     &driver_attr_give.attr,
	&driver_attr_lane.attr,	 &driver_attr_end_lane.attr, NULL,
};
ATTRIBUTE_GROUPS(driver);

static struct mmc_driver driver = {
	.drv.name = CHARIO_NAME,
	.drv.pm = pm_sleep_ptr(&chario_pm),
	.drv.groups = driver_groups,
	.drv.owner = THIS_MODULE,
	.probe = chario_probe,
	.remove = chario_remove,
	.shutdown = chario_shutdown,
};

struct device_driver *chario_driver(void)
{
	return &driver.drv;
}

static int add_each(const char *list, int (*add)(const char *text))
{
	char *copy = kstrdup(list ?: "", GFP_KERNEL), *rest = copy, *text;
	int error = copy ? 0 : -ENOMEM;

	while (!error && (text = strsep(&rest, ",")))
		if (*text)
			error = add(text);
	kfree(copy);
	return error;
}

static int __init chario_init(void)
{
	int error = add_each(cards, chario_names_add);

	if (error)
		return error;
	error = add_each(memory, chario_declared_add);
	if (error)
		return error;
	error = alloc_chrdev_region(&first_devt, 0, DISKS_MAX, "chardisk");
	if (error)
		return error;
	error = class_register(&chario_class);
	if (error)
		goto out_region;
	error = mmc_register_driver(&driver);
	if (error)
		goto out_class;
	error = chario_lanes_init();
	if (error)
		goto out_driver;
	return 0;

out_driver:
	mmc_unregister_driver(&driver);
out_class:
	class_unregister(&chario_class);
out_region:
	unregister_chrdev_region(first_devt, DISKS_MAX);
	return error;
}

static void __exit chario_exit(void)
{
	chario_lanes_exit();
	mmc_unregister_driver(&driver);
	class_unregister(&chario_class);
	unregister_chrdev_region(first_devt, DISKS_MAX);
	ida_destroy(&minors);
}

module_init(chario_init);
module_exit(chario_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("eMMC and SD cards as character devices");
