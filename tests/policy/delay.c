// SPDX-License-Identifier: MIT OR Apache-2.0
/* By how much commands delay another: one rule per function. */
#include "expect.h"
#include "k2_delay.h"

#define COMMAND_NS 100000ULL
#define S	   1000000000ULL
#define SAMPLES	   64
#define WHOLE	   256U

static struct k2_delay delay;
static u64 now_ns;

static void begin(void)
{
	delay = (struct k2_delay){0};
	now_ns = S;
}

/* So many commands that @number others delayed by @percent of what these need. */
static void commands(u32 count, u32 number, u32 percent)
{
	for (u32 i = 0; i < count; i++) {
		now_ns += COMMAND_NS;
		k2_delay_learn(&delay, number, number * COMMAND_NS * percent / 100,
			       number * COMMAND_NS, now_ns);
	}
}

static u32 percent(u32 number)
{
	return k2_delay_parts(&delay, number) * 100 / WHOLE;
}

static void what_is_not_known_does_not_overlap(void)
{
	begin();
	EXPECT(percent(1), 100);
	EXPECT(percent(31), 100);
	EXPECT(k2_delay_knows(&delay, 1), false);
}

static void it_is_known_after_some_commands(void)
{
	begin();
	commands(SAMPLES - 1, 1, 50);
	EXPECT(k2_delay_knows(&delay, 1), false);
	EXPECT(percent(1), 100);
	commands(1, 1, 50);
	EXPECT(k2_delay_knows(&delay, 1), true);
	/* An eighth is added. */
	EXPECT_WITHIN(percent(1), 56, 57);
}

static void the_most_counts(void)
{
	begin();
	commands(SAMPLES, 4, 20);
	commands(1, 4, 40);
	commands(SAMPLES, 4, 20);
	EXPECT_WITHIN(percent(4), 44, 46);
}

static void each_number_is_learned_apart(void)
{
	begin();
	commands(SAMPLES, 1, 80);
	commands(SAMPLES, 2, 40);
	EXPECT_WITHIN(percent(1), 90, 91);
	EXPECT_WITHIN(percent(2), 44, 46);
}

static void numbers_near_to_each_other_share_a_part(void)
{
	begin();
	commands(SAMPLES, 4, 40);
	EXPECT(k2_delay_knows(&delay, 5), true);
	EXPECT(k2_delay_knows(&delay, 6), false);
	commands(SAMPLES, 24, 40);
	EXPECT(k2_delay_knows(&delay, 31), true);
}

static void for_one_more_than_is_known_the_next_smaller_counts(void)
{
	begin();
	commands(SAMPLES, 2, 40);
	EXPECT_WITHIN(percent(3), 44, 46);
	EXPECT(k2_delay_knows(&delay, 3), false);
	EXPECT(percent(1), 100);
}

static void more_than_one_after_the_other_is_the_devices_own(void)
{
	begin();
	commands(SAMPLES, 1, 1000);
	EXPECT(percent(1), 100);
}

static void what_no_longer_happens_is_forgotten(void)
{
	begin();
	commands(SAMPLES, 2, 80);
	commands(3 * 4 * S / COMMAND_NS, 2, 20);
	EXPECT_WITHIN(percent(2), 22, 23);
}

/* It is no longer dispatched because of a single event. */
static void what_is_not_tried_any_more_is_forgotten_bit_by_bit(void)
{
	begin();
	commands(SAMPLES, 3, 88);
	commands(4 * S / COMMAND_NS + 1, 2, 20);
	EXPECT_WITHIN(percent(3), 90, 95);
	commands(10 * 4 * S / COMMAND_NS, 2, 20);
	EXPECT_WITHIN(percent(3), 40, 60);
}

static void absurd_times_do_no_harm(void)
{
	uint64_t state = 88172645463325252ULL;

	begin();
	for (u32 i = 0; i < 300000; i++) {
		u32 number, parts;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		number = 1 + (state >> 33) % (K2_FLIGHTS - 1);
		k2_delay_learn(&delay, number, state >> (state >> 58), state >> (i & 63),
			       state >> (i & 31));
		parts = k2_delay_parts(&delay, number + (i & 1));
		EXPECT(parts >= 1 && parts <= WHOLE, true);
		if (failed)
			return;
	}
}

int main(void)
{
	static const struct test tests[] = {
		TEST(what_is_not_known_does_not_overlap),
		TEST(it_is_known_after_some_commands),
		TEST(the_most_counts),
		TEST(each_number_is_learned_apart),
		TEST(numbers_near_to_each_other_share_a_part),
		TEST(for_one_more_than_is_known_the_next_smaller_counts),
		TEST(more_than_one_after_the_other_is_the_devices_own),
		TEST(what_no_longer_happens_is_forgotten),
		TEST(what_is_not_tried_any_more_is_forgotten_bit_by_bit),
		TEST(absurd_times_do_no_harm),
	};

	return run_tests("delay: ", tests, sizeof(tests) / sizeof(tests[0]));
}
