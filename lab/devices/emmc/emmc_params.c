// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module parameters (params/), next to those of the timing model (flash/card_params).
 * The device specs (experiments/devices) are written with the same names and ranges.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "card_params.h"
#include "emmc.h"
#include "params.h"

PARAM_NUMBER(capacity_mib, 1024, 1, 1024 * 1024);
PARAM_NUMBER(queue_depth, 0, 0, FLASH_DEPTH_MAX);
PARAM_NUMBER(status_ns, 0, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(erase_base_ns, 1000000, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(erase_per_kib_ns, 0, 0, CARD_PER_KIB_NS_MAX);
PARAM_NUMBER(power_cut_after_writes, 0, 0, U64_MAX);

static char *name = "STEADY";
module_param(name, charp, 0444);
static char *path = "";
module_param(path, charp, 0444);
static char *write_log = "";
module_param(write_log, charp, 0444);

/* The MMC core leaves queues of 1 or 2 unused. */
static int queue_depth_check(void)
{
	if (queue_depth_param.value != 1 && queue_depth_param.value != 2)
		return 0;
	pr_err("%s: queue_depth=%llu: must be 0 or a number in 3..%d\n", KBUILD_MODNAME,
	       queue_depth_param.value, FLASH_DEPTH_MAX);
	return -EINVAL;
}

/* Called once, by module init. */
int emmc_params_load(struct emmc_config *config)
{
	struct flash_params *flash = &config->flash;
	int err = queue_depth_check() ?: param_name_check("name", name, EMMC_NAME_CHARS) ?:
		  card_params_load(flash);

	if (err)
		return err;
	strscpy(config->name, name, sizeof(config->name));
	config->path = path;
	config->write_log = write_log;
	config->sectors = capacity_mib_param.value * 2048;
	config->queue_depth = queue_depth_param.value;
	config->status_ns = status_ns_param.value;
	config->power_cut_after_writes = power_cut_after_writes_param.value;

	flash->depth = queue_depth_param.value ?: 1;
	flash->cost[FLASH_ERASE] = (struct flash_cost){
		.base_ns = erase_base_ns_param.value,
		.per_kib_ns = erase_per_kib_ns_param.value,
	};
	return 0;
}
