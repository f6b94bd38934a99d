// SPDX-License-Identifier: MIT OR Apache-2.0
/* The flash timing model, one rule per function, with numbers a reader can check by hand. */
#include <stdio.h>
#include <string.h>

#include "flash_model.h"

#define US  1000ull
#define MS  1000000ull
#define KIB 2ull /* sectors */

static int failed;

#define EXPECT(actual, expected) expect(__func__, __LINE__, #actual, (u64)(actual), (u64)(expected))

static void expect(const char *test, int line, const char *what, u64 actual, u64 expected)
{
	if (actual == expected)
		return;
	printf("FAIL %s:%d: %s is %llu, expected %llu\n", test, line, what, actual, expected);
	failed = 1;
}

/* Read 100 us + 1 us/KiB, write 200 us + 2 us/KiB, erase 1 ms, flush 50 us, one unit, no queue. */
static struct flash_params plain(void)
{
	return (struct flash_params){
		.seed = 1,
		.depth = 1,
		.units = 1,
		.stripe_sectors = 16 * KIB,
		.cost =
			{
				[FLASH_READ] = {.base_ns = 100 * US, .per_kib_ns = 1 * US},
				[FLASH_WRITE] = {.base_ns = 200 * US, .per_kib_ns = 2 * US},
				[FLASH_ERASE] = {.base_ns = 1 * MS},
				[FLASH_FLUSH] = {.base_ns = 50 * US},
			},
	};
}

static struct flash_model made(const struct flash_params *params)
{
	struct flash_model model = {0};

	EXPECT(flash_init(&model, params), true);
	return model;
}

static struct flash_result run(struct flash_model *model, enum flash_op op, u64 sector, u64 sectors,
			       u64 now_ns)
{
	struct flash_request request = {.op = op, .sector = sector, .sectors = sectors};
	struct flash_result result;

	flash_submit(model, &request, now_ns, &result);
	return result;
}

static struct flash_result run_durable(struct flash_model *model, u64 sector, u64 sectors,
				       u64 now_ns)
{
	struct flash_request request = {
		.op = FLASH_WRITE, .sector = sector, .sectors = sectors, .durable = true};
	struct flash_result result;

	flash_submit(model, &request, now_ns, &result);
	return result;
}

static void serial_service_takes_base_plus_size(void)
{
	struct flash_params params = plain();
	struct flash_model model = made(&params);

	EXPECT(run(&model, FLASH_READ, 0, 4 * KIB, 1 * MS).finish_ns, 1 * MS + 104 * US);
	/* Comes while the first one runs: waits for it. */
	EXPECT(run(&model, FLASH_WRITE, 99, 64 * KIB, 1 * MS + 1).start_ns, 1 * MS + 104 * US);
	EXPECT(run(&model, FLASH_READ, 0, 1, 9 * MS).finish_ns, 9 * MS + 100 * US + 500);
	EXPECT(run(&model, FLASH_ERASE, 0, 1 << 20, 20 * MS).finish_ns, 21 * MS);
}

static void a_jump_costs_unless_it_continues(void)
{
	struct flash_params params = plain();
	struct flash_model model;

	params.cost[FLASH_READ].jump_ns = 70 * US;
	model = made(&params);
	EXPECT(run(&model, FLASH_READ, 0, 4 * KIB, 0).finish_ns, 174 * US);
	EXPECT(run(&model, FLASH_READ, 8, 4 * KIB, 1 * MS).finish_ns, 1 * MS + 104 * US);
	EXPECT(run(&model, FLASH_READ, 8, 4 * KIB, 2 * MS).finish_ns, 2 * MS + 174 * US);
	/* A write at the place where the read ended does not continue it, nor the other way. */
	EXPECT(run(&model, FLASH_WRITE, 16, 4 * KIB, 3 * MS).finish_ns, 3 * MS + 208 * US);
	EXPECT(run(&model, FLASH_READ, 24, 4 * KIB, 4 * MS).finish_ns, 4 * MS + 174 * US);
}

static void stripes_run_in_parallel_on_units(void)
{
	struct flash_params params = plain();
	struct flash_model model;

	params.units = 4;
	model = made(&params);
	EXPECT(run(&model, FLASH_READ, 0, 64 * KIB, 0).finish_ns, 116 * US);
	/* Five stripes: one unit works twice, and pays its base once. */
	EXPECT(run(&model, FLASH_READ, 0, 80 * KIB, 1 * MS).finish_ns, 1 * MS + 132 * US);
	/* Unaligned: 8 + 16 + 16 + 16 + 8 KiB; the last piece is on the first piece's unit. */
	EXPECT(run(&model, FLASH_READ, 8 * KIB, 64 * KIB, 2 * MS).finish_ns, 2 * MS + 116 * US);
}

static void a_write_continues_any_open_run(void)
{
	struct flash_params params = plain();
	struct flash_model model;

	params.cost[FLASH_WRITE].jump_ns = 3 * MS;
	params.write_runs = 2;
	model = made(&params);
	EXPECT(run(&model, FLASH_WRITE, 800, 4 * KIB, 0).finish_ns, 3 * MS + 208 * US);
	EXPECT(run(&model, FLASH_READ, 0, 4 * KIB, 10 * MS).finish_ns, 10 * MS + 104 * US);
	/* Neither the read nor a second run ends the first one. */
	EXPECT(run(&model, FLASH_WRITE, 808, 4 * KIB, 20 * MS).finish_ns, 20 * MS + 208 * US);
	EXPECT(run(&model, FLASH_WRITE, 4000, 4 * KIB, 30 * MS).finish_ns, 33 * MS + 208 * US);
	EXPECT(run(&model, FLASH_WRITE, 816, 4 * KIB, 40 * MS).finish_ns, 40 * MS + 208 * US);
	/* A third one does: the one that was written longest ago is closed. */
	EXPECT(run(&model, FLASH_WRITE, 9000, 4 * KIB, 50 * MS).finish_ns, 53 * MS + 208 * US);
	EXPECT(run(&model, FLASH_WRITE, 4008, 4 * KIB, 60 * MS).finish_ns, 63 * MS + 208 * US);
	EXPECT(run(&model, FLASH_WRITE, 9008, 4 * KIB, 70 * MS).finish_ns, 70 * MS + 208 * US);
}

static void nothing_starts_in_a_stall(void)
{
	struct flash_params params = plain();
	u64 at_ns, end_ns, met = 0;
	struct flash_model model;

	params.stall_period_ns = 1000 * MS;
	params.stall_low_ns = 40 * MS;
	params.stall_high_ns = 70 * MS;
	for (at_ns = 0; at_ns < 10000 * MS; at_ns += 1 * MS) {
		end_ns = flash_after_stall(&params, at_ns);
		EXPECT(end_ns - at_ns <= 70 * MS, true);
		EXPECT(flash_after_stall(&params, end_ns), end_ns);
		met += end_ns != at_ns;
		if (end_ns == at_ns)
			continue;
		model = made(&params);
		EXPECT(run(&model, FLASH_READ, 0, 4 * KIB, at_ns).start_ns, end_ns);
	}
	/* Ten stalls of 40 to 70 ms, looked at each ms. */
	EXPECT(met >= 400 && met <= 710, true);
	params.stall_low_ns = 80 * MS;
	EXPECT(flash_init(&model, &params), false);
}

static void work_makes_it_hot_and_rest_cools_it(void)
{
	struct flash_params params = plain();
	struct flash_model model;
	u64 i;

	params.hot_after_ns = 10 * MS;
	params.hot_percent = 300;
	model = made(&params);
	/* Nine reads of 1,124 us are 10,116 us of work: the tenth takes three times as long per KiB. */
	for (i = 0; i < 9; i++)
		EXPECT(run(&model, FLASH_READ, 0, 1024 * KIB, 0).finish_ns, (i + 1) * 1124 * US);
	EXPECT(run(&model, FLASH_READ, 0, 1024 * KIB, 0).finish_ns, 10116 * US + 3172 * US);
	/* Half of the heat must go first. */
	EXPECT(run(&model, FLASH_READ, 0, 1024 * KIB, 18 * MS).finish_ns, 18 * MS + 3172 * US);
	EXPECT(run(&model, FLASH_READ, 0, 1024 * KIB, 28 * MS).finish_ns, 28 * MS + 1124 * US);
	params.hot_percent = 99;
	EXPECT(flash_init(&model, &params), false);
}

static void the_bus_is_shared(void)
{
	struct flash_params params = plain();
	struct flash_model model;

	params.units = 4;
	params.bus_per_kib_ns = 3 * US;
	model = made(&params);
	/* All arrays are ready at 116 us, then four times 48 us on the bus. */
	EXPECT(run(&model, FLASH_READ, 0, 64 * KIB, 0).finish_ns, 308 * US);
	/* Writing: the last piece has crossed the bus at 192 us, then base and array. */
	EXPECT(run(&model, FLASH_WRITE, 0, 64 * KIB, 1 * MS).finish_ns, 1 * MS + 424 * US);
}

static void a_queue_overlaps_units_up_to_its_depth(void)
{
	struct flash_params params = plain();
	struct flash_model model;

	params.units = 4;
	params.depth = 3;
	model = made(&params);
	EXPECT(run(&model, FLASH_READ, 0, 4 * KIB, 0).finish_ns, 104 * US);
	EXPECT(run(&model, FLASH_READ, 16 * KIB, 4 * KIB, 0).finish_ns, 104 * US);
	EXPECT(run(&model, FLASH_READ, 4 * KIB, 4 * KIB, 0).finish_ns, 208 * US); /* same unit */
	EXPECT(run(&model, FLASH_READ, 32 * KIB, 4 * KIB, 0).start_ns, 104 * US); /* no slot */
	/* Erase and flush wait for everything and keep everything waiting. */
	EXPECT(run(&model, FLASH_ERASE, 0, 8, 104 * US).finish_ns, 1208 * US);
	EXPECT(run(&model, FLASH_READ, 48 * KIB, 4 * KIB, 300 * US).finish_ns, 1312 * US);
}

static void slow_episodes_depend_on_seed_and_time_alone(void)
{
	struct flash_params params = plain();
	struct flash_model model;
	u64 t, slow = 0, starts = 0;
	bool was = false;

	params.slow_period_ns = 100 * MS;
	params.slow_length_ns = 5 * MS;
	params.cost[FLASH_READ].slow_ns = 30 * US;
	model = made(&params);
	for (t = 0; t < 10000 * MS; t += 100 * US) {
		bool now = flash_is_slow(&params, t);

		slow += now;
		starts += now && !was;
		if (now && !was)
			EXPECT(t % (100 * MS) <= 25 * MS + 100 * US, true);
		was = now;
	}
	EXPECT(starts, 100);
	EXPECT(slow >= 4900 && slow <= 5100, true); /* 5 % of 100,000 samples */

	for (t = 0; !flash_is_slow(&params, t); t += 1 * US)
		;
	EXPECT(run(&model, FLASH_READ, 0, 4 * KIB, t).finish_ns - t, 134 * US);
	EXPECT(run(&model, FLASH_READ, 0, 4 * KIB, t + 50 * MS).finish_ns - t - 50 * MS, 104 * US);
	params.seed = 2;
	for (slow = 0, t = 0; t < 100 * MS; t += 100 * US)
		slow += flash_is_slow(&params, t) != flash_is_slow(&model.params, t);
	EXPECT(slow > 0, true);
}

static void jitter_is_bounded_seeded_and_centred(void)
{
	struct flash_params params = plain();
	struct flash_model one, same, other;
	u64 sum_ns = 0, differ = 0, n;

	params.cost[FLASH_READ].jitter_ns = 10 * US;
	one = made(&params);
	same = made(&params);
	params.seed = 99;
	other = made(&params);
	for (n = 0; n < 10000; n++) {
		u64 now_ns = n * MS;
		u64 ns = run(&one, FLASH_READ, 0, 4 * KIB, now_ns).finish_ns - now_ns;

		EXPECT(ns >= 94 * US && ns <= 114 * US, true);
		EXPECT(run(&same, FLASH_READ, 0, 4 * KIB, now_ns).finish_ns - now_ns, ns);
		differ += run(&other, FLASH_READ, 0, 4 * KIB, now_ns).finish_ns - now_ns != ns;
		sum_ns += ns;
	}
	EXPECT(sum_ns / 10000 >= 103800 && sum_ns / 10000 <= 104200, true);
	EXPECT(differ > 9900, true);
}

static void writes_pause_each_time_so_much_is_written(void)
{
	struct flash_params params = plain();
	struct flash_model model;

	params.pause_sectors = 100 * KIB;
	params.pause_ns = 5 * MS;
	model = made(&params);
	EXPECT(run(&model, FLASH_WRITE, 0, 96 * KIB, 0).finish_ns, 392 * US);
	EXPECT(run(&model, FLASH_READ, 0, 64 * KIB, 10 * MS).finish_ns, 10 * MS + 164 * US);
	EXPECT(run(&model, FLASH_WRITE, 0, 4 * KIB, 20 * MS).finish_ns, 25 * MS + 208 * US);
	EXPECT(run(&model, FLASH_WRITE, 0, 4 * KIB, 30 * MS).finish_ns, 30 * MS + 208 * US);
	EXPECT(run(&model, FLASH_WRITE, 0, 200 * KIB, 40 * MS).finish_ns, 50 * MS + 600 * US);
}

static void times_may_be_of_minutes(void)
{
	struct flash_params params = plain();
	struct flash_model model;

	params.cost[FLASH_WRITE] = (struct flash_cost){.base_ns = 5000 * MS, .jump_ns = 6000 * MS};
	params.pause_sectors = 100 * KIB;
	params.pause_ns = 600000 * MS;
	model = made(&params);
	EXPECT(run(&model, FLASH_WRITE, 0, 4 * KIB, 0).finish_ns, 11000 * MS);
	EXPECT(run(&model, FLASH_WRITE, 4 * KIB, 96 * KIB, 11000 * MS).finish_ns, 616000 * MS);
}

static void the_cache_accepts_until_full_and_drains_at_flush(void)
{
	struct flash_params params = plain();
	struct flash_model model;
	struct flash_result result;

	params.cache_kib = 100;
	params.cache_base_ns = 10 * US;
	params.cache_per_kib_ns = 1 * US;
	model = made(&params);
	result = run(&model, FLASH_WRITE, 0, 60 * KIB, 0);
	EXPECT(result.finish_ns, 70 * US);
	EXPECT(result.cached && !result.drained, true);
	/* 60 + 60 > 100: a flush of 60 KiB first, 50 + 120 us, then accepted. */
	result = run(&model, FLASH_WRITE, 0, 60 * KIB, 1 * MS);
	EXPECT(result.finish_ns, 1 * MS + 240 * US);
	EXPECT(result.cached && result.drained, true);
	result = run(&model, FLASH_FLUSH, 0, 0, 2 * MS);
	EXPECT(result.finish_ns, 2 * MS + 170 * US);
	EXPECT(result.drained && !result.cached, true);
	EXPECT(run(&model, FLASH_FLUSH, 0, 0, 3 * MS).finish_ns, 3 * MS + 50 * US);
	/* Durable, or larger than the cache: past it. */
	result = run_durable(&model, 0, 4 * KIB, 4 * MS);
	EXPECT(result.finish_ns, 4 * MS + 208 * US);
	EXPECT(result.cached, false);
	EXPECT(run(&model, FLASH_WRITE, 0, 101 * KIB, 5 * MS).cached, false);
	EXPECT(model.cached_sectors, 0);
}

static void faults_hit_what_they_name(void)
{
	struct flash_params params = plain();
	struct flash_model model;
	u64 n, hits = 0;

	params.fault_count = 3;
	params.fault[0] = (struct flash_fault){FLASH_WRITE, FLASH_FAILED, FLASH_AT_OP, 2, 0};
	params.fault[1] =
		(struct flash_fault){FLASH_READ, FLASH_SILENT, FLASH_AT_SECTORS, 100, 199};
	params.fault[2] =
		(struct flash_fault){FLASH_ANY_OP, FLASH_FAILED, FLASH_AT_SECTORS, 500, 500};
	model = made(&params);
	EXPECT(run(&model, FLASH_WRITE, 0, 8, 0).outcome, FLASH_DONE);
	EXPECT(run(&model, FLASH_READ, 0, 100, 0).outcome, FLASH_DONE);
	EXPECT(run(&model, FLASH_READ, 0, 101, 0).outcome, FLASH_SILENT);
	EXPECT(run(&model, FLASH_READ, 199, 1, 0).outcome, FLASH_SILENT);
	EXPECT(run(&model, FLASH_READ, 200, 8, 0).outcome, FLASH_DONE);
	EXPECT(run(&model, FLASH_WRITE, 0, 8, 0).outcome, FLASH_FAILED);
	EXPECT(run(&model, FLASH_WRITE, 0, 8, 0).outcome, FLASH_DONE);
	EXPECT(run(&model, FLASH_ERASE, 400, 200, 0).outcome, FLASH_FAILED);
	EXPECT(run(&model, FLASH_FLUSH, 0, 0, 0).outcome, FLASH_DONE);

	params.fault_count = 1;
	params.fault[0] = (struct flash_fault){FLASH_READ, FLASH_FAILED, FLASH_AT_RANDOM, 10000, 0};
	model = made(&params);
	for (n = 0; n < 100000; n++)
		hits += run(&model, FLASH_READ, n, 1, n * MS).outcome == FLASH_FAILED;
	EXPECT(hits > 800 && hits < 1200, true); /* 1 % */
}

static void power_off_forgets_what_was_under_way(void)
{
	struct flash_params params = plain();
	struct flash_model model;

	params.cache_kib = 64;
	model = made(&params);
	run(&model, FLASH_WRITE, 0, 64 * KIB, 0);
	run(&model, FLASH_ERASE, 0, 8, 0);
	flash_power_off(&model);
	EXPECT(run(&model, FLASH_READ, 0, 4 * KIB, 10).finish_ns, 10 + 104 * US);
	EXPECT(run(&model, FLASH_FLUSH, 0, 0, 1 * MS).finish_ns, 1 * MS + 50 * US);
}

static void init_refuses(struct flash_params params)
{
	struct flash_model model, before;

	memset(&model, 0x5a, sizeof(model));
	before = model;
	EXPECT(flash_init(&model, &params), false);
	EXPECT(memcmp(&model, &before, sizeof(model)), 0);
}

static void bad_parameters_are_refused(void)
{
	struct flash_params bad;

#define REFUSE(change)                                                                             \
	do {                                                                                       \
		bad = plain();                                                                     \
		change;                                                                            \
		init_refuses(bad);                                                                 \
	} while (0)
	REFUSE(bad.depth = 0);
	REFUSE(bad.depth = FLASH_DEPTH_MAX + 1);
	REFUSE(bad.units = 0);
	REFUSE(bad.units = FLASH_UNITS_MAX + 1);
	REFUSE(bad.stripe_sectors = 0);
	REFUSE(bad.cost[FLASH_READ].jitter_ns = 100 * US + 1);
	REFUSE(bad.slow_length_ns = 1);
	REFUSE((bad.slow_period_ns = 100, bad.slow_length_ns = 76));
	REFUSE(bad.fault_count = FLASH_FAULTS_MAX + 1);
	REFUSE(bad.fault_count = 1); /* a fault that is none */
#undef REFUSE
}

int main(void)
{
	serial_service_takes_base_plus_size();
	a_jump_costs_unless_it_continues();
	stripes_run_in_parallel_on_units();
	a_write_continues_any_open_run();
	nothing_starts_in_a_stall();
	work_makes_it_hot_and_rest_cools_it();
	the_bus_is_shared();
	a_queue_overlaps_units_up_to_its_depth();
	slow_episodes_depend_on_seed_and_time_alone();
	jitter_is_bounded_seeded_and_centred();
	writes_pause_each_time_so_much_is_written();
	times_may_be_of_minutes();
	the_cache_accepts_until_full_and_drains_at_flush();
	faults_hit_what_they_name();
	power_off_forgets_what_was_under_way();
	bad_parameters_are_refused();
	printf("%s flash model: unit\n", failed ? "FAIL" : "ok  ");
	return failed;
}
