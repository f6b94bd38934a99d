// SPDX-License-Identifier: MIT OR Apache-2.0
/* Requests of 1 ms alone, which may wait for 0.4 ms. */
#include "expect.h"
#include "k2_excess.h"

#define US	 1000ULL
#define ALONE	 (1000 * US)
#define BLOCK	 (400 * US)
#define TOO_LONG (1500 * US)

static struct k2_excess excess;
static struct k2_met met;
static const struct k2_scene quiet;

static void begin(const struct k2_scene *found)
{
	excess = (struct k2_excess){0};
	k2_excess_arrival(&met, found, true, ALONE);
}

/* A request took @took_ns. */
static void end(const struct k2_scene *left, u64 took_ns)
{
	u64 excess_ns = k2_excess_ns(&met, took_ns, BLOCK);

	if (excess_ns)
		k2_excess_end(&excess, &met, left, excess_ns);
}

/* How often @cause was counted after a request that took too long. */
static u64 count_after(enum k2_excess_cause cause, const struct k2_scene *found,
		       const struct k2_scene *left)
{
	begin(found);
	end(left, TOO_LONG);
	return excess.count[cause];
}

static void a_request_in_its_time_is_not_counted(void)
{
	begin(&quiet);
	end(&quiet, ALONE + BLOCK);
	for (u32 cause = 0; cause < K2_EXCESS_CAUSES; cause++)
		EXPECT(excess.count[cause], 0);
	EXPECT(excess.ns_max, 0);
}

static void the_longest_excess_is_kept(void)
{
	begin(&quiet);
	end(&quiet, ALONE + BLOCK + 7);
	end(&quiet, ALONE + BLOCK + 5);
	EXPECT(excess.ns_max, 7);
	EXPECT(excess.count[K2_EXCESS_DEVICE], 2);
}

static void background_is_a_cause_when_it_was_found(void)
{
	struct k2_scene found = {.has_background = true};

	EXPECT(count_after(K2_EXCESS_BACKGROUND, &found, &quiet), 1);
	found.is_early = true;
	EXPECT(count_after(K2_EXCESS_EARLY, &found, &quiet), 1);
	found.has_unguarded = true;
	EXPECT(count_after(K2_EXCESS_UNGUARDED, &found, &quiet), 1);
}

static void background_is_a_cause_when_it_came_later(void)
{
	struct k2_scene left = {.background_dispatched = 1};

	EXPECT(count_after(K2_EXCESS_BACKGROUND, &quiet, &left), 1);
}

static void a_stall_of_the_device_is_the_cause_whatever_else_there_was(void)
{
	struct k2_scene found = {.has_background = true, .has_unguarded = true},
			left = {.stalls = 1};

	EXPECT(count_after(K2_EXCESS_STALL, &found, &left), 1);
	left.stalls = 0;
	left.lane_waits = 1;
	EXPECT(count_after(K2_EXCESS_LANE, &found, &left), 1);
}

static void a_lower_level_comes_before_other_real_time(void)
{
	struct k2_scene found = {.has_rt = true}, left = {.rt_inserted = 1};

	EXPECT(count_after(K2_EXCESS_RT, &found, &quiet), 1);
	EXPECT(count_after(K2_EXCESS_RT, &quiet, &left), 1);
	found.has_lower = true;
	EXPECT(count_after(K2_EXCESS_LOWER, &found, &quiet), 1);
}

static void requests_that_are_outstanding_together_share_a_cause(void)
{
	struct k2_scene found = {.has_background = true};

	begin(&quiet);
	k2_excess_arrival(&met, &found, false, 2 * ALONE);
	end(&quiet, TOO_LONG);
	EXPECT(excess.count[K2_EXCESS_BACKGROUND], 0);
	end(&quiet, ALONE + TOO_LONG);
	EXPECT(excess.count[K2_EXCESS_BACKGROUND], 1);
}

static void nothing_is_counted_before_the_device_is_known(void)
{
	excess = (struct k2_excess){0};
	k2_excess_arrival(&met, &quiet, true, 0);
	end(&quiet, TOO_LONG);
	EXPECT(excess.count[K2_EXCESS_DEVICE], 0);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(a_request_in_its_time_is_not_counted),
		TEST(the_longest_excess_is_kept),
		TEST(background_is_a_cause_when_it_was_found),
		TEST(background_is_a_cause_when_it_came_later),
		TEST(a_stall_of_the_device_is_the_cause_whatever_else_there_was),
		TEST(a_lower_level_comes_before_other_real_time),
		TEST(requests_that_are_outstanding_together_share_a_cause),
		TEST(nothing_is_counted_before_the_device_is_known),
	};

	return run_tests("excess: ", tests, sizeof(tests) / sizeof(tests[0]));
}
