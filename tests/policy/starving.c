// SPDX-License-Identifier: MIT OR Apache-2.0
/* How long background waits while real-time has the device, one property per function. */
#include "clocked.h"

#define BACKGROUND K2_QUEUE_BEST_EFFORT
#define METADATA   K2_QUEUE_METADATA
#define MS	   1000000ULL

static u64 now_ns;
static u64 clock_reads;

static u64 clock_ns(void)
{
	clock_reads++;
	return now_ns;
}

static struct k2_policy policy_with(u32 inflight_max)
{
	struct k2_policy policy;

	now_ns = 0;
	k2_policy_init(&policy, inflight_max);
	return policy;
}

static void background_wait_has_a_range(void)
{
	struct k2_policy policy = policy_with(1);

	EXPECT(policy.background_wait_ms_max, 0);
	EXPECT(k2_policy_set_background_wait_ms_max(&policy, K2_BACKGROUND_WAIT_MS_LIMIT), true);
	EXPECT(k2_policy_set_background_wait_ms_max(&policy, K2_BACKGROUND_WAIT_MS_LIMIT + 1),
	       false);
	EXPECT(k2_policy_set_background_wait_ms_max(&policy, UINT32_MAX), false);
	EXPECT(policy.background_wait_ms_max, K2_BACKGROUND_WAIT_MS_LIMIT);
	EXPECT(k2_policy_set_background_wait_ms_max(&policy, 0), true);
	EXPECT(policy.background_wait_ms_max, 0);
}

/* Two of @level queued, or one queued and one with the device: real-time without a gap. */
static void keep_rt_busy(struct k2_policy *policy, u32 level)
{
	while (policy->queued[level] < 2)
		insert(policy, level);
}

static void without_a_bound_background_starves_and_it_shows(void)
{
	struct k2_policy policy = policy_with(1);

	insert(&policy, BACKGROUND);
	for (int i = 0; i < 1000; i++) {
		keep_rt_busy(&policy, 7);
		EXPECT(dispatch_next(&policy), 7);
		now_ns += MS;
		complete(&policy, 7);
	}
	EXPECT(k2_policy_background_wait_ns(&policy, now_ns), 1000 * MS);
	EXPECT(policy.background_forced_count, 0);
}

static void background_goes_first_once_its_wait_is_over(void)
{
	struct k2_policy policy = policy_with(1);

	k2_policy_set_background_wait_ms_max(&policy, 5);
	now_ns = 100 * MS;
	insert(&policy, BACKGROUND);
	keep_rt_busy(&policy, 0);
	now_ns = 105 * MS - 1;
	EXPECT(dispatch_next(&policy), 0);
	/* The device is busy, so even background that is due has to wait. */
	now_ns = 106 * MS;
	EXPECT(dispatch_next(&policy), K2_QUEUE_NONE);
	now_ns = 107 * MS;
	complete(&policy, 0);
	EXPECT(policy.background_forced_count, 0);
	EXPECT(dispatch_next(&policy), BACKGROUND);
	EXPECT(policy.background_forced_count, 1);
	now_ns = 200 * MS;
	EXPECT(k2_policy_background_wait_ns(&policy, now_ns), 7 * MS);
}

/* However long a piece takes, real-time then has the device for as long as background waits. */
static void the_wait_begins_when_the_last_piece_ends(void)
{
	struct k2_policy policy = policy_with(1);

	k2_policy_set_background_wait_ms_max(&policy, 5);
	insert(&policy, BACKGROUND);
	EXPECT(dispatch_next(&policy), BACKGROUND);
	keep_rt_busy(&policy, 0);
	now_ns = 50 * MS;
	give_back(&policy, BACKGROUND, K2_BACK_REST);
	EXPECT(dispatch_next(&policy), 0);
	now_ns = 54 * MS;
	complete(&policy, 0);
	EXPECT(dispatch_next(&policy), 0);
	now_ns = 55 * MS;
	complete(&policy, 0);
	keep_rt_busy(&policy, 0);
	EXPECT(dispatch_next(&policy), BACKGROUND);
}

/* Both background queues wait together; the one with metadata is let through first. */
static void metadata_waits_as_background_does(void)
{
	struct k2_policy policy = policy_with(1);

	k2_policy_set_background_wait_ms_max(&policy, 5);
	insert(&policy, METADATA);
	insert(&policy, BACKGROUND);
	keep_rt_busy(&policy, 0);
	EXPECT(dispatch_next(&policy), 0);
	now_ns = 5 * MS;
	complete(&policy, 0);
	EXPECT(dispatch_next(&policy), METADATA);
	complete(&policy, METADATA);
	EXPECT(dispatch_next(&policy), 0);
	now_ns = 10 * MS;
	complete(&policy, 0);
	keep_rt_busy(&policy, 0);
	EXPECT(dispatch_next(&policy), BACKGROUND);
}

/* With room for more in flight, background that is being served does not wait. */
static void background_in_flight_does_not_wait(void)
{
	struct k2_policy policy = policy_with(2);

	k2_policy_set_background_wait_ms_max(&policy, 5);
	insert(&policy, BACKGROUND);
	insert(&policy, BACKGROUND);
	EXPECT(dispatch_next(&policy), BACKGROUND);
	keep_rt_busy(&policy, 3);
	now_ns = 60 * MS;
	EXPECT(dispatch_next(&policy), 3);
	now_ns = 61 * MS;
	complete(&policy, BACKGROUND);
	now_ns = 65 * MS;
	EXPECT(dispatch_next(&policy), 3);
	now_ns = 66 * MS;
	complete(&policy, 3);
	keep_rt_busy(&policy, 3);
	EXPECT(dispatch_next(&policy), BACKGROUND);
}

/* Background that came out of a merge or an empty queue begins to wait when it comes. */
static void an_empty_queue_does_not_wait(void)
{
	struct k2_policy policy = policy_with(1);

	k2_policy_set_background_wait_ms_max(&policy, 5);
	insert(&policy, BACKGROUND);
	dispatch(&policy, BACKGROUND);
	now_ns = 1 * MS;
	complete(&policy, BACKGROUND);
	keep_rt_busy(&policy, 0);
	now_ns = 100 * MS;
	insert(&policy, BACKGROUND);
	now_ns = 104 * MS;
	EXPECT(dispatch_next(&policy), 0);
	complete(&policy, 0);
	keep_rt_busy(&policy, 0);
	now_ns = 105 * MS;
	EXPECT(dispatch_next(&policy), BACKGROUND);
}

/* Reading the clock costs time on the path of each request: one class alone needs none. */
static void one_class_alone_reads_no_clock(void)
{
	for (u32 queue = 0; queue < K2_QUEUES; queue++) {
		struct k2_policy policy = policy_with(1);

		k2_policy_set_background_wait_ms_max(&policy, 5);
		clock_reads = 0;
		insert(&policy, queue);
		insert(&policy, queue);
		EXPECT(dispatch_next(&policy), queue);
		complete(&policy, queue);
		EXPECT(dispatch_next(&policy), queue);
		complete(&policy, queue);
		EXPECT(clock_reads, 0);
	}
}

/* A task with short pauses must not reset the wait at each pause. */
static void a_moment_without_rt_does_not_end_a_wait(void)
{
	struct k2_policy policy = policy_with(1);

	k2_policy_set_background_wait_ms_max(&policy, 5);
	insert(&policy, 0);
	EXPECT(dispatch_next(&policy), 0);
	insert(&policy, BACKGROUND);
	for (int i = 1; i < 5; i++) {
		now_ns = i * MS;
		complete(&policy, 0);
		insert(&policy, 0);
		EXPECT(dispatch_next(&policy), 0);
	}
	now_ns = 5 * MS;
	complete(&policy, 0);
	insert(&policy, 0);
	EXPECT(dispatch_next(&policy), BACKGROUND);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(background_wait_has_a_range),
		TEST(without_a_bound_background_starves_and_it_shows),
		TEST(background_goes_first_once_its_wait_is_over),
		TEST(the_wait_begins_when_the_last_piece_ends),
		TEST(metadata_waits_as_background_does),
		TEST(background_in_flight_does_not_wait),
		TEST(an_empty_queue_does_not_wait),
		TEST(one_class_alone_reads_no_clock),
		TEST(a_moment_without_rt_does_not_end_a_wait),
	};

	return run_tests("", tests, sizeof(tests) / sizeof(tests[0]));
}
