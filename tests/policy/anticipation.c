// SPDX-License-Identifier: MIT OR Apache-2.0
/* When the device is left idle for a real-time request: one rule per function. */
#include "expect.h"
#include "k2_anticipation.h"

#define US 1000ULL
#define MS 1000000ULL
#define S  1000000000ULL

static struct k2_anticipation anticipation;
static u64 now_ns;

static void begin(void)
{
	anticipation = (struct k2_anticipation){0};
	now_ns = 10 * S;
}

/* A request comes @gap_us after the last, or up to @window_us before. */
static bool waits(u64 gap_us, u64 window_us)
{
	struct k2_window next = {
		.since_ns = now_ns - gap_us * US / 2,
		.latest_ns = now_ns + gap_us * US / 2,
		.earliest_ns = now_ns + gap_us * US / 2 - window_us * US,
	};

	return k2_anticipates(&anticipation, &next, 400 * US, now_ns);
}

static void it_waits_where_the_time_is_well_known(void)
{
	begin();
	EXPECT(waits(10000, 1600), true);
	now_ns += 10 * MS;
	EXPECT(waits(10000, 1700), false);
	EXPECT(anticipation.count, 1);
}

static void it_waits_for_no_longer_than_a_few_milliseconds(void)
{
	begin();
	EXPECT(waits(1000000, 3500), true);
	now_ns += S;
	EXPECT(waits(1000000, 3700), false);
}

static void it_decides_once_for_each_request(void)
{
	struct k2_window next;

	begin();
	next = (struct k2_window){now_ns + 9 * MS, now_ns + 10 * MS, now_ns, true};
	EXPECT(k2_anticipates(&anticipation, &next, 400 * US, now_ns), true);
	next.earliest_ns = now_ns;
	EXPECT(k2_anticipates(&anticipation, &next, 400 * US, now_ns + MS), true);
	EXPECT(anticipation.count, 1);
}

/* A thousand streams of 100 ms each, one after the other. */
static void all_streams_together_do_not_take_all_of_the_time(void)
{
	u64 waited = 0;

	begin();
	for (u32 i = 0; i < 1000; i++, now_ns += 400 * US)
		waited += waits(100000 + i, 500);
	EXPECT(waited, 1);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(it_waits_where_the_time_is_well_known),
		TEST(it_waits_for_no_longer_than_a_few_milliseconds),
		TEST(it_decides_once_for_each_request),
		TEST(all_streams_together_do_not_take_all_of_the_time),
	};

	return run_tests("anticipation: ", tests, sizeof(tests) / sizeof(tests[0]));
}
