// SPDX-License-Identifier: MIT OR Apache-2.0
/* When the next of a sequence of requests is expected: one rule per function. */
#include <math.h>

#include "expect.h"
#include "k2_pattern.h"

#define US 1000ULL
#define MS 1000000ULL
#define S  1000000000ULL

static struct k2_pattern pattern;
static uint64_t random_state;

static u64 random_below(u64 bound)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return ((random_state * 0x2545f4914f6cdd1dULL) >> 20) % bound;
}

static u64 exponential_ns(u64 mean_ns)
{
	return (u64)(-log((double)(1 + random_below(1000000)) / 1e6) * (double)mean_ns);
}

static void begin(void)
{
	random_state = 88172645463325252ULL;
	pattern = (struct k2_pattern){0};
}

/* A request that takes 1 ms; returns when it ended. */
static u64 request(u64 now_ns)
{
	k2_pattern_arrival(&pattern, now_ns);
	k2_pattern_end(&pattern, now_ns + MS);
	return now_ns + MS;
}

/* @count requests with a period of 10 ms, +-@jitter_us; returns the place of the next. */
static u64 periodic(u64 now_ns, u32 count, u64 jitter_us)
{
	for (u32 i = 0; i < count; i++, now_ns += 10 * MS)
		request(now_ns - jitter_us * US + random_below(2 * jitter_us * US));
	return now_ns;
}

static u64 next_ns(u64 now_ns)
{
	return k2_pattern_next(&pattern, now_ns).earliest_ns;
}

static void a_new_process_may_come_at_once(void)
{
	begin();
	for (u32 i = 0; i < 4; i++) {
		u64 end_ns = request(S + i * 10 * MS);

		EXPECT(next_ns(end_ns), end_ns);
		EXPECT(k2_pattern_next(&pattern, end_ns).is_known, false);
	}
}

static void a_period_is_known_from_the_sixth_request_on(void)
{
	u64 next;

	begin();
	next = periodic(S, 6, 100);
	EXPECT_WITHIN(next_ns(next - 8 * MS), next - 3 * MS, next - 100 * US);
}

/* Gaps differ by 0.8 ms, arrivals by 0.4 from their places. */
static void places_are_known_better_than_gaps(void)
{
	u64 next, window_ns = 0, earliest_ns = 0;

	begin();
	next = periodic(S, 500, 200);
	for (u32 i = 0; i < 100; i++, next = periodic(next, 1, 200)) {
		struct k2_window window = k2_pattern_next(&pattern, next - 5 * MS);

		EXPECT_WITHIN(window.latest_ns, next + 150 * US, next + 500 * US);
		window_ns += window.latest_ns - window.earliest_ns;
		earliest_ns += next - window.earliest_ns;
	}
	EXPECT_WITHIN(window_ns / 100, 400 * US, 700 * US);
	EXPECT_WITHIN(earliest_ns / 100, 200 * US, 350 * US);
}

static void a_pause_does_not_change_the_pattern(void)
{
	u64 next;

	begin();
	next = periodic(S, 500, 200);
	next = periodic(next + S, 4, 200);
	EXPECT_WITHIN(next_ns(next - 5 * MS), next - 600 * US, next - 150 * US);
}

static void a_late_one_may_come_at_once(void)
{
	u64 next;

	begin();
	next = periodic(S, 500, 200);
	EXPECT(next_ns(next + 3 * MS), next + 3 * MS);
	EXPECT(next_ns(next + S), next + S);
}

/* 25 ms late: three requests one after the other, then as before. */
static void one_that_was_late_catches_up_and_is_known_after_two(void)
{
	u64 next, now_ns;

	begin();
	next = periodic(S, 500, 200);
	now_ns = request(next + 25 * MS);
	EXPECT(next_ns(now_ns), now_ns);
	now_ns = request(now_ns);
	EXPECT(next_ns(now_ns), now_ns);
	now_ns = request(now_ns);
	next = periodic(next + 30 * MS, 2, 200);
	EXPECT_WITHIN(next_ns(next - 8 * MS), next - 900 * US, next - 150 * US);
}

static void one_that_leaves_places_out_is_known_after_two(void)
{
	u64 next;

	begin();
	next = periodic(S, 500, 200);
	request(next + 25 * MS);
	next = periodic(next + 30 * MS, 2, 200);
	EXPECT_WITHIN(next_ns(next - 8 * MS), next - 600 * US, next - 150 * US);
}

static void a_period_that_changes_is_learned_again(void)
{
	u64 now_ns;

	begin();
	now_ns = periodic(S, 500, 200);
	for (u32 i = 0; i < 40; i++, now_ns += 14 * MS)
		request(now_ns);
	EXPECT_WITHIN(next_ns(now_ns - 10 * MS), now_ns - MS, now_ns);
	for (u32 i = 0; i < 40; i++, now_ns += 7 * MS)
		request(now_ns);
	EXPECT_WITHIN(next_ns(now_ns - 5 * MS), now_ns - 2 * MS, now_ns);
}

/* Four requests one after the other, every 20 ms, that take longer and shorter. */
static void bursts_have_a_gap_between_them(void)
{
	u64 place_ns = S, end_ns = 0;

	begin();
	for (u32 i = 0; i < 200; i++, place_ns += 20 * MS) {
		u64 now_ns = place_ns + random_below(200 * US);

		for (u32 k = 0; k < 4; k++) {
			k2_pattern_arrival(&pattern, now_ns);
			now_ns += MS + random_below(300 * US);
			k2_pattern_end(&pattern, now_ns);
			EXPECT(k < 3 && next_ns(now_ns) != now_ns, 0);
		}
		end_ns = now_ns;
	}
	EXPECT_WITHIN(next_ns(end_ns), place_ns - 500 * US, place_ns);
}

static void a_least_distance_is_known(void)
{
	u64 now_ns = S;

	begin();
	for (u32 i = 0; i < 1000; i++)
		now_ns = request(now_ns + 4 * MS + exponential_ns(5 * MS));
	EXPECT_WITHIN(next_ns(now_ns), now_ns + 3400 * US, now_ns + 4 * MS);
}

static void without_a_pattern_it_may_come_at_once_and_is_never_early(void)
{
	u64 now_ns = S;
	u32 early = 0;

	begin();
	for (u32 i = 0; i < 10000; i++) {
		u64 arrival_ns = now_ns + exponential_ns(10 * MS);

		early += next_ns(now_ns) > arrival_ns + 400 * US;
		now_ns = request(arrival_ns);
	}
	EXPECT_WITHIN(early, 0, 5);
}

/* One second on, two off. */
static void a_regular_pause_is_known(void)
{
	u64 place_ns = S, next;

	begin();
	for (u32 i = 0; i < 8; i++, place_ns += 3 * S)
		periodic(place_ns, 100, 200);
	next = next_ns(place_ns - S);
	EXPECT_WITHIN(next, place_ns - 40 * MS, place_ns);
}

static void absurd_times_do_no_harm(void)
{
	static const u64 times[] = {0, 1, ~0ULL, S, ~0ULL - 1, 0, 5 * S, 1ULL << 63, 7};

	begin();
	for (u32 i = 0; i < 1000; i++) {
		u64 now_ns = times[random_below(sizeof(times) / sizeof(times[0]))];

		k2_pattern_arrival(&pattern, now_ns);
		k2_pattern_end(&pattern, times[i % 9]);
		EXPECT(next_ns(now_ns) >= now_ns, true);
	}
}

int main(void)
{
	static const struct test tests[] = {
		TEST(a_new_process_may_come_at_once),
		TEST(a_period_is_known_from_the_sixth_request_on),
		TEST(places_are_known_better_than_gaps),
		TEST(a_pause_does_not_change_the_pattern),
		TEST(a_late_one_may_come_at_once),
		TEST(one_that_was_late_catches_up_and_is_known_after_two),
		TEST(one_that_leaves_places_out_is_known_after_two),
		TEST(a_period_that_changes_is_learned_again),
		TEST(bursts_have_a_gap_between_them),
		TEST(a_least_distance_is_known),
		TEST(without_a_pattern_it_may_come_at_once_and_is_never_early),
		TEST(a_regular_pause_is_known),
		TEST(absurd_times_do_no_harm),
	};

	return run_tests("pattern: ", tests, sizeof(tests) / sizeof(tests[0]));
}
