// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module parameters (params/). Those of the timing model have its names and ranges
 * (flash/ssd_params.c). The device specs (experiments/devices) also have all of them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "params.h"
#include "steady_nvme.h"

#define MODEL_CHARS	    40 /* in the identify data */
#define MDTS_KIB_MAX	    (SSD_COMMAND_SECTORS_MAX / 2)
#define SLOT_SECTORS	    8 /* the unit of the drive: 4 KiB */
#define CAPACITY_MIB_SECTOR 2048

PARAM_NUMBER(namespaces, 1, 1, SNVME_NAMESPACES_MAX);
PARAM_NUMBER(queues, 8, 1, SNVME_QUEUES_MAX);
PARAM_NUMBER(queue_entries, 1024, 2, 4096);
PARAM_NUMBER(mdts_kib, 512, 4, MDTS_KIB_MAX);
PARAM_NUMBER(admin_ns, 10000, 1000, 1000000000);
PARAM_NUMBER(volatile_cache, 1, 0, 1);

static char *model = "STEADY-SSD";
module_param(model, charp, 0444);
static char *path = "";
module_param(path, charp, 0444);
static char *fault[FLASH_FAULTS_MAX];
static unsigned int fault_count;
module_param_array(fault, charp, &fault_count, 0444);

static struct ssd_params drive;
static bool drive_given[sizeof(drive) / sizeof(u64)];

static size_t offset_of(const struct kernel_param *kp)
{
	return kp->arg - (void *)&drive;
}

static int drive_set(const char *text, const struct kernel_param *kp)
{
	const struct ssd_number *number = ssd_numbers;

	while (number->name && number->offset != offset_of(kp))
		number++;
	if (WARN_ON(!number->name))
		return -EINVAL;
	drive_given[number->offset / sizeof(u64)] = true;
	return param_number_parse(kp->name, text, number->low, number->high, kp->arg);
}

static int drive_get(char *to, const struct kernel_param *kp)
{
	return sysfs_emit(to, "%llu\n", *(u64 *)kp->arg);
}

static const struct kernel_param_ops drive_ops = {
	.set = drive_set,
	.get = drive_get,
};

module_param_cb(capacity_mib, &drive_ops, &drive.capacity_mib, 0444);
module_param_cb(spare_permille, &drive_ops, &drive.spare_permille, 0444);
module_param_cb(channels, &drive_ops, &drive.channels, 0444);
module_param_cb(dies_per_channel, &drive_ops, &drive.dies_per_channel, 0444);
module_param_cb(read_planes, &drive_ops, &drive.read_planes, 0444);
module_param_cb(planes, &drive_ops, &drive.planes, 0444);
module_param_cb(page_kib, &drive_ops, &drive.page_kib, 0444);
module_param_cb(bits, &drive_ops, &drive.bits, 0444);
module_param_cb(rows, &drive_ops, &drive.rows, 0444);
module_param_cb(seed, &drive_ops, &drive.seed, 0444);
module_param_cb(queue_commands, &drive_ops, &drive.queue_commands, 0444);
module_param_cb(read_command_ns, &drive_ops, &drive.read_command_ns, 0444);
module_param_cb(write_command_ns, &drive_ops, &drive.write_command_ns, 0444);
module_param_cb(link_per_kib_ns, &drive_ops, &drive.link_per_kib_ns, 0444);
module_param_cb(read_front_ns, &drive_ops, &drive.read_front_ns, 0444);
module_param_cb(write_front_ns, &drive_ops, &drive.write_front_ns, 0444);
module_param_cb(discard_front_ns, &drive_ops, &drive.discard_front_ns, 0444);
module_param_cb(read_lsb_ns, &drive_ops, &drive.read_lsb_ns, 0444);
module_param_cb(read_csb_ns, &drive_ops, &drive.read_csb_ns, 0444);
module_param_cb(read_msb_ns, &drive_ops, &drive.read_msb_ns, 0444);
module_param_cb(retry_ppm, &drive_ops, &drive.retry_ppm, 0444);
module_param_cb(retry_ns, &drive_ops, &drive.retry_ns, 0444);
module_param_cb(transfer_ns, &drive_ops, &drive.transfer_ns, 0444);
module_param_cb(program_ns, &drive_ops, &drive.program_ns, 0444);
module_param_cb(program_jitter_ns, &drive_ops, &drive.program_jitter_ns, 0444);
module_param_cb(erase_ns, &drive_ops, &drive.erase_ns, 0444);
module_param_cb(erase_every, &drive_ops, &drive.erase_every, 0444);
module_param_cb(read_streak, &drive_ops, &drive.read_streak, 0444);
module_param_cb(suspend_ns, &drive_ops, &drive.suspend_ns, 0444);
module_param_cb(resume_ns, &drive_ops, &drive.resume_ns, 0444);
module_param_cb(suspends_max, &drive_ops, &drive.suspends_max, 0444);
module_param_cb(ahead_pages, &drive_ops, &drive.ahead_pages, 0444);
module_param_cb(ahead_kept, &drive_ops, &drive.ahead_kept, 0444);
module_param_cb(house_period_us, &drive_ops, &drive.house_period_us, 0444);
module_param_cb(house_ns, &drive_ops, &drive.house_ns, 0444);
module_param_cb(buffer_kib, &drive_ops, &drive.buffer_kib, 0444);
module_param_cb(map_permille, &drive_ops, &drive.map_permille, 0444);
module_param_cb(map_cached, &drive_ops, &drive.map_cached, 0444);
module_param_cb(slc_lines, &drive_ops, &drive.slc_lines, 0444);
module_param_cb(slc_program_ns, &drive_ops, &drive.slc_program_ns, 0444);
module_param_cb(gc_free_lines, &drive_ops, &drive.gc_free_lines, 0444);
module_param_cb(gc_reserve_lines, &drive_ops, &drive.gc_reserve_lines, 0444);
module_param_cb(gc_lag_permille, &drive_ops, &drive.gc_lag_permille, 0444);
module_param_cb(gc_reads, &drive_ops, &drive.gc_reads, 0444);
module_param_cb(used_permille, &drive_ops, &drive.used_permille, 0444);
module_param_cb(hot_permille, &drive_ops, &drive.hot_permille, 0444);

/* The model's text begins with a name and a colon; the value is inserted after them. */
static void drive_error(const char *text)
{
	const struct ssd_number *number = ssd_numbers;
	size_t chars = strcspn(text, ":");

	while (strlen(number->name) != chars || strncmp(number->name, text, chars))
		number++;
	pr_err("%s=%llu%s\n", number->name, *(u64 *)((void *)&drive + number->offset),
	       text + chars);
}

/* Fills in parameters that were not given. */
static int drive_load(void)
{
	struct ssd_params given = drive;
	const struct ssd_number *number;
	const char *error;

	ssd_params_default(&drive);
	for (number = ssd_numbers; number->name; number++)
		if (drive_given[number->offset / sizeof(u64)])
			*(u64 *)((void *)&drive + number->offset) =
				*(u64 *)((void *)&given + number->offset);
	error = ssd_params_error(&drive);
	if (!error)
		return 0;
	drive_error(error);
	return -EINVAL;
}

static int relations_check(void)
{
	if (is_power_of_2(mdts_kib_param.value))
		return 0;
	pr_err("mdts_kib=%llu: must be a power of two in 4..%d\n", mdts_kib_param.value,
	       MDTS_KIB_MAX);
	return -EINVAL;
}

/* Called once, by module init. */
int snvme_params_load(struct snvme_config *config)
{
	u64 sectors;
	int err = drive_load() ?: relations_check() ?:
		  param_name_check("model", model, MODEL_CHARS) ?:
		  param_faults_parse(fault, fault_count, config->fault);

	if (err)
		return err;
	config->ssd = drive;
	config->model = model;
	config->path = path;
	config->namespaces = namespaces_param.value;
	config->queues = queues_param.value;
	config->queue_entries = queue_entries_param.value;
	config->mdts_kib = mdts_kib_param.value;
	config->admin_ns = admin_ns_param.value;
	config->volatile_cache = volatile_cache_param.value;
	config->fault_count = fault_count;
	sectors = drive.capacity_mib * CAPACITY_MIB_SECTOR / config->namespaces;
	config->namespace_sectors = round_down(sectors, SLOT_SECTORS);
	return 0;
}
