// SPDX-License-Identifier: MIT OR Apache-2.0
#include <string.h>

#include "card.h"
#include "flash_model.h"

static struct {
	u64 queue_depth, units, stripe_kib, bus_per_kib_ns, status_ns;
	u64 read_base_ns, read_per_kib_ns, read_jump_ns, read_slow_ns, read_jitter_ns;
	u64 write_base_ns, write_per_kib_ns, write_jump_ns, write_slow_ns, write_jitter_ns;
	u64 write_pause_kib, write_pause_ns, erase_base_ns, erase_per_kib_ns, flush_base_ns;
	u64 write_runs, stall_period_us, stall_low_us, stall_high_us, heat_after_us, heat_percent;
	u64 slow_period_us, slow_length_us, cache_kib, cache_base_ns, cache_per_kib_ns;
	u64 ignored; /* size and identity, which do not affect time */
} number = {
	.units = 1,
	.stripe_kib = 16,
	.erase_base_ns = 1000000,
	.flush_base_ns = 200000,
	.heat_percent = 100,
	.cache_base_ns = 20000,
	.cache_per_kib_ns = 4000,
};

#define NUMBER(name)                                                                               \
	{                                                                                          \
#name, &number.name                                                                \
	}

static const struct {
	const char *name;
	u64 *value;
} numbers[] = {
	NUMBER(queue_depth),
	NUMBER(units),
	NUMBER(stripe_kib),
	NUMBER(bus_per_kib_ns),
	NUMBER(status_ns),
	NUMBER(read_base_ns),
	NUMBER(read_per_kib_ns),
	NUMBER(read_jump_ns),
	NUMBER(read_slow_ns),
	NUMBER(read_jitter_ns),
	NUMBER(write_base_ns),
	NUMBER(write_per_kib_ns),
	NUMBER(write_jump_ns),
	NUMBER(write_slow_ns),
	NUMBER(write_jitter_ns),
	NUMBER(write_pause_kib),
	NUMBER(write_pause_ns),
	NUMBER(erase_base_ns),
	NUMBER(erase_per_kib_ns),
	NUMBER(flush_base_ns),
	NUMBER(slow_period_us),
	NUMBER(slow_length_us),
	NUMBER(write_runs),
	NUMBER(stall_period_us),
	NUMBER(stall_low_us),
	NUMBER(stall_high_us),
	NUMBER(heat_after_us),
	NUMBER(heat_percent),
	NUMBER(cache_kib),
	NUMBER(cache_base_ns),
	NUMBER(cache_per_kib_ns),
	{"seed", &number.ignored},
	{"capacity_mib", &number.ignored},
	{"power_cut_after_writes", &number.ignored},
	{},
};

static struct flash_model flash;

unsigned long long *card_number(const char *name, size_t length)
{
	for (size_t i = 0; numbers[i].name; i++)
		if (strlen(numbers[i].name) == length && !strncmp(numbers[i].name, name, length))
			return numbers[i].value;
	return NULL;
}

bool card_begin(unsigned long long seed)
{
	struct flash_params params = {
		.seed = seed,
		.depth = number.queue_depth ? number.queue_depth : 1,
		.units = number.units,
		.stripe_sectors = number.stripe_kib * 2,
		.bus_per_kib_ns = number.bus_per_kib_ns,
		.slow_period_ns = number.slow_period_us * 1000,
		.slow_length_ns = number.slow_length_us * 1000,
		.pause_sectors = number.write_pause_kib * 2,
		.pause_ns = number.write_pause_ns,
		.write_runs = number.write_runs,
		.stall_period_ns = number.stall_period_us * 1000,
		.stall_low_ns = number.stall_low_us * 1000,
		.stall_high_ns = number.stall_high_us * 1000,
		.hot_after_ns = number.heat_after_us * 1000,
		.hot_percent = number.heat_percent,
		.cache_kib = number.cache_kib,
		.cache_base_ns = number.cache_base_ns,
		.cache_per_kib_ns = number.cache_per_kib_ns,
	};

	params.cost[FLASH_READ] = (struct flash_cost){
		number.read_base_ns, number.read_per_kib_ns, number.read_jump_ns,
		number.read_slow_ns, number.read_jitter_ns,
	};
	params.cost[FLASH_WRITE] = (struct flash_cost){
		number.write_base_ns, number.write_per_kib_ns, number.write_jump_ns,
		number.write_slow_ns, number.write_jitter_ns,
	};
	params.cost[FLASH_ERASE] = (struct flash_cost){
		.base_ns = number.erase_base_ns,
		.per_kib_ns = number.erase_per_kib_ns,
	};
	params.cost[FLASH_FLUSH] = (struct flash_cost){.base_ns = number.flush_base_ns};
	return flash_init(&flash, &params);
}

bool card_has_cache(void)
{
	return number.cache_kib;
}

unsigned int card_cache_kib(void)
{
	return number.cache_kib;
}

unsigned long long card_do(const struct card_command *command, unsigned long long now_ns)
{
	static const enum flash_op op_of[] = {
		[CARD_READ] = FLASH_READ,
		[CARD_WRITE] = FLASH_WRITE,
		[CARD_DISCARD] = FLASH_ERASE,
		[CARD_FLUSH] = FLASH_FLUSH,
	};
	struct flash_request request = {
		.op = op_of[command->op],
		.sector = command->sector,
		.sectors = command->bytes / FLASH_SECTOR_BYTES,
		.durable = command->is_durable,
	};
	struct flash_result result;

	flash_submit(&flash, &request, now_ns, &result);
	/* The kernel requests the status after each write. */
	return result.finish_ns + (command->op == CARD_WRITE ? number.status_ns : 0);
}
