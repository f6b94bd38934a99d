// SPDX-License-Identifier: MIT OR Apache-2.0
/* Times of experiments/devices/foresee-ncemad9d-usb.toml and -cqe.toml. */
#include <stdlib.h>

#include "card.h"
#include "flash_model.h"

static struct flash_model flash;

void card_begin(bool queue, uint64_t pause_ns)
{
	struct flash_params params = {
		.seed = 1,
		.depth = 1,
		.units = 1,
		.stripe_sectors = 2048,
		.slow_period_ns = 1000000000,
		.slow_length_ns = 50000000,
		.pause_sectors = 8192,
		.pause_ns = pause_ns,
		.cost =
			{
				[FLASH_READ] = {111200, 11100, 76200, 197300, 5000},
				[FLASH_WRITE] = {303700, 15200, 126800, 244500, 5000},
			},
	};

	if (queue) {
		params.depth = 32;
		params.units = 4;
		params.bus_per_kib_ns = 11100;
		params.cost[FLASH_READ].per_kib_ns = 0;
		params.cost[FLASH_WRITE].per_kib_ns = 4100;
	}
	if (!flash_init(&flash, &params))
		abort();
}

uint64_t card_command(bool write, uint64_t sector, uint32_t bytes, uint64_t now_ns)
{
	struct flash_request request = {
		.op = write ? FLASH_WRITE : FLASH_READ,
		.sector = sector,
		.sectors = bytes / FLASH_SECTOR_BYTES,
	};
	struct flash_result result;

	flash_submit(&flash, &request, now_ns, &result);
	return result.finish_ns;
}
