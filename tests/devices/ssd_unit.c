// SPDX-License-Identifier: MIT OR Apache-2.0
/* The SSD model, one rule per function, with numbers a reader can check by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ssd.h"

#define US   1000ull
#define MS   1000000ull
#define SLOT 8ull /* sectors */

static int failed;

#define EXPECT(actual, expected) expect(__func__, __LINE__, #actual, (u64)(actual), (u64)(expected))

static void expect(const char *test, int line, const char *what, u64 actual, u64 expected)
{
	if (actual == expected)
		return;
	printf("FAIL %s:%d: %s is %llu, expected %llu\n", test, line, what, actual, expected);
	failed = 1;
}

/*
 * 2 channels of 1 die, 1 plane, 3 bits, pages of 16 KiB: a unit is 12 slots, a line 2 x 4 units.
 * Controller 10 us per command, front 20 us (reads) and 5 us (writes), page read 50/60/70 us,
 * transfer 2 us, program 1 ms, erase 3 ms; buffer 28 slots, of which it fills 24.
 */
static struct ssd_params plain(void)
{
	struct ssd_params params;

	ssd_params_default(&params);
	params.capacity_mib = 16;
	params.spare_permille = 300;
	params.channels = 2;
	params.dies_per_channel = 1;
	params.planes = 1;
	params.rows = 4;
	params.read_command_ns = 10 * US;
	params.write_command_ns = 10 * US;
	params.link_per_kib_ns = 0;
	params.read_front_ns = 20 * US;
	params.write_front_ns = 5 * US;
	params.discard_front_ns = 30 * US;
	params.read_lsb_ns = 50 * US;
	params.read_csb_ns = 60 * US;
	params.read_msb_ns = 70 * US;
	params.transfer_ns = 2 * US;
	params.program_ns = 1 * MS;
	params.program_jitter_ns = 0;
	params.erase_ns = 3 * MS;
	params.erase_every = 1;
	params.buffer_kib = 112;
	params.map_permille = 0;
	params.used_permille = 500;
	return params;
}

static struct ssd drive;
static void *memory;

static void start(const struct ssd_params *params)
{
	const char *error = ssd_params_error(params);

	if (error) {
		printf("FAIL parameters: %s\n", error);
		exit(1);
	}
	free(memory);
	memory = malloc(ssd_memory_bytes(params));
	ssd_init(&drive, params, memory);
}

static void submit(enum ssd_op op, u32 tag, u64 slot, u32 slots, u64 now_ns)
{
	struct ssd_command command = {
		.op = op, .tag = tag, .sector = slot * SLOT, .sectors = slots * SLOT};

	EXPECT(ssd_submit(&drive, &command, now_ns), true);
}

static void submit_fua(u32 tag, u64 slot, u64 now_ns)
{
	struct ssd_command command = {
		.op = SSD_WRITE, .tag = tag, .sector = slot * SLOT, .sectors = SLOT, .fua = true};

	EXPECT(ssd_submit(&drive, &command, now_ns), true);
}

/* Runs until the next command ends; returns when, and its tag. */
static u64 ended_ns(u32 *tag)
{
	u32 done = 0;

	while (!ssd_run(&drive, ssd_next_ns(&drive), &done, 1)) {
		if (ssd_next_ns(&drive) == SSD_NEVER) {
			printf("FAIL nothing is left to do, and a command has not ended\n");
			exit(1);
		}
	}
	*tag = done;
	return drive.now_ns;
}

#define EXPECT_END(expected_tag, expected_ns)                                                      \
	do {                                                                                       \
		u32 tag;                                                                           \
		u64 ns = ended_ns(&tag);                                                           \
                                                                                                   \
		EXPECT(tag, expected_tag);                                                         \
		EXPECT(ns, expected_ns);                                                           \
	} while (0)

static void a_read_takes_controller_page_by_bit_and_transfer(void)
{
	struct ssd_params params = plain();

	start(&params);
	submit(SSD_READ, 1, 0, 1, 1 * MS); /* LSB of die 0 */
	EXPECT_END(1, 1 * MS + 82 * US);
	submit(SSD_READ, 2, 4, 1, 2 * MS); /* CSB */
	EXPECT_END(2, 2 * MS + 92 * US);
	submit(SSD_READ, 3, 8, 1, 3 * MS); /* MSB */
	EXPECT_END(3, 3 * MS + 102 * US);
	submit(SSD_READ, 4, 3000, 1, 4 * MS); /* never written: no flash */
	EXPECT_END(4, 4 * MS + 30 * US);
}

static void commands_pass_the_controller_one_after_the_other(void)
{
	struct ssd_params params = plain();

	start(&params);
	submit(SSD_READ, 1, 3000, 1, 0);
	submit(SSD_READ, 2, 3001, 1, 0);
	submit(SSD_READ, 3, 3002, 1, 5 * US);
	EXPECT_END(1, 30 * US);
	EXPECT_END(2, 40 * US);
	EXPECT_END(3, 50 * US);
}

static void dies_work_in_parallel_and_each_does_one_thing_at_a_time(void)
{
	struct ssd_params params = plain();

	params.read_command_ns = 0;
	start(&params);
	submit(SSD_READ, 1, 0, 1, 0); /* die 0 */
	submit(SSD_READ, 2, 12, 1, 0); /* die 1 */
	submit(SSD_READ, 3, 24, 1, 0); /* die 0, another row */
	EXPECT_END(1, 72 * US);
	EXPECT_END(2, 72 * US);
	EXPECT_END(3, 124 * US);
}

static void dies_of_a_channel_share_it(void)
{
	struct ssd_params params = plain();

	params.channels = 1;
	params.dies_per_channel = 2;
	params.read_command_ns = 0;
	start(&params);
	submit(SSD_READ, 1, 0, 4, 0);
	submit(SSD_READ, 2, 12, 4, 0);
	EXPECT_END(1, 78 * US); /* 20 + 50 + 4 x 2 */
	EXPECT_END(2, 86 * US);
}

static void who_waits_for_the_same_page_shares_its_read(void)
{
	struct ssd_params params = plain();

	params.read_command_ns = 0;
	start(&params);
	submit(SSD_READ, 1, 0, 1, 0);
	submit(SSD_READ, 2, 1, 1, 0);
	submit(SSD_READ, 3, 2, 1, 60 * US); /* in time for the transfer at 70 us? No: at 80 us. */
	EXPECT_END(1, 72 * US);
	EXPECT_END(2, 74 * US);
	EXPECT_END(3, 82 * US); /* from the die's register */
	EXPECT(drive.counts.page_reads, 1);
}

static void a_write_ends_in_the_buffer_and_waits_when_that_is_full(void)
{
	struct ssd_params params = plain();
	u32 n;

	start(&params);
	/* The state of the drive was computed: its first units go on in the line that is open. */
	for (n = 0; n < 24; n++)
		submit(SSD_WRITE, n, 3000 + n, 1, 0);
	for (n = 0; n < 24; n++)
		EXPECT_END(n, 15 * US + n * 10 * US);
	submit(SSD_WRITE, 24, 3100, 1, 300 * US);
	submit(SSD_READ, 25, 3000, 1, 310 * US); /* still in the buffer: no flash */
	EXPECT_END(25, 340 * US);
	/* The first unit was full at 125 us: 12 x 2 us transfer, 1 ms. */
	EXPECT_END(24, 125 * US + 24 * US + 1 * MS);
	submit(SSD_READ, 26, 3000, 1, 3 * MS);
	EXPECT_END(26, 3 * MS + 82 * US);
}

static void flush_and_fua_wait_for_programs(void)
{
	struct ssd_params params = plain();

	start(&params);
	submit(SSD_FLUSH, 1, 0, 0, 0); /* nothing to do */
	EXPECT_END(1, 15 * US);
	submit(SSD_WRITE, 2, 3000, 1, 1 * MS);
	EXPECT_END(2, 1 * MS + 15 * US);
	submit(SSD_FLUSH, 3, 0, 0, 2 * MS);
	EXPECT_END(3, 2 * MS + 15 * US + 2 * US + 1 * MS);
	submit_fua(4, 3000, 5 * MS);
	EXPECT_END(4, 5 * MS + 15 * US + 2 * US + 1 * MS);
	EXPECT(drive.counts.padded, 22);
}

/* The first slots of die 0's next program: the state was computed, units go on at die 0. */
static void fill_unit(u32 first_tag, u64 now_ns)
{
	u32 n, done, ended = 0;

	for (n = 0; n < 12; n++)
		submit(SSD_WRITE, first_tag + n, 3000 + first_tag + n, 1, now_ns);
	while (ended < 12)
		ended += ssd_run(&drive, ssd_next_ns(&drive), &done, 1);
}

static struct ssd_params without_controller(void)
{
	struct ssd_params params = plain();

	params.read_command_ns = 0;
	params.read_front_ns = 0;
	params.write_command_ns = 0;
	params.write_front_ns = 0;
	return params;
}

static u64 next_die_slot(void)
{
	/* A slot written in order on the die that gets the next program. */
	return drive.open.unit % drive.geometry.dies ? 12 : 0;
}

static void a_read_waits_for_a_program_or_suspends_it(void)
{
	struct ssd_params params = without_controller();
	u64 slot;

	start(&params);
	slot = next_die_slot();
	fill_unit(1, 0); /* 24 us transfer, then 1 ms */
	submit(SSD_READ, 20, slot, 1, 100 * US);
	EXPECT_END(20, 24 * US + 1 * MS + 52 * US);

	params.suspend_ns = 30 * US;
	params.resume_ns = 10 * US;
	start(&params);
	fill_unit(1, 0);
	submit(SSD_READ, 20, slot, 1, 100 * US);
	EXPECT_END(20, 100 * US + 30 * US + 52 * US);
	/* 924 us of the program were left at 100 us; it goes on at 192 us. */
	submit(SSD_FLUSH, 21, 0, 0, 300 * US);
	EXPECT_END(21, 182 * US + 10 * US + 924 * US);
	EXPECT(drive.counts.suspends, 1);
}

static void reads_in_order_get_the_rest_of_their_row(void)
{
	struct ssd_params params = without_controller();
	u32 n;

	params.ahead_pages = 3;
	params.ahead_kept = 1;
	start(&params);
	/* Four slots are a page, three pages a row. Two reads that go on make it an order. */
	submit(SSD_READ, 0, 0, 4, 0);
	EXPECT_END(0, 50 * US + 8 * US);
	submit(SSD_READ, 1, 4, 4, 100 * US);
	EXPECT_END(1, 100 * US + 60 * US + 8 * US);
	submit(SSD_READ, 2, 8, 4, 200 * US); /* the last page of its row */
	EXPECT_END(2, 200 * US + 70 * US + 8 * US);
	submit(SSD_READ, 3, 12, 1, 300 * US); /* all three pages, and it waits for all */
	EXPECT_END(3, 300 * US + 180 * US + 24 * US);
	for (n = 1; n < 12; n++) {
		submit(SSD_READ, 3 + n, 12 + n, 1, (600 + n) * US);
		EXPECT_END(3 + n, (600 + n) * US); /* from memory */
	}
	EXPECT(drive.counts.ahead_reads, 1);
	submit(SSD_READ, 20, 48, 1, 700 * US); /* somewhere else: its page only */
	EXPECT_END(20, 700 * US + 52 * US);
	/* Memory for one such read: the next takes the place of the first. */
	submit(SSD_READ, 21, 24, 1, 800 * US);
	EXPECT_END(21, 800 * US + 204 * US);
	submit(SSD_READ, 22, 12, 1, 1100 * US);
	EXPECT_END(22, 1100 * US + 52 * US);
	EXPECT(drive.counts.ahead_reads, 2);
}

static void who_waits_for_a_row_that_is_read_ahead_shares_it(void)
{
	struct ssd_params params = without_controller();
	u32 n, tag;

	params.ahead_pages = 3;
	start(&params);
	for (n = 0; n < 3; n++) {
		submit(SSD_READ, n, 4 * n, 4, 200 * US * n);
		ended_ns(&tag);
	}
	submit(SSD_READ, 3, 12, 1, 600 * US); /* 180 us for the row, then 24 us to send it */
	submit(SSD_READ, 4, 13, 1, 610 * US);
	submit(SSD_READ, 5, 14, 7, 790 * US);
	EXPECT_END(3, 804 * US);
	EXPECT_END(4, 804 * US);
	EXPECT_END(5, 804 * US);
	EXPECT(drive.counts.page_reads, 6);
}

static void what_is_read_ahead_ends_where_the_order_of_the_slots_does(void)
{
	struct ssd_params params = without_controller();
	u32 n, tag;

	params.ahead_pages = 3;
	start(&params);
	submit(SSD_WRITE, 2, 16, 1, 30 * MS); /* first of the second page of its row */
	ended_ns(&tag);
	submit(SSD_FLUSH, 3, 0, 0, 31 * MS);
	ended_ns(&tag);
	for (n = 0; n < 3; n++) {
		submit(SSD_READ, n, 4 * n, 4, 50 * MS + 200 * US * n);
		ended_ns(&tag);
	}
	submit(SSD_READ, 4, 12, 1, 60 * MS);
	EXPECT_END(4, 60 * MS + 52 * US);
	EXPECT(drive.counts.ahead_reads, 0);
}

static void reads_go_before_a_program_up_to_the_streak(void)
{
	struct ssd_params params = without_controller();
	u32 n, order[5] = {};
	u64 slot;

	params.read_streak = 2;
	start(&params);
	slot = next_die_slot();
	for (n = 0; n < 4; n++) /* four rows of that die: 52 us each */
		submit(SSD_READ, 40 + n, slot + n * 24, 1, 0);
	fill_unit(1, 1);
	for (n = 0; n < 4; n++)
		ended_ns(&order[n]);
	EXPECT(order[0] == 40 && order[1] == 41 && order[2] == 42 && order[3] == 43, true);
	/* Two reads, the program, two reads. */
	EXPECT(drive.now_ns, 4 * 52 * US + 24 * US + 1 * MS);
}

static void a_block_is_erased_before_its_first_program(void)
{
	struct ssd_params params = without_controller();

	params.used_permille = 0;
	start(&params);
	fill_unit(1, 0);
	submit(SSD_FLUSH, 20, 0, 0, 1 * US);
	EXPECT_END(20, 3 * MS + 24 * US + 1 * MS);
	EXPECT(drive.counts.erases, 1);
}

static void some_reads_need_a_retry(void)
{
	struct ssd_params params = plain();

	params.retry_ppm = 1000000;
	params.retry_ns = 200 * US;
	start(&params);
	submit(SSD_READ, 1, 0, 1, 0);
	EXPECT_END(1, 282 * US);
	EXPECT(drive.counts.retries, 1);
}

static void house_keeping_occupies_one_die_after_the_other(void)
{
	struct ssd_params params = without_controller();

	params.house_period_us = 1000;
	params.house_ns = 400 * US;
	start(&params);
	submit(SSD_READ, 1, 0, 1, 1100 * US); /* die 0 keeps house from 1 ms on */
	submit(SSD_READ, 2, 12, 1, 1100 * US); /* die 1 does not */
	EXPECT_END(2, 1152 * US);
	EXPECT_END(1, 1452 * US);
}

static void a_write_of_a_part_of_a_slot_reads_the_rest(void)
{
	struct ssd_params params = plain();
	struct ssd_command part = {.tag = 1, .op = SSD_WRITE, .sector = 1, .sectors = 2};

	start(&params);
	EXPECT(ssd_submit(&drive, &part, 0), true);
	EXPECT_END(1, 15 * US + 52 * US);
	part.sector = 3000 * SLOT + 1; /* never written: nothing to read */
	EXPECT(ssd_submit(&drive, &part, 1 * MS), true);
	EXPECT_END(1, 1 * MS + 15 * US);
}

static void a_discard_unmaps_what_lies_in_it_entirely(void)
{
	struct ssd_params params = plain();
	struct ssd_command discard = {.tag = 1, .op = SSD_DISCARD, .sector = 4, .sectors = 24};
	u32 valid;

	start(&params);
	valid = drive.lines[0].valid;
	EXPECT(ssd_submit(&drive, &discard, 0), true); /* slots 1 and 2, and halves of 0 and 3 */
	EXPECT_END(1, 40 * US);
	EXPECT(drive.lines[0].valid, valid - 2);
	submit(SSD_READ, 2, 1, 1, 1 * MS);
	EXPECT_END(2, 1 * MS + 30 * US);
	submit(SSD_READ, 3, 3, 1, 2 * MS);
	EXPECT_END(3, 2 * MS + 82 * US);
}

static void writes_apart_cost_writes_of_the_map(void)
{
	struct ssd_params params = plain();
	u32 n, tag;

	params.map_permille = 500;
	params.map_cached = 1;
	start(&params);
	for (n = 0; n < 12; n++) { /* each in another part of the map than the one before */
		submit(SSD_WRITE, n, n % 2 * 2048 + n, 1, n * 10 * MS);
		ended_ns(&tag);
	}
	EXPECT(drive.counts.host, 12);
	EXPECT(drive.counts.map, 5); /* the first one displaces nothing */
	for (n = 0; n < 12; n++) { /* in one part */
		submit(SSD_WRITE, n, 3000 + n, 1, (n + 20) * 10 * MS);
		ended_ns(&tag);
	}
	EXPECT(drive.counts.map, 5);
}

static void data_goes_to_one_bit_per_cell_first_and_is_folded_while_idle(void)
{
	struct ssd_params params = without_controller();
	u32 n, tag;

	params.slc_lines = 1;
	params.slc_program_ns = 100 * US;
	params.erase_ns = 1;
	start(&params);
	for (n = 0; n < 40; n++) { /* the line holds 8 programs of 4 slots */
		submit(SSD_WRITE, n, 3000 + n, 1, n * MS);
		ended_ns(&tag);
		EXPECT(tag, n);
	}
	EXPECT(drive.counts.slc_programs, 8);
	/* Between the commands the line's 32 slots were copied, and it may be filled again. */
	EXPECT(drive.counts.copied, 24); /* 8 wait for a third unit to be full */
	EXPECT(drive.slc_units_left, 8);
	submit(SSD_FLUSH, 50, 0, 0, 60 * MS);
	EXPECT_END(50, 60 * MS + 8 * 2 * US + 1 * MS); /* the last 8 had three bits per cell */
}

static void refuses(struct ssd_command command)
{
	EXPECT(ssd_submit(&drive, &command, 0), false);
	EXPECT(ssd_next_ns(&drive), SSD_NEVER);
}

static void commands_that_cannot_be_are_refused(void)
{
	struct ssd_params params = plain();
	u32 n;

	params.queue_commands = 3;
	start(&params);
	refuses((struct ssd_command){.op = SSD_READ, .sector = 0, .sectors = 0});
	refuses((struct ssd_command){.op = SSD_READ, .sector = 16 * 2048, .sectors = 1});
	refuses((struct ssd_command){.op = SSD_WRITE, .sector = 16 * 2048 - 1, .sectors = 2});
	refuses((struct ssd_command){.op = SSD_WRITE, .sector = ~0ull, .sectors = 2});
	refuses((struct ssd_command){.op = SSD_READ, .sectors = SSD_COMMAND_SECTORS_MAX + 1});
	for (n = 0; n < 3; n++)
		submit(SSD_READ, n, 0, 1, 0);
	EXPECT(ssd_submit(&drive, &(struct ssd_command){.op = SSD_FLUSH}, 0), false);
}

static void refused(const char *name, u64 value, const char *part)
{
	struct ssd_params params = plain();
	const struct ssd_number *number = ssd_numbers;
	const char *error;

	while (strcmp(number->name, name))
		number++;
	*(u64 *)((char *)&params + number->offset) = value;
	error = ssd_params_error(&params);
	EXPECT(error && strstr(error, part), true);
	if (error)
		EXPECT(strncmp(error, name, strlen(name)), 0);
}

static void absurd_parameters_are_refused_by_name(void)
{
	const struct ssd_number *number;

	for (number = ssd_numbers; number->name; number++) {
		if (number->low)
			refused(number->name, number->low - 1, "must be a number in");
		if (number->high != ~0ull)
			refused(number->name, number->high + 1, "must be a number in");
	}
	refused("page_kib", 6, "multiple of 4");
	refused("read_planes", 2, "divide planes");
	refused("program_jitter_ns", 1 * MS + 1, "at most program_ns");
	refused("gc_reserve_lines", 6, "less than gc_free_lines");
	refused("hot_permille", 501, "at most used_permille");
	refused("buffer_kib", 64, "at least");
	refused("spare_permille", 20, "gc_free_lines + slc_lines + 3"); /* near the reserve */
}

int main(void)
{
	a_read_takes_controller_page_by_bit_and_transfer();
	commands_pass_the_controller_one_after_the_other();
	dies_work_in_parallel_and_each_does_one_thing_at_a_time();
	dies_of_a_channel_share_it();
	who_waits_for_the_same_page_shares_its_read();
	reads_in_order_get_the_rest_of_their_row();
	who_waits_for_a_row_that_is_read_ahead_shares_it();
	what_is_read_ahead_ends_where_the_order_of_the_slots_does();
	a_write_ends_in_the_buffer_and_waits_when_that_is_full();
	flush_and_fua_wait_for_programs();
	a_read_waits_for_a_program_or_suspends_it();
	reads_go_before_a_program_up_to_the_streak();
	a_block_is_erased_before_its_first_program();
	some_reads_need_a_retry();
	house_keeping_occupies_one_die_after_the_other();
	a_write_of_a_part_of_a_slot_reads_the_rest();
	a_discard_unmaps_what_lies_in_it_entirely();
	writes_apart_cost_writes_of_the_map();
	data_goes_to_one_bit_per_cell_first_and_is_folded_while_idle();
	commands_that_cannot_be_are_refused();
	absurd_parameters_are_refused_by_name();
	free(memory);
	printf("%s ssd model: unit\n", failed ? "FAIL" : "ok  ");
	return failed;
}
