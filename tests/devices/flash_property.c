// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What must hold for every card and every load, tried on random ones:
 *   - a request starts no earlier than it comes, and ends later than it starts;
 *   - never more than `depth` requests between start and end; without queue, one after the other;
 *   - no unit and no bus can be faster than its work: the time from the first start to the last
 *     end is at least the array time of the busiest unit, and at least all time on the bus;
 *   - the same requests give the same times again;
 *   - what the cache holds is what was accepted since it was last emptied, and fits.
 * The first violation names the seed; `flash_property SEED` repeats it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flash_model.h"

#define REQUESTS 300
#define SEEDS	 300

struct load {
	struct flash_request request;
	u64 now_ns;
	struct flash_result result;
};

static u64 seed, state;

static u64 below(u64 limit)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
	return (state >> 33) % limit;
}

static void require(bool holds, const char *what, u64 n)
{
	if (holds)
		return;
	printf("FAIL flash model: property: %s, request %llu; again: flash_property %llu\n", what,
	       n, seed);
	exit(1);
}

static struct flash_params random_params(void)
{
	struct flash_params params = {
		.seed = seed,
		.depth = below(2) ? 1 : 1 + below(FLASH_DEPTH_MAX),
		.units = 1 + below(FLASH_UNITS_MAX),
		.stripe_sectors = 1 + below(64),
		.bus_per_kib_ns = below(2) * below(10000),
		.slow_period_ns = 1000000,
		.slow_length_ns = below(750000),
		.pause_sectors = below(2) * below(4096),
		.pause_ns = below(1000000),
		.write_runs = below(2) * below(FLASH_RUNS_MAX + 1),
		.stall_period_ns = 10000000,
		.stall_high_ns = below(2) * below(7500000),
		.hot_after_ns = below(2) * below(100000000),
		.hot_percent = 100 + below(900),
		.cache_kib = below(2) * below(512),
		.cache_base_ns = 1 + below(10000),
		.cache_per_kib_ns = below(5000),
	};
	/* Microseconds, or minutes, which do not fit into 32 bits of ns. */
	u64 scale = below(4) ? 1 : 1000000;
	u32 op;

	params.pause_ns *= scale;
	for (op = 0; op < FLASH_OPS; op++) {
		u64 base = below(200000);

		params.cost[op].base_ns = 1 + scale * base;
		params.cost[op].per_kib_ns = below(20000);
		params.cost[op].jump_ns = scale * below(50000);
		params.cost[op].slow_ns = scale * below(100000);
		params.cost[op].jitter_ns = scale * below(base + 1);
	}
	return params;
}

static void random_load(struct load *load)
{
	u64 now_ns = 0, n;

	for (n = 0; n < REQUESTS; n++) {
		now_ns += below(3) * below(400000);
		load[n].now_ns = now_ns;
		load[n].request.op = below(10) ? below(2) : FLASH_ERASE + below(2);
		load[n].request.sector = below(1 << 20);
		load[n].request.sectors = 1 + below(1024);
		load[n].request.durable = !below(4);
		if (load[n].request.op == FLASH_FLUSH)
			load[n].request.sectors = 0;
	}
}

static void run(const struct flash_params *params, struct load *load)
{
	struct flash_model model;
	u64 cached = 0, n;

	require(flash_init(&model, params), "valid parameters refused", 0);
	for (n = 0; n < REQUESTS; n++) {
		const struct flash_result *result = &load[n].result;

		flash_submit(&model, &load[n].request, load[n].now_ns, &load[n].result);
		if (result->drained)
			cached = 0;
		if (result->cached)
			cached += load[n].request.sectors;
		require(model.cached_sectors == cached, "cache holds something else", n);
		require(cached <= 2ull * params->cache_kib, "cache holds more than it can", n);
		require(!result->cached || !load[n].request.durable, "durable write cached", n);
	}
}

static void check_times(const struct flash_params *params, const struct load *load)
{
	u64 n, m;

	for (n = 0; n < REQUESTS; n++) {
		const struct flash_result *result = &load[n].result;
		u64 under_way = 0;

		require(result->start_ns >= load[n].now_ns, "starts before it comes", n);
		require(result->finish_ns > result->start_ns, "takes no time", n);
		for (m = 0; m < n; m++)
			under_way += load[m].result.finish_ns > result->start_ns;
		require(under_way < params->depth, "more under way than the queue is deep", n);
	}
}

/* A bound from below, with the jitter at its most favourable and all else left out. */
static void check_work(const struct flash_params *params, const struct load *load)
{
	u64 unit_ns[FLASH_UNITS_MAX] = {0}, bus_ns = 0, end_ns = 0, n, unit;

	for (n = 0; n < REQUESTS; n++) {
		const struct flash_request *request = &load[n].request;
		u64 sector;

		if (load[n].result.finish_ns > end_ns)
			end_ns = load[n].result.finish_ns;
		if (request->op == FLASH_READ ||
		    (request->op == FLASH_WRITE && !load[n].result.cached))
			for (sector = 0; sector < request->sectors; sector++) {
				unit = (request->sector + sector) / params->stripe_sectors %
				       params->units;
				unit_ns[unit] += params->cost[request->op].per_kib_ns / 2;
			}
		if (request->op == FLASH_READ || request->op == FLASH_WRITE)
			bus_ns += request->sectors * params->bus_per_kib_ns / 2;
	}
	for (unit = 0; unit < params->units; unit++)
		require(end_ns - load[0].now_ns >= unit_ns[unit], "a unit is too fast", unit);
	if (params->units > 1)
		bus_ns -= bus_ns / 100; /* halves of ns are dropped per piece */
	require(end_ns - load[0].now_ns >= bus_ns, "the bus is too fast", 0);
}

static void check_seed(void)
{
	static struct load first[REQUESTS], again[REQUESTS];
	struct flash_params params;

	state = seed;
	params = random_params();
	memset(first, 0, sizeof(first));
	random_load(first);
	memcpy(again, first, sizeof(again));
	run(&params, first);
	run(&params, again);
	require(!memcmp(first, again, sizeof(first)), "the same load gives other times", 0);
	check_times(&params, first);
	check_work(&params, first);
}

int main(int argc, char **argv)
{
	u64 last = SEEDS;

	seed = 1;
	if (argc > 1)
		last = seed = strtoull(argv[1], NULL, 10);
	for (; seed <= last; seed++)
		check_seed();
	printf("ok   flash model: property, %d seeds of %d requests\n", SEEDS, REQUESTS);
	return 0;
}
