// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module and platform device. The card is created with the module, the host with the binding:
 * echo steady_emmc > /sys/bus/platform/drivers/steady_emmc/unbind removes the power, bind restores
 * it, and the card's stable data are kept.
 */
#include <linux/module.h>
#include <linux/platform_device.h>

#include "emmc.h"
#include "platform_remove.h"

#define EMMC_DRIVER "steady_emmc"

static struct emmc_config config;
static struct emmc_card card;
static struct platform_device *device;

static int emmc_probe(struct platform_device *pdev)
{
	struct mmc_host *mmc = mmc_alloc_host(sizeof(struct emmc_host), &pdev->dev);
	struct emmc_host *host;
	int err;

	if (!mmc)
		return -ENOMEM;
	host = mmc_priv(mmc);
	host->mmc = mmc;
	host->card = &card;
	emmc_host_setup(host);
	if (config.queue_depth)
		emmc_cqe_setup(host);
	platform_set_drvdata(pdev, host);

	emmc_card_power_on(&card);
	err = mmc_add_host(mmc);
	if (err)
		mmc_free_host(mmc);
	return err;
}

static void emmc_remove(struct platform_device *pdev)
{
	struct emmc_host *host = platform_get_drvdata(pdev);

	mmc_remove_host(host->mmc);
	emmc_host_teardown(host);
	if (config.queue_depth)
		emmc_cqe_teardown(host);
	emmc_card_power_off(&card);
	mmc_free_host(host->mmc);
}

static struct platform_driver emmc_driver = {
	.probe = emmc_probe,
	.compat_remove = emmc_remove,
	.driver.name = EMMC_DRIVER,
};

static int __init emmc_init(void)
{
	int err = emmc_params_load(&config);

	if (err)
		return err;
	err = emmc_card_create(&card, &config);
	if (err)
		return err;
	emmc_debugfs_create(&card);
	err = platform_driver_register(&emmc_driver);
	if (err)
		goto out_card;
	device = platform_device_register_simple(EMMC_DRIVER, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(device)) {
		err = PTR_ERR(device);
		goto out_driver;
	}
	return 0;

out_driver:
	platform_driver_unregister(&emmc_driver);
out_card:
	emmc_debugfs_remove();
	emmc_card_destroy(&card);
	return err;
}

static void __exit emmc_exit(void)
{
	platform_device_unregister(device);
	platform_driver_unregister(&emmc_driver);
	emmc_debugfs_remove();
	emmc_card_destroy(&card);
}

module_init(emmc_init);
module_exit(emmc_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Emulated eMMC with modelled timing");
