// SPDX-License-Identifier: MIT OR Apache-2.0
/* Which of the background is next: metadata, best effort by process, idle. */
#include "clocked.h"

#define METADATA K2_QUEUE_METADATA
#define IDLE	 K2_QUEUE_IDLE
#define MS	 1000000ULL

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

	now_ns = MS;
	clock_reads = 0;
	k2_policy_init(&policy, inflight_max);
	return policy;
}

/* Inserts a best-effort request of a process, and returns its queue. */
static u32 insert_of(struct k2_policy *policy, u32 process)
{
	u32 queue = k2_policy_take_flow(policy, process);

	insert(policy, queue);
	return queue;
}

/* The next one, served. */
static u32 serve_next(struct k2_policy *policy)
{
	u32 queue = dispatch_next(policy);

	if (queue != K2_QUEUE_NONE)
		complete(policy, queue);
	return queue;
}

static void metadata_then_best_effort_then_idle(void)
{
	struct k2_policy policy = policy_with(1);
	u32 queue;

	insert(&policy, IDLE);
	queue = insert_of(&policy, 1);
	insert(&policy, METADATA);
	EXPECT(serve_next(&policy), METADATA);
	EXPECT(serve_next(&policy), queue);
	now_ns += K2_GIVE_WAY_NS;
	look(&policy);
	EXPECT(serve_next(&policy), IDLE);
}

static void idle_waits_while_others_are_in_flight(void)
{
	struct k2_policy policy = policy_with(8);
	u32 queue = insert_of(&policy, 1);

	dispatch_next(&policy);
	insert(&policy, IDLE);
	EXPECT(k2_policy_has_work(&policy), false);
	EXPECT(next_queue(&policy), K2_QUEUE_NONE);
	complete(&policy, queue);
	EXPECT(k2_policy_look(&policy, now_ns), now_ns + K2_GIVE_WAY_NS);
}

/* A process that reads one block after the other is between two of them now. */
static void idle_gives_way_a_little_longer(void)
{
	struct k2_policy policy = policy_with(1);

	insert(&policy, IDLE);
	insert_of(&policy, 1);
	serve_next(&policy);
	now_ns += K2_GIVE_WAY_NS - 1;
	EXPECT(k2_policy_look(&policy, now_ns), now_ns + 1);
	EXPECT(k2_policy_has_work(&policy), false);
	EXPECT(next_queue(&policy), K2_QUEUE_NONE);
	now_ns += 1;
	EXPECT(k2_policy_look(&policy, now_ns), 0);
	EXPECT(k2_policy_has_work(&policy), true);
	EXPECT(next_queue(&policy), IDLE);
}

/* After its first turn it continues until others come. */
static void idle_gives_way_once(void)
{
	struct k2_policy policy = policy_with(1);

	insert_of(&policy, 1);
	for (int i = 0; i < 3; i++)
		insert(&policy, IDLE);
	serve_next(&policy);
	now_ns += K2_GIVE_WAY_NS;
	look(&policy);
	EXPECT(serve_next(&policy), IDLE);
	clock_reads = 0;
	EXPECT(serve_next(&policy), IDLE);
	EXPECT(clock_reads, 0);
}

/* Others that come while it still waits make it wait again. */
static void who_comes_meanwhile_goes_first(void)
{
	struct k2_policy policy = policy_with(1);
	u32 queue;

	insert(&policy, IDLE);
	insert_of(&policy, 1);
	serve_next(&policy);
	now_ns += K2_GIVE_WAY_NS - 1;
	queue = insert_of(&policy, 1);
	EXPECT(dispatch_next(&policy), queue);
	now_ns += K2_GIVE_WAY_NS;
	EXPECT(k2_policy_look(&policy, now_ns), 0);
	EXPECT(k2_policy_has_work(&policy), false);
	complete(&policy, queue);
	EXPECT(k2_policy_look(&policy, now_ns), now_ns + K2_GIVE_WAY_NS);
}

static void idle_does_not_starve(void)
{
	struct k2_policy policy = policy_with(1);

	for (int round = 0; round < 3; round++) {
		insert(&policy, IDLE);
		for (int i = 0; i < K2_BEST_EFFORT_STREAK_MAX; i++) {
			u32 queue = insert_of(&policy, 1);

			EXPECT(serve_next(&policy), queue);
		}
		insert_of(&policy, 1);
		EXPECT(serve_next(&policy), IDLE);
		serve_next(&policy);
	}
}

/* Also where the device always has something of best effort. */
static void idle_does_not_starve_beside_a_full_device(void)
{
	struct k2_policy policy = policy_with(4);
	u32 queue = insert_of(&policy, 1);

	dispatch_next(&policy);
	insert(&policy, IDLE);
	for (int i = 0; i < K2_BEST_EFFORT_STREAK_MAX; i++) {
		insert_of(&policy, 1);
		EXPECT(dispatch_next(&policy), queue);
		complete(&policy, queue);
	}
	EXPECT(dispatch_next(&policy), IDLE);
}

static void idle_alone_reads_no_clock(void)
{
	struct k2_policy policy = policy_with(2);

	for (int i = 0; i < 10; i++) {
		insert(&policy, IDLE);
		insert(&policy, IDLE);
		EXPECT(serve_next(&policy), IDLE);
		EXPECT(serve_next(&policy), IDLE);
	}
	EXPECT(clock_reads, 0);
}

/* The wait of idle under real-time is bounded like that of all background. */
static void idle_is_let_through_beside_rt(void)
{
	struct k2_policy policy = policy_with(1);

	k2_policy_set_background_wait_ms_max(&policy, 1);
	insert(&policy, 0);
	dispatch_next(&policy);
	insert(&policy, IDLE);
	insert(&policy, 0);
	complete(&policy, 0);
	EXPECT(next_queue(&policy), 0);
	now_ns += MS;
	EXPECT(next_queue(&policy), IDLE);
}

static void processes_take_turns(void)
{
	struct k2_policy policy = policy_with(1);
	u32 first = insert_of(&policy, 100), second, third;

	for (int i = 0; i < 9; i++)
		insert_of(&policy, 100);
	second = insert_of(&policy, 200);
	insert_of(&policy, 200);
	third = insert_of(&policy, 300);
	EXPECT(serve_next(&policy), second);
	EXPECT(serve_next(&policy), third);
	EXPECT(serve_next(&policy), first);
	EXPECT(serve_next(&policy), second);
	EXPECT(serve_next(&policy), first);
	EXPECT(serve_next(&policy), first);
}

static void a_piece_is_a_turn(void)
{
	struct k2_policy policy = policy_with(1);
	u32 large = insert_of(&policy, 100);
	u32 small;

	dispatch_next(&policy);
	small = insert_of(&policy, 200);
	give_back(&policy, large, K2_BACK_REST);
	EXPECT(serve_next(&policy), small);
	EXPECT(serve_next(&policy), large);
}

static void a_process_keeps_its_flow_while_it_has_something_there_or_in_flight(void)
{
	struct k2_policy policy = policy_with(1);
	u32 first = insert_of(&policy, 100);

	EXPECT(insert_of(&policy, 100), first);
	dispatch_next(&policy);
	dispatch_next(&policy);
	EXPECT(k2_policy_flow(&policy, 100), first);
	EXPECT(k2_policy_flow(&policy, 200) != first, true);
}

static void with_more_processes_than_flows_some_share(void)
{
	struct k2_policy policy = policy_with(1);
	u32 seen[K2_QUEUES] = {0};

	for (u32 process = 0; process < 3 * K2_FLOWS; process++)
		seen[insert_of(&policy, process)]++;
	for (u32 queue = K2_QUEUE_BEST_EFFORT; queue < K2_QUEUE_IDLE; queue++)
		EXPECT(seen[queue], 3);
	for (u32 i = 0; i < 3 * K2_FLOWS; i++)
		serve_next(&policy);
	EXPECT(k2_policy_idle(&policy), true);
	EXPECT(k2_policy_balanced(&policy), true);
}

static void half_of_the_tags_is_kept_from_idle(void)
{
	EXPECT(k2_policy_tags(64, K2_GROUP_IDLE), 32);
	EXPECT(k2_policy_tags(2, K2_GROUP_IDLE), 1);
	EXPECT(k2_policy_tags(1, K2_GROUP_IDLE), 1);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(metadata_then_best_effort_then_idle),
		TEST(idle_waits_while_others_are_in_flight),
		TEST(idle_gives_way_a_little_longer),
		TEST(idle_gives_way_once),
		TEST(who_comes_meanwhile_goes_first),
		TEST(idle_does_not_starve),
		TEST(idle_does_not_starve_beside_a_full_device),
		TEST(idle_alone_reads_no_clock),
		TEST(idle_is_let_through_beside_rt),
		TEST(processes_take_turns),
		TEST(a_piece_is_a_turn),
		TEST(a_process_keeps_its_flow_while_it_has_something_there_or_in_flight),
		TEST(with_more_processes_than_flows_some_share),
		TEST(half_of_the_tags_is_kept_from_idle),
	};

	return run_tests("background: ", tests, sizeof(tests) / sizeof(tests[0]));
}
