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

int main(void)
{
	a_read_takes_controller_page_by_bit_and_transfer();
	commands_pass_the_controller_one_after_the_other();
	dies_work_in_parallel_and_each_does_one_thing_at_a_time();
	dies_of_a_channel_share_it();
	who_waits_for_the_same_page_shares_its_read();
	a_write_ends_in_the_buffer_and_waits_when_that_is_full();
	flush_and_fua_wait_for_programs();
	free(memory);
	printf("%s ssd model: unit\n", failed ? "FAIL" : "ok  ");
	return failed;
}
