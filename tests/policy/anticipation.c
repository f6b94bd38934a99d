// SPDX-License-Identifier: MIT OR Apache-2.0
/* When the device is left idle for a real-time request: one rule per function. */
#include "expect.h"
#include "k2_anticipation.h"

#define US    1000ULL
#define MS    1000000ULL
#define S     1000000000ULL
#define KIB   1024U
#define READ  0
#define WHOLE (512 * KIB)

static struct k2_device device;
static struct k2_anticipation anticipation;
static u64 now_ns;

/* A command of 4 KiB takes 200 us, one of 512 KiB 6 ms. */
static void begin(void)
{
	device = (struct k2_device){0};
	k2_device_believe(&device, READ, 4 * KIB, 200 * US, 0);
	k2_device_believe(&device, READ, WHOLE, 6 * MS, 0);
	anticipation = (struct k2_anticipation){0};
	now_ns = 10 * S;
}

/* A request comes @gap_us after the last, or up to @window_us before. */
static bool waits(u64 bound_us, u64 gap_us, u64 window_us)
{
	struct k2_expected expected = {
		.since_ns = now_ns - gap_us * US / 2,
		.latest_ns = now_ns + gap_us * US / 2,
		.window_ns = window_us * US,
	};

	k2_anticipation_note(&anticipation, WHOLE);
	return k2_anticipates(&anticipation, &device, READ, bound_us * US, &expected, now_ns);
}

static void it_waits_where_the_time_is_well_known(void)
{
	begin();
	EXPECT(waits(400, 10000, 500), true);
	now_ns += MS;
	EXPECT(waits(400, 1000, 500), false);
	EXPECT(anticipation.count, 1);
}

static void it_waits_for_none_that_may_come_for_long(void)
{
	begin();
	EXPECT(waits(400, 1000000, 3000), true);
	now_ns += MS;
	EXPECT(waits(400, 1000000, 4000), false);
}

/* Pieces that may take 3 ms are nearly as good as whole requests: much would be lost. */
static void it_does_not_wait_where_pieces_do_as_much_as_whole_requests(void)
{
	begin();
	EXPECT(waits(400, 20000, 500), true);
	now_ns += MS;
	EXPECT(waits(3000, 20000, 500), false);
}

static void small_requests_are_held_back_less(void)
{
	struct k2_expected expected;

	begin();
	EXPECT(waits(400, 10000, 900), true);
	now_ns += MS;
	expected = (struct k2_expected){now_ns - 5 * MS, now_ns + 5 * MS, 900 * US};
	k2_anticipation_note(&anticipation, 4 * KIB);
	EXPECT(k2_anticipates(&anticipation, &device, READ, 400 * US, &expected, now_ns), false);
}

/* What is left of a large request is small; it counts as what it is a part of. */
static void it_decides_once_for_each_request(void)
{
	struct k2_expected expected;

	begin();
	expected = (struct k2_expected){now_ns - 5 * MS, now_ns + 5 * MS, 500 * US};
	k2_anticipation_note(&anticipation, WHOLE);
	EXPECT(k2_anticipates(&anticipation, &device, READ, 400 * US, &expected, now_ns), true);
	k2_anticipation_note(&anticipation, 4 * KIB);
	EXPECT(k2_anticipates(&anticipation, &device, READ, 400 * US, &expected, now_ns), true);
	EXPECT(anticipation.count, 1);
}

/* A thousand streams of 100 ms each, one after the other. */
static void all_streams_together_cost_a_part_of_the_time(void)
{
	u64 waited = 0;

	begin();
	for (u32 i = 0; i < 1000; i++, now_ns += 100 * US)
		waited += waits(400, 100000, 500);
	/* Each costs half of 0.9 ms at 0.6 of the pace; of 0.1 s a 1/16 may be lost, and 4 ms. */
	EXPECT_WITHIN(waited, 30, 45);
	EXPECT(anticipation.count, waited);
}

static void absurd_times_do_no_harm(void)
{
	struct k2_expected expected = {~0ULL - 1, ~0ULL, ~0ULL};

	begin();
	EXPECT(k2_anticipates(&anticipation, &device, READ, ~0ULL, &expected, 0), false);
	device = (struct k2_device){0};
	expected = (struct k2_expected){0, 1, 0};
	k2_anticipates(&anticipation, &device, READ, 0, &expected, ~0ULL);
	k2_anticipation_note(&anticipation, ~0U);
	expected = (struct k2_expected){1, ~0ULL, 1};
	k2_anticipates(&anticipation, &device, READ, ~0ULL, &expected, 0);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(it_waits_where_the_time_is_well_known),
		TEST(it_waits_for_none_that_may_come_for_long),
		TEST(it_does_not_wait_where_pieces_do_as_much_as_whole_requests),
		TEST(small_requests_are_held_back_less),
		TEST(it_decides_once_for_each_request),
		TEST(all_streams_together_cost_a_part_of_the_time),
		TEST(absurd_times_do_no_harm),
	};

	return run_tests("anticipation: ", tests, sizeof(tests) / sizeof(tests[0]));
}
