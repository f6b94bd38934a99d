// SPDX-License-Identifier: MIT OR Apache-2.0
/* When the next real-time request is expected: one rule per function. */
#include <math.h>

#include "expect.h"
#include "k2_streams.h"

#define US	  1000ULL
#define MS	  1000000ULL
#define S	  1000000000ULL
#define TOLERANCE (400 * US)
#define ALL	  8

static struct k2_streams streams;
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
	streams = (struct k2_streams){0};
}

/* A request that takes 1 ms; returns when it ended. */
static u64 request(u64 key, u64 now_ns)
{
	u32 number = k2_streams_arrival(&streams, key, 0, now_ns, TOLERANCE);

	k2_streams_end(&streams, number, now_ns + MS);
	return now_ns + MS;
}

/* @count requests with a period of 10 +-0.2 ms from @now_ns on; returns the middle of the next. */
static u64 periodic(u64 now_ns, u32 count)
{
	for (u32 i = 0; i < count; i++, now_ns += 10 * MS)
		request(1, now_ns - 200 * US + random_below(400 * US));
	return now_ns;
}

static u64 next_before_ns(u32 level, u64 now_ns)
{
	u64 ns;

	k2_streams_next(&streams, level, now_ns, &ns);
	return ns;
}

static u64 next_ns(u64 now_ns)
{
	return next_before_ns(ALL, now_ns);
}

static void without_a_stream_nothing_is_expected(void)
{
	begin();
	EXPECT(next_ns(S), K2_NEVER);
	EXPECT(k2_streams_alive(&streams, ALL), false);
}

static void a_new_stream_may_come_at_once(void)
{
	begin();
	for (u64 i = 0; i < 24; i++) {
		u64 end_ns = request(1, i * 10 * MS);

		EXPECT(next_ns(end_ns), end_ns);
	}
	EXPECT(k2_streams_alive(&streams, ALL), true);
}

static void a_periodic_stream_is_expected_a_period_later(void)
{
	u64 next;

	begin();
	next = periodic(S, 500);
	/* The last came up to 0.2 ms early, and so may the next; less a margin. */
	EXPECT_WITHIN(next_ns(next - 9 * MS), next - 700 * US, next - 200 * US);
	EXPECT_WITHIN(next_ns(next - 2 * MS), next - 700 * US, next - 200 * US);
	EXPECT(next_ns(next), next);
}

/* Gaps differ by 0.8 ms, arrivals by 0.4 from where they belong. */
static void arrivals_on_a_grid_are_known_better_than_gaps(void)
{
	u64 next, spread_ns = 0, earliest_ns = 0;

	begin();
	next = periodic(S, 500);
	for (u32 i = 0; i < 100; i++) {
		struct k2_expected expected = k2_stream_expected(&streams.stream[0], next - 5 * MS);

		EXPECT_WITHIN(expected.latest_ns, next + 150 * US, next + 700 * US);
		spread_ns += expected.window_ns;
		earliest_ns += next - next_ns(next - 5 * MS);
		next = periodic(next, 1);
	}
	EXPECT_WITHIN(spread_ns / 100, 400 * US, 800 * US);
	EXPECT_WITHIN(earliest_ns / 100, 200 * US, 450 * US);
}

static void a_pause_does_not_change_the_grid(void)
{
	u64 next;

	begin();
	next = periodic(S, 500);
	next = periodic(next + S, 16);
	EXPECT_WITHIN(next_ns(next - 5 * MS), next - 500 * US, next - 200 * US);
}

static void a_late_stream_may_come_at_once(void)
{
	u64 next;

	begin();
	next = periodic(S, 500);
	EXPECT(next_ns(next + 3 * MS), next + 3 * MS);
	EXPECT(next_ns(next + S), next + S);
}

static void a_time_to_think_begins_when_the_request_ends(void)
{
	u64 now = S;
	u32 number = 0;

	begin();
	for (u32 i = 0; i < 300; i++) {
		number = k2_streams_arrival(&streams, 1, 0, now, TOLERANCE);
		/* Requests take from 1 to 8 ms. */
		now += MS + random_below(7 * MS);
		k2_streams_end(&streams, number, now);
		now += 5 * MS + random_below(100 * US);
	}
	number = k2_streams_arrival(&streams, 1, 0, now, TOLERANCE);
	/* Should it end now, then the next comes 5 ms later. */
	EXPECT_WITHIN(next_ns(now + 3 * MS), now + 7500 * US, now + 8 * MS);
	k2_streams_end(&streams, number, now + 4 * MS);
	EXPECT_WITHIN(next_ns(now + 5 * MS), now + 8500 * US, now + 9 * MS);
}

/* Four requests 0.1 ms apart every 20 ms: after the fourth there is time. */
static void bursts_have_a_gap_between_them(void)
{
	u64 now = S, next;

	begin();
	for (u32 i = 0; i < 100; i++, now += 20 * MS)
		for (u64 j = 0; j < 4; j++) {
			u64 at = now + j * 1100 * US + random_below(20 * US);

			request(1, at);
		}
	next = next_ns(now - 20 * MS + 4 * 1100 * US + MS);
	EXPECT_WITHIN(next, now - 2 * MS, now);
}

/* The gap between them varies by 4 ms, the time at which they begin by 0.2 ms. */
static void bursts_that_take_longer_keep_their_period(void)
{
	u64 now = S, next;

	begin();
	for (u32 i = 0; i < 200; i++, now += 20 * MS) {
		u64 at = now - 100 * US + random_below(200 * US);
		u64 longer = random_below(MS);

		for (u32 j = 0; j < 4; j++)
			at = request(1, at) + longer;
	}
	next = next_ns(now - 10 * MS);
	EXPECT_WITHIN(next, now - MS, now - 100 * US);
}

/* A gap of 4 ms was there once; after 1 ms, the next is again one of 16 ms. */
static void an_accident_between_two_gaps_does_not_hide_the_longer_one(void)
{
	u64 now = S;

	begin();
	for (u32 i = 0; i < 100; i++, now += 20 * MS)
		for (u64 j = 0; j < 4; j++)
			request(1, now + j * 1100 * US + (i == 50 && j == 3 ? 3 * MS : 0));
	EXPECT_WITHIN(next_ns(now - 10 * MS), now - 7 * MS, now);
}

/* 5 and 15 ms in turn: after 5 ms there is time for 15. */
static void two_gaps_in_turn_are_told_apart(void)
{
	u64 now = S;

	begin();
	for (u32 i = 0; i < 100; i++, now += 20 * MS) {
		request(1, now);
		request(1, now + 5 * MS);
	}
	EXPECT_WITHIN(next_ns(now - 13 * MS), now - MS, now);
	request(1, now);
	EXPECT_WITHIN(next_ns(now + 2 * MS), now + 4500 * US, now + 5 * MS);
}

static void a_stream_without_a_pattern_may_come_at_once(void)
{
	u64 now = S, expected_us = 0;

	begin();
	for (u32 i = 0; i < 2000; i++)
		now = request(1, now + random_below(10 * MS) * random_below(10) / 10);
	for (u64 after = 0; after < 10 * MS; after += 100 * US)
		expected_us += (next_ns(now + after) - now - after) / US;
	EXPECT_WITHIN(expected_us, 0, 200);
}

/* However many streams one looks at, none without a pattern is taken for one that has one. */
static void a_stream_without_a_pattern_comes_never_early(void)
{
	u64 early = 0;

	for (u64 seed = 1; seed <= 300; seed++) {
		u64 now = S;

		streams = (struct k2_streams){0};
		random_state = seed * 88172645463325252ULL;
		for (u32 i = 0; i < 500; i++) {
			u64 gap = exponential_ns(10 * MS);

			now = request(1, now) - MS + (gap > MS ? gap : MS);
		}
		early += streams.early_count;
	}
	EXPECT(early, 0);
}

/* One that took longer does not put off the next. */
static void a_periodic_stream_does_not_wait_for_its_requests(void)
{
	u64 next;

	begin();
	next = periodic(S, 500);
	k2_streams_arrival(&streams, 1, 0, next, TOLERANCE);
	k2_streams_end(&streams, 0, next + 5 * MS);
	EXPECT_WITHIN(next_ns(next + 6 * MS), next + 9300 * US, next + 9900 * US);
}

static void the_first_of_several_streams_counts(void)
{
	u64 now;

	begin();
	for (u64 i = 0; i < 200; i++) {
		request(1, S + i * 10 * MS);
		request(2, S + 4 * MS + i * 10 * MS);
	}
	now = S + 2000 * MS;
	EXPECT_WITHIN(next_ns(now - 5 * MS), now - 500 * US, now);
	request(1, now);
	EXPECT_WITHIN(next_ns(now + MS), now + 3500 * US, now + 4 * MS);
}

static void a_level_looks_at_better_ones_only(void)
{
	begin();
	k2_streams_arrival(&streams, 1, 3, S, TOLERANCE);
	EXPECT(next_before_ns(3, S), K2_NEVER);
	EXPECT(k2_streams_alive(&streams, 3), false);
	EXPECT(next_before_ns(4, S), S);
	EXPECT(k2_streams_alive(&streams, 4), true);
}

static void who_comes_early_is_distrusted_for_a_while(void)
{
	u64 next;

	begin();
	next = periodic(S, 500);
	EXPECT(streams.early_count, 0);
	request(1, next - 5 * MS);
	EXPECT(streams.early_count, 1);
	/* It is in phase again at once, and trusted after 16 arrivals. */
	next = periodic(next, 15);
	EXPECT(next_ns(next - 8 * MS), next - 8 * MS);
	next = periodic(next, 2);
	EXPECT_WITHIN(next_ns(next - 8 * MS), next - 6500 * US, next);
}

/* What happened once is forgotten: here, a request 5 ms after another one. */
static void a_gap_that_does_not_come_again_is_forgotten(void)
{
	u64 next;

	begin();
	next = periodic(S, 500);
	request(1, next - 5 * MS);
	next = periodic(next, 400);
	EXPECT_WITHIN(next_ns(next - 9 * MS), next - 6500 * US, next - 4 * MS);
	next = periodic(next, 4000);
	EXPECT_WITHIN(next_ns(next - 9 * MS), next - 700 * US, next - 200 * US);
}

static void several_requests_outstanding_have_no_time_to_think(void)
{
	u64 now = S;

	begin();
	for (u32 i = 0; i < 100; i++, now += 10 * MS) {
		k2_streams_arrival(&streams, 1, 0, now, TOLERANCE);
		k2_streams_end(&streams, 0, now + 15 * MS);
	}
	EXPECT_WITHIN(next_ns(now - 5 * MS), now - 500 * US, now);
}

static void a_stream_ends_with_its_thread_or_after_a_time_out(void)
{
	begin();
	periodic(S, 100);
	k2_streams_expire(&streams, S, S + 1980 * MS);
	EXPECT(k2_streams_alive(&streams, ALL), true);
	k2_streams_expire(&streams, S, S + 2010 * MS);
	EXPECT(k2_streams_alive(&streams, ALL), false);
	periodic(10 * S, 1);
	k2_streams_forget(&streams, 0);
	EXPECT(next_ns(10 * S), K2_NEVER);
}

static void the_stream_that_was_silent_longest_makes_room(void)
{
	begin();
	for (u64 key = 1; key <= K2_STREAMS; key++)
		request(key, S + key * MS);
	EXPECT(k2_streams_arrival(&streams, 1000, 0, 2 * S, TOLERANCE), 0);
	EXPECT(streams.used, K2_STREAMS);
	EXPECT(streams.stream[0].key, 1000);
}

static void who_waits_for_others_is_expected_the_later_the_longer(void)
{
	begin();
	request(1, S);
	k2_streams_wait(&streams, 0, 7, 2 * S);
	k2_streams_wait(&streams, 0, 7, 2 * S + 10 * MS);
	EXPECT(next_ns(2 * S + MS), 2 * S + MS);
	EXPECT(next_ns(2 * S + 10 * MS), 2 * S + 14500 * US);
	/* Another wait begins again, and a request ends it. */
	k2_streams_wait(&streams, 0, 8, 2 * S + 20 * MS);
	EXPECT(next_ns(2 * S + 21 * MS), 2 * S + 21 * MS);
	EXPECT(next_ns(2 * S + 30 * MS), 2 * S + 34500 * US);
	request(1, 2 * S + 40 * MS);
	EXPECT(next_ns(2 * S + 50 * MS), 2 * S + 50 * MS);
}

static void all_wait_only_if_each_is_known_to(void)
{
	begin();
	request(1, S);
	request(2, S);
	k2_streams_wait(&streams, 0, 7, S);
	EXPECT(k2_streams_all_wait(&streams, ALL), false);
	k2_streams_wait(&streams, 1, 7, S);
	EXPECT(k2_streams_all_wait(&streams, ALL), true);
	/* It may be its own request that it waits for. */
	k2_streams_bypassed(&streams, 0, S + 5 * MS, S + 6 * MS, TOLERANCE);
	k2_streams_wait(&streams, 0, 8, S + 7 * MS);
	k2_streams_wait(&streams, 1, 8, S + 7 * MS);
	EXPECT(k2_streams_all_wait(&streams, ALL), false);
}

static void requests_known_when_they_have_ended_are_a_stream(void)
{
	u64 now = S;

	begin();
	for (u32 i = 0; i < 100; i++, now += 10 * MS)
		k2_streams_bypassed(&streams, 0, now, now + MS, TOLERANCE);
	EXPECT(streams.used, 1);
	EXPECT_WITHIN(next_ns(now - 8 * MS), now - MS, now);
}

static void requests_of_an_unknown_thread_are_of_one_that_is_known(void)
{
	begin();
	k2_streams_bypassed(&streams, 0, S, S + MS, TOLERANCE);
	EXPECT(streams.stream[0].key, K2_STREAM_KEY_UNKNOWN);
	request(5, S + 10 * MS);
	EXPECT(streams.stream[0].key, 5);
	k2_streams_bypassed(&streams, 0, S + 12 * MS, S + 13 * MS, TOLERANCE);
	k2_streams_arrival(&streams, 5, 0, S + 20 * MS, TOLERANCE);
	k2_streams_bypassed(&streams, 0, S + 22 * MS, S + 23 * MS, TOLERANCE);
	EXPECT(streams.used, 1);
	EXPECT(streams.stream[0].outstanding, 1);
	/* Each level has its own. */
	k2_streams_bypassed(&streams, 1, S + 30 * MS, S + 31 * MS, TOLERANCE);
	EXPECT(streams.used, 2);
}

/* Whatever the times, what is expected is now or later, and nothing is out of bounds. */
static void absurd_times_do_no_harm(void)
{
	begin();
	for (u32 i = 0; i < 200000; i++) {
		u64 now = random_below(4) ? random_below(S << random_below(20))
					  : random_below(2) - 1;
		u32 number = k2_streams_arrival(&streams, 1 + random_below(80),
						(u32)random_below(8), now, random_below(MS));
		u64 later = random_below(S << random_below(20));

		EXPECT(number < K2_STREAMS, true);
		if (random_below(2))
			k2_streams_end(&streams, number, later);
		if (!random_below(4))
			k2_streams_wait(&streams, number, random_below(3), later);
		if (!random_below(4))
			k2_streams_bypassed(&streams, (u32)random_below(8), now, later, MS);
		EXPECT(next_ns(later) >= later, true);
		if (!random_below(50))
			k2_streams_expire(&streams, random_below(S), later);
		if (failed)
			return;
	}
}

int main(void)
{
	static const struct test tests[] = {
		TEST(without_a_stream_nothing_is_expected),
		TEST(a_new_stream_may_come_at_once),
		TEST(a_periodic_stream_is_expected_a_period_later),
		TEST(arrivals_on_a_grid_are_known_better_than_gaps),
		TEST(a_pause_does_not_change_the_grid),
		TEST(a_late_stream_may_come_at_once),
		TEST(a_time_to_think_begins_when_the_request_ends),
		TEST(bursts_have_a_gap_between_them),
		TEST(bursts_that_take_longer_keep_their_period),
		TEST(an_accident_between_two_gaps_does_not_hide_the_longer_one),
		TEST(two_gaps_in_turn_are_told_apart),
		TEST(a_stream_without_a_pattern_may_come_at_once),
		TEST(a_stream_without_a_pattern_comes_never_early),
		TEST(a_periodic_stream_does_not_wait_for_its_requests),
		TEST(the_first_of_several_streams_counts),
		TEST(a_level_looks_at_better_ones_only),
		TEST(who_comes_early_is_distrusted_for_a_while),
		TEST(a_gap_that_does_not_come_again_is_forgotten),
		TEST(several_requests_outstanding_have_no_time_to_think),
		TEST(a_stream_ends_with_its_thread_or_after_a_time_out),
		TEST(the_stream_that_was_silent_longest_makes_room),
		TEST(who_waits_for_others_is_expected_the_later_the_longer),
		TEST(all_wait_only_if_each_is_known_to),
		TEST(requests_known_when_they_have_ended_are_a_stream),
		TEST(requests_of_an_unknown_thread_are_of_one_that_is_known),
		TEST(absurd_times_do_no_harm),
	};

	return run_tests("streams: ", tests, sizeof(tests) / sizeof(tests[0]));
}
