// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module parameters (params/), next to those of the timing model (flash/card_params).
 * The device specs (experiments/devices) are written with the same names and ranges.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "card_params.h"
#include "params.h"
#include "steady_scsi.h"

PARAM_NUMBER(capacity_mib, 1024, 1, 1024 * 1024);
PARAM_NUMBER(slots, 1, 1, FLASH_DEPTH_MAX);

static char *name = "STEADY";
module_param(name, charp, 0444);
static char *path = "";
module_param(path, charp, 0444);

/* Called once, by module init. */
int sscsi_params_load(struct sscsi_config *config)
{
	int err = param_name_check("name", name, SSCSI_NAME_CHARS)
			  ?: card_params_load(&config->flash);

	if (err)
		return err;
	strscpy(config->name, name, sizeof(config->name));
	config->path = path;
	config->sectors = capacity_mib_param.value * 2048;
	config->flash.depth = slots_param.value;
	return 0;
}
