// SPDX-License-Identifier: GPL-2.0-only
/* The header states what this is for. The device specs have the same names and ranges. */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/time64.h>

#include "card_params.h"
#include "params.h"

#define STALL_PERIOD_US_MAX 100000000000ull /* a day: stalls may be hours apart */
#define HEAT_AFTER_US_MAX   3600000000ull /* an hour of work */

PARAM_NUMBER(seed, 1, 0, U64_MAX);
PARAM_NUMBER(units, 1, 1, FLASH_UNITS_MAX);
PARAM_NUMBER(stripe_kib, 16, 1, 1024);
PARAM_NUMBER(bus_per_kib_ns, 0, 0, CARD_PER_KIB_NS_MAX);
PARAM_NUMBER(read_base_ns, 100000, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(read_per_kib_ns, 4000, 0, CARD_PER_KIB_NS_MAX);
PARAM_NUMBER(read_jump_ns, 0, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(read_slow_ns, 0, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(read_jitter_ns, 0, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(write_base_ns, 200000, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(write_per_kib_ns, 8000, 0, CARD_PER_KIB_NS_MAX);
PARAM_NUMBER(write_jump_ns, 0, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(write_slow_ns, 0, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(write_jitter_ns, 0, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(write_pause_kib, 0, 0, 1024 * 1024);
PARAM_NUMBER(write_pause_ns, 0, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(flush_base_ns, 200000, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(slow_period_us, 0, 0, 1000000000);
PARAM_NUMBER(slow_length_us, 0, 0, 1000000000);
PARAM_NUMBER(write_runs, 0, 0, FLASH_RUNS_MAX);
PARAM_NUMBER(stall_period_us, 0, 0, STALL_PERIOD_US_MAX);
PARAM_NUMBER(stall_low_us, 0, 0, 600000000);
PARAM_NUMBER(stall_high_us, 0, 0, 600000000);
PARAM_NUMBER(heat_after_us, 0, 0, HEAT_AFTER_US_MAX);
PARAM_NUMBER(heat_percent, 100, 100, 10000);
PARAM_NUMBER(cache_kib, 0, 0, 64 * 1024);
PARAM_NUMBER(cache_base_ns, 20000, 0, CARD_TIME_NS_MAX);
PARAM_NUMBER(cache_per_kib_ns, 4000, 0, CARD_PER_KIB_NS_MAX);

static char *fault[FLASH_FAULTS_MAX];
static unsigned int fault_count;
module_param_array(fault, charp, &fault_count, 0444);

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
	return at_most("read_jitter_ns", read_jitter_ns_param.value, read_base_ns_param.value,
		       "read_base_ns") ?:
	       at_most("write_jitter_ns", write_jitter_ns_param.value, write_base_ns_param.value,
		       "write_base_ns") ?:
	       at_most("slow_length_us", slow_length_us_param.value,
		       slow_period_us_param.value / 4 * 3, "3/4 of slow_period_us") ?:
	       at_most("stall_high_us", stall_high_us_param.value,
		       stall_period_us_param.value / 4 * 3, "3/4 of stall_period_us") ?:
	       at_most("stall_low_us", stall_low_us_param.value, stall_high_us_param.value,
		       "stall_high_us");
}

int card_params_load(struct flash_params *flash)
{
	int err = relations_check() ?: param_faults_parse(fault, fault_count, flash->fault);

	if (err)
		return err;
	flash->fault_count = fault_count;
	flash->seed = seed_param.value;
	flash->units = units_param.value;
	flash->stripe_sectors = stripe_kib_param.value * 2;
	flash->bus_per_kib_ns = bus_per_kib_ns_param.value;
	flash->slow_period_ns = slow_period_us_param.value * NSEC_PER_USEC;
	flash->slow_length_ns = slow_length_us_param.value * NSEC_PER_USEC;
	flash->pause_sectors = write_pause_kib_param.value * 2;
	flash->pause_ns = write_pause_ns_param.value;
	flash->write_runs = write_runs_param.value;
	flash->stall_period_ns = stall_period_us_param.value * NSEC_PER_USEC;
	flash->stall_low_ns = stall_low_us_param.value * NSEC_PER_USEC;
	flash->stall_high_ns = stall_high_us_param.value * NSEC_PER_USEC;
	flash->hot_after_ns = heat_after_us_param.value * NSEC_PER_USEC;
	flash->hot_percent = heat_percent_param.value;
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
	flash->cost[FLASH_FLUSH] = (struct flash_cost){.base_ns = flush_base_ns_param.value};
	return 0;
}
