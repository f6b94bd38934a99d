// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Drives that are overwritten at random for long, against what is known of them: write
 * amplification has an analytic value, and the state that ssd_used.c computes is the one that
 * writes reach.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ssd.h"

#define IN_FLIGHT 64

static struct ssd_params params;
static struct ssd drive;
static u64 state;
static int failed;

static void expect_near(const char *what, double actual, double expected, double tolerance)
{
	printf("     %s: %.4g, expected %.4g\n", what, actual, expected);
	if (fabs(actual / expected - 1) <= tolerance)
		return;
	printf("FAIL ssd model: %s: %g is not within %g %% of %g\n", what, actual, tolerance * 100,
	       expected);
	failed = 1;
}

/* 1 GiB, in lines of 8 dies x 10 rows x 12 slots. */
static void *start(u64 spare_permille, u64 used_permille, u64 hot_permille)
{
	void *memory;

	ssd_params_default(&params);
	params.capacity_mib = 1024;
	params.spare_permille = spare_permille;
	params.planes = 1;
	params.rows = 10;
	params.used_permille = used_permille;
	params.hot_permille = hot_permille;
	if (ssd_params_error(&params)) {
		printf("FAIL parameters: %s\n", ssd_params_error(&params));
		exit(1);
	}
	memory = malloc(ssd_memory_bytes(&params));
	ssd_init(&drive, &params, memory);
	state = 1;
	return memory;
}

/* Overwrites the first @slots slots at random, so many writes. */
static void overwrite(u64 slots, u64 writes)
{
	u64 submitted = 0, ended = 0, now_ns = drive.now_ns;
	u32 tags[IN_FLIGHT];

	while (ended < writes) {
		while (submitted < writes && submitted - ended < IN_FLIGHT) {
			struct ssd_command command = {.op = SSD_WRITE, .sectors = SSD_SLOT_SECTORS};

			state = state * 6364136223846793005ull + 1442695040888963407ull;
			command.sector = (state >> 33) % slots * SSD_SLOT_SECTORS;
			submitted += ssd_submit(&drive, &command, now_ns);
		}
		now_ns = ssd_next_ns(&drive);
		ended += ssd_run(&drive, now_ns, tags, IN_FLIGHT);
	}
}

/* Programmed slots for each slot of the host and of the map, over so many writes. */
static double amplification(u64 slots, u64 writes)
{
	struct ssd_counts before = drive.counts;
	double written;

	overwrite(slots, writes);
	written = drive.counts.host + drive.counts.map - before.host - before.map;
	return 1 + (drive.counts.copied - before.copied) / written;
}

/*
 * A line is the victim when a part x of it is valid, where (x - 1) / ln(x) is the part of the flash
 * in use that is valid; the amplification is 1 / (1 - x). Desnoyers, "Analytic models of SSD write
 * performance", 2014; greedy choice comes to the same for lines that are not tiny.
 */
static double analytic(double utilisation)
{
	double low = 1e-9, high = 1 - 1e-9;

	while (high - low > 1e-9) {
		double x = (low + high) / 2;

		if ((x - 1) / log(x) < utilisation)
			low = x;
		else
			high = x;
	}
	return 1 / (1 - low);
}

static void random_overwrite_costs_the_analytic_amplification(u64 spare_permille)
{
	void *memory = start(spare_permille, 0, 0);
	u64 slots = drive.geometry.user_slots;
	double in_use, actual;

	drive.params.map_permille = 0;
	overwrite(slots, 5 * slots);
	actual = amplification(slots, 2 * slots);
	in_use =
		(double)(drive.geometry.lines - drive.free_lines.count) * drive.geometry.line_slots;
	expect_near("write amplification", actual, analytic(slots / in_use), 0.05);
	free(memory);
}

static int descending(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x > y ? -1 : x < y;
}

/* Valid slots of the closed lines, the fullest first; returns how many lines. */
static u32 valid_counts(u32 *counts)
{
	u32 line, closed = 0;

	for (line = 0; line < drive.geometry.lines; line++)
		if (drive.lines[line].closed)
			counts[closed++] = drive.lines[line].valid;
	qsort(counts, closed, sizeof(*counts), descending);
	return closed;
}

/* Half of the lines that a drive reached by writes may be younger or older by a line or two. */
static void the_computed_state_is_what_writes_reach(u64 used_permille, u64 hot_permille)
{
	void *memory = start(99, used_permille, hot_permille);
	u64 slots = drive.geometry.user_slots * hot_permille / 1000;
	u32 *computed = malloc(drive.geometry.lines * sizeof(u32));
	u32 *reached = malloc(drive.geometry.lines * sizeof(u32));
	u32 computed_lines = valid_counts(computed), reached_lines, part;
	double first = amplification(slots, slots / 2);

	overwrite(slots, 6 * slots);
	expect_near("amplification at once and later", first, amplification(slots, 2 * slots),
		    0.05);
	reached_lines = valid_counts(reached);
	expect_near("lines in use", computed_lines, reached_lines, 0.02);
	for (part = 1; part < 10; part++)
		expect_near("valid slots, by rank", computed[computed_lines * part / 10],
			    reached[reached_lines * part / 10], 0.05);
	free(computed);
	free(reached);
	free(memory);
}

int main(void)
{
	random_overwrite_costs_the_analytic_amplification(100);
	random_overwrite_costs_the_analytic_amplification(300);
	the_computed_state_is_what_writes_reach(1000, 1000);
	the_computed_state_is_what_writes_reach(1000, 300);
	the_computed_state_is_what_writes_reach(500, 500);
	printf("%s ssd model: steady\n", failed ? "FAIL" : "ok  ");
	return failed;
}
