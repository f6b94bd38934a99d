// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module parameters. Each number has a range; other values are rejected with a line that names key,
 * value and range. Relations between numbers are checked in emmc_params_load().
 * The device specs (experiments/devices) are written with the same names and ranges.
 */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "emmc.h"

struct emmc_number {
	u64 value;
	u64 min;
	u64 max;
};

static int number_set(const char *text, const struct kernel_param *kp)
{
	struct emmc_number *number = kp->arg;
	u64 value;
	int err = kstrtoull(text, 0, &value);

	if (err || value < number->min || value > number->max) {
		pr_err("%s: %s=%s: must be a number in %llu..%llu\n", KBUILD_MODNAME, kp->name,
		       text, number->min, number->max);
		return -EINVAL;
	}
	number->value = value;
	return 0;
}

static int number_get(char *to, const struct kernel_param *kp)
{
	const struct emmc_number *number = kp->arg;

	return sysfs_emit(to, "%llu\n", number->value);
}

static const struct kernel_param_ops number_ops = {
	.set = number_set,
	.get = number_get,
};

#define NUMBER(name, preset, lowest, highest)                                                      \
	static struct emmc_number name##_param = {                                                 \
		.value = (preset),                                                                 \
		.min = (lowest),                                                                   \
		.max = (highest),                                                                  \
	};                                                                                         \
	module_param_cb(name, &number_ops, &name##_param, 0444)

#define TIME_NS_MAX    1000000000ull /* 1 s for a base, a jitter, a slow time */
#define PER_KIB_NS_MAX 10000000ull /* 10 ms per KiB: 0.1 MiB/s */

NUMBER(seed, 1, 0, U64_MAX);
NUMBER(capacity_mib, 1024, 1, 1024 * 1024);
NUMBER(queue_depth, 0, 0, FLASH_DEPTH_MAX);
NUMBER(units, 1, 1, FLASH_UNITS_MAX);
NUMBER(stripe_kib, 16, 1, 1024);
NUMBER(bus_per_kib_ns, 0, 0, PER_KIB_NS_MAX);
NUMBER(status_ns, 0, 0, TIME_NS_MAX);
NUMBER(read_base_ns, 100000, 0, TIME_NS_MAX);
NUMBER(read_per_kib_ns, 4000, 0, PER_KIB_NS_MAX);
NUMBER(read_jump_ns, 0, 0, TIME_NS_MAX);
NUMBER(read_slow_ns, 0, 0, TIME_NS_MAX);
NUMBER(read_jitter_ns, 0, 0, TIME_NS_MAX);
NUMBER(write_base_ns, 200000, 0, TIME_NS_MAX);
NUMBER(write_per_kib_ns, 8000, 0, PER_KIB_NS_MAX);
NUMBER(write_jump_ns, 0, 0, TIME_NS_MAX);
NUMBER(write_slow_ns, 0, 0, TIME_NS_MAX);
NUMBER(write_jitter_ns, 0, 0, TIME_NS_MAX);
NUMBER(write_pause_kib, 0, 0, 1024 * 1024);
NUMBER(write_pause_ns, 0, 0, TIME_NS_MAX);
NUMBER(erase_base_ns, 1000000, 0, TIME_NS_MAX);
NUMBER(erase_per_kib_ns, 0, 0, PER_KIB_NS_MAX);
NUMBER(flush_base_ns, 200000, 0, TIME_NS_MAX);
NUMBER(slow_period_us, 0, 0, 1000000000);
NUMBER(slow_length_us, 0, 0, 1000000000);
NUMBER(cache_kib, 0, 0, 64 * 1024);
NUMBER(cache_base_ns, 20000, 0, TIME_NS_MAX);
NUMBER(cache_per_kib_ns, 4000, 0, PER_KIB_NS_MAX);
NUMBER(power_cut_after_writes, 0, 0, U64_MAX);

static char *name = "STEADY";
module_param(name, charp, 0444);
static char *path = "";
module_param(path, charp, 0444);
static char *write_log = "";
module_param(write_log, charp, 0444);
/* operation:outcome:when:first[-last], for instance read:error:sectors:2048-4095 */
static char *fault[FLASH_FAULTS_MAX];
static unsigned int fault_count;
module_param_array(fault, charp, &fault_count, 0444);

static const char fault_syntax[] = "read|write|erase|flush|any:error|timeout:"
				   "op:1..|sectors:FIRST-LAST|ppm:0..1000000";
static const char *const fault_ops[] = {"read", "write", "erase", "flush", "any"};
static const char *const fault_outcomes[] = {"", "error", "timeout"};
static const char *const fault_whens[] = {"op", "sectors", "ppm"};

/* Cuts the next word off *rest and finds it in @words. */
static int next_word(char **rest, const char *const *words, size_t count)
{
	char *word = strsep(rest, ":");

	if (!word || !*word)
		return -EINVAL;
	return match_string(words, count, word);
}

static int fault_parse(const char *text, struct flash_fault *to)
{
	char buffer[64], *rest = buffer, *last;
	int on, outcome, when;

	if (strscpy(buffer, text, sizeof(buffer)) < 0)
		return -EINVAL;
	on = next_word(&rest, fault_ops, ARRAY_SIZE(fault_ops));
	outcome = next_word(&rest, fault_outcomes, ARRAY_SIZE(fault_outcomes));
	when = next_word(&rest, fault_whens, ARRAY_SIZE(fault_whens));
	if (on < 0 || outcome < 0 || when < 0 || !rest)
		return -EINVAL;
	*to = (struct flash_fault){.on = on, .outcome = outcome, .when = when};
	last = rest;
	rest = strsep(&last, "-");
	if (kstrtoull(rest, 10, &to->first) || (last && kstrtoull(last, 10, &to->last)))
		return -EINVAL;
	switch (to->when) {
	case FLASH_AT_OP:
		return !last && to->first ? 0 : -EINVAL;
	case FLASH_AT_SECTORS:
		return last && to->first <= to->last ? 0 : -EINVAL;
	case FLASH_AT_RANDOM:
		return !last && to->first <= 1000000 ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static int faults_load(struct flash_params *flash)
{
	unsigned int i;

	for (i = 0; i < fault_count; i++) {
		if (!fault_parse(fault[i], &flash->fault[i]))
			continue;
		pr_err("%s: fault=%s: must be %s\n", KBUILD_MODNAME, fault[i], fault_syntax);
		return -EINVAL;
	}
	flash->fault_count = fault_count;
	return 0;
}

static int name_load(struct emmc_config *config)
{
	size_t i, len = strlen(name);

	for (i = 0; i < len; i++)
		if (!isgraph(name[i]))
			len = 0;
	if (!len || len > EMMC_NAME_CHARS) {
		pr_err("%s: name=%s: must be 1..%d printable characters without spaces\n",
		       KBUILD_MODNAME, name, EMMC_NAME_CHARS);
		return -EINVAL;
	}
	strscpy(config->name, name, sizeof(config->name));
	return 0;
}

/* "@key=@value: must be at most @limit (@of)" unless it is. */
static int at_most(const char *key, u64 value, u64 limit, const char *of)
{
	if (value <= limit)
		return 0;
	pr_err("%s: %s=%llu: must be a number in 0..%llu (%s)\n", KBUILD_MODNAME, key, value, limit,
	       of);
	return -EINVAL;
}

static int relations_check(void)
{
	/* The MMC core leaves queues of 1 or 2 unused. */
	if (queue_depth_param.value == 1 || queue_depth_param.value == 2) {
		pr_err("%s: queue_depth=%llu: must be 0 or a number in 3..%d\n", KBUILD_MODNAME,
		       queue_depth_param.value, FLASH_DEPTH_MAX);
		return -EINVAL;
	}
	return at_most("read_jitter_ns", read_jitter_ns_param.value, read_base_ns_param.value,
		       "read_base_ns") ?:
	       at_most("write_jitter_ns", write_jitter_ns_param.value, write_base_ns_param.value,
		       "write_base_ns") ?:
	       at_most("slow_length_us", slow_length_us_param.value,
		       slow_period_us_param.value / 4 * 3, "3/4 of slow_period_us");
}

/* Called once, by module init. */
int emmc_params_load(struct emmc_config *config)
{
	struct flash_params *flash = &config->flash;
	int err = relations_check() ?: name_load(config) ?: faults_load(flash);

	if (err)
		return err;
	config->path = path;
	config->write_log = write_log;
	config->sectors = capacity_mib_param.value * 2048;
	config->queue_depth = queue_depth_param.value;
	config->status_ns = status_ns_param.value;
	config->power_cut_after_writes = power_cut_after_writes_param.value;

	flash->seed = seed_param.value;
	flash->depth = queue_depth_param.value ?: 1;
	flash->units = units_param.value;
	flash->stripe_sectors = stripe_kib_param.value * 2;
	flash->bus_per_kib_ns = bus_per_kib_ns_param.value;
	flash->slow_period_ns = slow_period_us_param.value * NSEC_PER_USEC;
	flash->slow_length_ns = slow_length_us_param.value * NSEC_PER_USEC;
	flash->pause_sectors = write_pause_kib_param.value * 2;
	flash->pause_ns = write_pause_ns_param.value;
	flash->cache_kib = cache_kib_param.value;
	flash->cache_base_ns = cache_base_ns_param.value;
	flash->cache_per_kib_ns = cache_per_kib_ns_param.value;
	flash->cost[FLASH_READ] = (struct flash_cost){
		.base_ns = read_base_ns_param.value,
		.per_kib_ns = read_per_kib_ns_param.value,
		.jump_ns = read_jump_ns_param.value,
		.slow_ns = read_slow_ns_param.value,
		.jitter_ns = read_jitter_ns_param.value,
	};
	flash->cost[FLASH_WRITE] = (struct flash_cost){
		.base_ns = write_base_ns_param.value,
		.per_kib_ns = write_per_kib_ns_param.value,
		.jump_ns = write_jump_ns_param.value,
		.slow_ns = write_slow_ns_param.value,
		.jitter_ns = write_jitter_ns_param.value,
	};
	flash->cost[FLASH_ERASE] = (struct flash_cost){
		.base_ns = erase_base_ns_param.value,
		.per_kib_ns = erase_per_kib_ns_param.value,
	};
	flash->cost[FLASH_FLUSH] = (struct flash_cost){.base_ns = flush_base_ns_param.value};
	return 0;
}
