// SPDX-License-Identifier: MIT OR Apache-2.0
/* Which process's next request is expected first: one rule per function. */
#include "expect.h"
#include "k2_streams.h"

#define US	  1000ULL
#define MS	  1000000ULL
#define S	  1000000000ULL
#define TOLERANCE (400 * US)
#define IDLE	  (10 * S)
#define ALL	  8

static struct k2_stream memory[K2_STREAMS];
static struct k2_streams streams;

static void begin(void)
{
	streams = (struct k2_streams){.stream = memory};
}

/* A request that takes 1 ms; returns its stream. */
static u32 request(u64 process, u64 thread, u32 level, u64 now_ns)
{
	struct k2_thread of = {process, thread, level, false};
	u32 number = k2_streams_arrival(&streams, &of, now_ns, TOLERANCE);

	k2_streams_end(&streams, number, now_ns + MS);
	return number;
}

/* @count requests of one thread each @period_ns; returns the place of the next. */
static u64 periodic(u64 process, u64 thread, u64 now_ns, u64 period_ns, u32 count)
{
	for (u32 i = 0; i < count; i++, now_ns += period_ns)
		request(process, thread, 0, now_ns);
	return now_ns;
}

static struct k2_window next(u32 level, u64 now_ns)
{
	return k2_streams_next(&streams, level, IDLE, now_ns);
}

static u64 next_ns(u64 now_ns)
{
	return next(ALL, now_ns).earliest_ns;
}

static bool is_alive(u64 now_ns)
{
	return k2_streams_alive(&streams, ALL, IDLE, now_ns);
}

static void without_a_process_nothing_is_expected(void)
{
	begin();
	EXPECT(next_ns(S), K2_NEVER);
	EXPECT(is_alive(S), false);
}

static void a_process_is_guarded_from_its_first_request_on(void)
{
	begin();
	request(1, 1, 0, S);
	EXPECT(is_alive(S + MS), true);
	EXPECT(next_ns(S + 5 * MS), S + 5 * MS);
}

static void the_first_of_several_processes_counts(void)
{
	u64 first, second;

	begin();
	first = periodic(1, 1, S, 10 * MS, 100);
	second = periodic(2, 2, first - 96 * MS, 10 * MS, 10);
	EXPECT_WITHIN(next_ns(first - 5 * MS), first - MS, first);
	request(1, 1, 0, first);
	EXPECT_WITHIN(next_ns(first + 2 * MS), second - 2 * MS, second);
}

static void a_level_looks_at_better_ones_only(void)
{
	begin();
	request(1, 1, 3, S);
	EXPECT(next(3, S + 2 * MS).earliest_ns, K2_NEVER);
	EXPECT(next(4, S + 2 * MS).earliest_ns, S + 2 * MS);
	EXPECT(k2_streams_alive(&streams, 3, IDLE, S + 2 * MS), false);
}

/* Each request is of the next of a hundred threads. */
static void threads_that_take_turns_have_a_pattern_together(void)
{
	u64 now_ns = S;

	begin();
	for (u32 i = 0; i < 300; i++, now_ns += 10 * MS)
		request(1, 1 + i % 100, 0, now_ns);
	EXPECT_WITHIN(next_ns(now_ns - 8 * MS), now_ns - MS, now_ns);
	EXPECT(streams.early_count, 0);
}

/* 10 and 33 ms together have no gap. */
static void threads_with_a_pattern_each_are_known_one_by_one(void)
{
	u64 first_ns = S, second_ns = S + MS, now_ns;

	begin();
	for (now_ns = S; now_ns < 5 * S; now_ns += MS) {
		if (now_ns == first_ns)
			first_ns = periodic(1, 1, first_ns, 10 * MS, 1);
		if (now_ns == second_ns)
			second_ns = periodic(1, 2, second_ns, 33 * MS, 1);
	}
	now_ns = (first_ns < second_ns ? first_ns : second_ns) - 2 * MS;
	EXPECT_WITHIN(next_ns(now_ns), now_ns + MS, now_ns + 2 * MS);
}

static void a_new_thread_of_a_known_process_comes_when_the_last_did(void)
{
	u64 now_ns = S;

	begin();
	for (u32 thread = 1; thread < 20; thread++, now_ns += 20 * MS)
		now_ns = periodic(1, thread, now_ns, 10 * MS, 20);
	now_ns -= 20 * MS;
	EXPECT_WITHIN(next_ns(now_ns + 5 * MS), now_ns + 19 * MS, now_ns + 20 * MS);
	EXPECT(is_alive(now_ns + 5 * MS), true);
}

static void one_whose_last_request_was_a_write_may_be_in_fsync(void)
{
	struct k2_thread writer = {1, 1, 0, true}, reader = {2, 2, 0, false};

	begin();
	k2_streams_arrival(&streams, &writer, S, TOLERANCE);
	EXPECT(k2_streams_may_sync(&streams, ALL, IDLE, S), false);
	k2_streams_end(&streams, 0, S + MS);
	EXPECT(k2_streams_may_sync(&streams, ALL, IDLE, S + 2 * MS), true);
	k2_streams_end(&streams, k2_streams_arrival(&streams, &reader, 2 * S, TOLERANCE), 3 * S);
	EXPECT(k2_streams_may_sync(&streams, ALL, IDLE, 3 * S), false);
}

static void early_requests_are_counted(void)
{
	u64 now_ns;

	begin();
	now_ns = periodic(1, 1, S, 10 * MS, 100);
	request(1, 1, 0, now_ns - 5 * MS);
	EXPECT(streams.early_count, 1);
}

static void a_silent_process_is_guarded_for_a_while(void)
{
	begin();
	request(1, 1, 0, S);
	EXPECT(is_alive(S + IDLE), true);
	EXPECT(is_alive(S + MS + IDLE), false);
	EXPECT(k2_streams_alive(&streams, ALL, 0, 1000 * S), true);
}

static void one_that_is_rare_is_guarded_for_longer(void)
{
	begin();
	request(1, 1, 0, S);
	request(1, 1, 0, 16 * S);
	EXPECT(is_alive(45 * S), true);
	EXPECT(is_alive(47 * S), false);
}

static void one_whose_threads_have_exited_is_guarded_for_a_second(void)
{
	u64 now_ns;

	begin();
	now_ns = periodic(1, 1, S, 10 * MS, 100) - 9 * MS;
	streams.stream[0].thread = 0;
	EXPECT(is_alive(now_ns + 900 * MS), true);
	EXPECT(is_alive(now_ns + 1100 * MS), false);
}

static void a_process_takes_its_threads_along(void)
{
	begin();
	request(1, 1, 0, S);
	request(1, 2, 0, S + MS);
	request(2, 3, 0, S + 2 * MS);
	k2_streams_forget(&streams, 0);
	EXPECT(streams.used, 3);
	k2_streams_forget(&streams, 2);
	EXPECT(streams.used, 0);
}

static void the_one_that_was_silent_longest_makes_room(void)
{
	begin();
	for (u64 i = 1; i <= K2_STREAMS; i++)
		request(i, i, 0, i * S);
	EXPECT(request(100, 100, 0, 100 * S), 0);
	EXPECT(streams.used, K2_STREAMS);
}

static void one_with_requests_outstanding_keeps_its_place(void)
{
	begin();
	for (u64 i = 1; i <= K2_STREAMS; i++) {
		struct k2_thread thread = {i, i, 0, false};

		k2_streams_arrival(&streams, &thread, i * S, TOLERANCE);
	}
	k2_streams_end(&streams, 5, 99 * S);
	EXPECT(request(100, 100, 0, 100 * S), 5);
	k2_streams_arrival(&streams, &(struct k2_thread){100, 100, 0, false}, 101 * S, TOLERANCE);
	EXPECT(k2_streams_arrival(&streams, &(struct k2_thread){101, 101, 0, false}, 102 * S,
				  TOLERANCE),
	       K2_STREAM_NONE);
}

static void one_that_exits_is_kept_until_its_requests_have_ended(void)
{
	u32 number;

	begin();
	number = k2_streams_arrival(&streams, &(struct k2_thread){1, 1, 0, false}, S, TOLERANCE);
	k2_streams_forget(&streams, number);
	EXPECT(streams.stream[number].key, 1);
	k2_streams_end(&streams, number, S + MS);
	k2_streams_forget(&streams, number);
	EXPECT(streams.used, 0);
}

static void a_request_known_at_its_end_is_of_the_process_that_ended_last(void)
{
	begin();
	request(1, 1, 0, S);
	request(2, 2, 0, S + 5 * MS);
	k2_streams_bypassed(&streams, 0, S + 20 * MS, S + 21 * MS, TOLERANCE);
	EXPECT(streams.stream[1].pattern.arrival_ns, S + 20 * MS);
	EXPECT(streams.stream[0].pattern.arrival_ns, S);
}

static void or_of_an_unknown_one_that_the_first_to_be_known_takes_over(void)
{
	begin();
	k2_streams_bypassed(&streams, 2, S, S + MS, TOLERANCE);
	EXPECT(streams.stream[0].key, K2_STREAM_KEY_UNKNOWN);
	EXPECT(request(7, 8, 2, S + 10 * MS), 0);
	EXPECT(streams.stream[0].key, 7);
	EXPECT(streams.stream[0].thread, 8);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(without_a_process_nothing_is_expected),
		TEST(a_process_is_guarded_from_its_first_request_on),
		TEST(the_first_of_several_processes_counts),
		TEST(a_level_looks_at_better_ones_only),
		TEST(threads_that_take_turns_have_a_pattern_together),
		TEST(threads_with_a_pattern_each_are_known_one_by_one),
		TEST(a_new_thread_of_a_known_process_comes_when_the_last_did),
		TEST(one_whose_last_request_was_a_write_may_be_in_fsync),
		TEST(early_requests_are_counted),
		TEST(a_silent_process_is_guarded_for_a_while),
		TEST(one_that_is_rare_is_guarded_for_longer),
		TEST(one_whose_threads_have_exited_is_guarded_for_a_second),
		TEST(a_process_takes_its_threads_along),
		TEST(the_one_that_was_silent_longest_makes_room),
		TEST(one_with_requests_outstanding_keeps_its_place),
		TEST(one_that_exits_is_kept_until_its_requests_have_ended),
		TEST(a_request_known_at_its_end_is_of_the_process_that_ended_last),
		TEST(or_of_an_unknown_one_that_the_first_to_be_known_takes_over),
	};

	return run_tests("streams: ", tests, sizeof(tests) / sizeof(tests[0]));
}
