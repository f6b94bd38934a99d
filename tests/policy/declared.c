// SPDX-License-Identifier: MIT OR Apache-2.0
/* Declared tasks, on a device where a read takes 200 us + 10 us/KiB at most. */
#include <string.h>

#include "expect.h"
#include "k2_declared.h"

#define US	     1000ULL
#define MS	     1000000ULL
#define READ	     0
#define BACKGROUND   8
#define BLOCK_US     440
#define LARGE_BYTES  (512U << 10)
#define SOME_TIME_NS (50 * MS)

static struct k2_declared_memory memory;
static struct k2_declared declared;
static u32 task;

static const struct k2_declaration every_10_ms = {
	.level = 1,
	.period_ns = 10 * MS,
	.jitter_ns = 500 * US,
	.think_ns = 50 * US,
	.block_ns = BLOCK_US * US,
};

static void begin(const struct k2_declaration *stated)
{
	memset(&memory, 0, sizeof(memory));
	declared = (struct k2_declared){};
	k2_declared_begin(&declared, &memory);
	k2_declared_set_limit(&declared, READ, 200 * US, 10 * US);
	task = k2_declared_add(&declared, stated);
}

/* Returns when it has ended. */
static u64 request(u64 at_ns, u64 takes_ns)
{
	k2_declared_arrival(&declared, task, at_ns);
	k2_declared_end(&declared, task, at_ns + takes_ns);
	return at_ns + takes_ns;
}

static u32 fit(u32 level, u32 bytes, u64 now_ns)
{
	struct k2_declared_offer offer = {
		.level = level,
		.op = READ,
		.bytes = bytes,
		.block_bytes = K2_PIECE_MIN,
		.may_split = true,
		.is_timed = true,
	};
	u64 hold_until_ns;

	return k2_declared_fit(&declared, &offer, now_ns, &hold_until_ns);
}

static u64 away_ns(u64 now_ns)
{
	return k2_declared_away_ns(&declared.task[task], now_ns);
}

static void guarded_before_its_first_request(void)
{
	begin(&every_10_ms);
	EXPECT(k2_declared_guards(&declared, BACKGROUND), true);
	EXPECT(fit(BACKGROUND, LARGE_BYTES, SOME_TIME_NS), 24U << 10);
}

static void a_level_is_guarded_against_those_below_only(void)
{
	begin(&every_10_ms);
	EXPECT(!k2_declared_guards(&declared, 1), true);
	EXPECT(k2_declared_guards(&declared, 2), true);
}

static void away_until_the_next_job_can_come(void)
{
	u64 end_ns;

	begin(&every_10_ms);
	end_ns = request(SOME_TIME_NS, 300 * US);
	EXPECT(away_ns(end_ns + 50 * US), 0);
	EXPECT(away_ns(end_ns + 51 * US), 9 * MS - 351 * US);
	EXPECT(away_ns(SOME_TIME_NS + 9 * MS), 0);
}

static void not_away_while_a_request_is_outstanding(void)
{
	begin(&every_10_ms);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	EXPECT(away_ns(SOME_TIME_NS + 5 * MS), 0);
}

static void requests_soon_after_each_other_are_one_job(void)
{
	begin(&every_10_ms);
	request(SOME_TIME_NS, 300 * US);
	request(SOME_TIME_NS + 340 * US, 300 * US);
	EXPECT(declared.task[task].jobs, 1);
	EXPECT(away_ns(SOME_TIME_NS + MS), 8 * MS);
}

static void after_a_job_that_came_early_it_may_come_at_any_time(void)
{
	begin(&every_10_ms);
	request(SOME_TIME_NS, 300 * US);
	request(SOME_TIME_NS + 5 * MS, 300 * US);
	EXPECT(declared.task[task].early, 1);
	EXPECT(away_ns(SOME_TIME_NS + 7 * MS), 0);
	request(SOME_TIME_NS + 15 * MS, 300 * US);
	EXPECT(away_ns(SOME_TIME_NS + 16 * MS), 8 * MS);
}

static void after_a_job_that_came_late_it_may_come_at_any_time(void)
{
	begin(&every_10_ms);
	request(SOME_TIME_NS, 300 * US);
	request(SOME_TIME_NS + 13 * MS, 300 * US);
	EXPECT(declared.task[task].late, 1);
	EXPECT(away_ns(SOME_TIME_NS + 15 * MS), 0);
}

static void a_sporadic_task_is_never_late(void)
{
	struct k2_declaration sporadic = every_10_ms;

	sporadic.is_sporadic = true;
	begin(&sporadic);
	request(SOME_TIME_NS, 300 * US);
	request(SOME_TIME_NS + 13 * MS, 300 * US);
	EXPECT(declared.task[task].late, 0);
	EXPECT(away_ns(SOME_TIME_NS + 14 * MS), 8 * MS);
}

static void with_an_exact_number_of_requests_it_does_not_think(void)
{
	struct k2_declaration exact = every_10_ms;

	exact.exact = 1;
	begin(&exact);
	request(SOME_TIME_NS, 300 * US);
	EXPECT(away_ns(SOME_TIME_NS + 300 * US), 9 * MS - 300 * US);
}

static void what_is_with_the_device_takes_room(void)
{
	begin(&every_10_ms);
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 4096, SOME_TIME_NS);
	/* 240 us of 440 are taken: 200 are too few for another, and 200 more are over later. */
	EXPECT(fit(BACKGROUND, LARGE_BYTES, SOME_TIME_NS), 0);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 200 * US);
	EXPECT(fit(BACKGROUND, LARGE_BYTES, SOME_TIME_NS + 200 * US), 24U << 10);
}

static void a_wait_has_one_cause(void)
{
	begin(&every_10_ms);
	/* In its time. */
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 24U << 10, SOME_TIME_NS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 440 * US);
	EXPECT(declared.task[task].waited_ns_max, 440 * US);
	/* The device takes longer than its limit, as after a stall. */
	k2_declared_end(&declared, task, SOME_TIME_NS + MS);
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 24U << 10, SOME_TIME_NS + 10 * MS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS + 10 * MS);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 15 * MS);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_DEVICE], 1);
	EXPECT(declared.overruns, 1);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_POLICY], 0);
}

/* A command of 440 us is sent at 10 ms, begun at @began_ns after that, and ends at @ended_ns. */
static void a_command_that_begins(u64 began_ns, u64 ended_ns)
{
	begin(&every_10_ms);
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 24U << 10, SOME_TIME_NS + 10 * MS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS + 10 * MS);
	k2_declared_began(&declared, 0, SOME_TIME_NS + 10 * MS + began_ns);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 10 * MS + ended_ns);
}

static void a_late_start_is_not_the_devices_fault(void)
{
	a_command_that_begins(3 * MS, 3440 * US);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_DISPATCH], 1);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_DEVICE], 0);
	EXPECT(declared.overruns, 0);
}

static void a_late_start_does_not_hide_the_devices_fault(void)
{
	a_command_that_begins(3 * MS, 3441 * US);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_DISPATCH], 0);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_DEVICE], 1);
	EXPECT(declared.overruns, 1);
}

static void a_late_start_is_the_fault_for_the_commands_behind_it(void)
{
	begin(&every_10_ms);
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 4096, SOME_TIME_NS);
	k2_declared_dispatch(&declared, 1, BACKGROUND, READ, 4096, SOME_TIME_NS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	k2_declared_began(&declared, 0, SOME_TIME_NS + 3 * MS);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 3200 * US);
	k2_declared_began(&declared, 1, SOME_TIME_NS);
	k2_declared_done(&declared, 1, SOME_TIME_NS + 3400 * US);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_DISPATCH], 1);
}

static void a_request_that_came_early_has_itself_to_blame(void)
{
	begin(&every_10_ms);
	request(SOME_TIME_NS, 300 * US);
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 256U << 10, SOME_TIME_NS + MS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS + 2 * MS);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 3 * MS);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_EARLY], 1);
}

static void a_flush_that_k2_was_not_shown_is_a_cause(void)
{
	begin(&every_10_ms);
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 24U << 10, SOME_TIME_NS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	k2_declared_bypassed(&declared, BACKGROUND, SOME_TIME_NS, SOME_TIME_NS + 4 * MS);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 5 * MS);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_BYPASS], 1);
	EXPECT(declared.overruns, 0);
}

static void a_flush_alone_is_a_cause(void)
{
	begin(&every_10_ms);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	k2_declared_dispatch(&declared, 0, 1, READ, 4096, SOME_TIME_NS);
	k2_declared_bypassed(&declared, BACKGROUND, SOME_TIME_NS - MS, SOME_TIME_NS + 440 * US);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_BYPASS], 0);
	k2_declared_bypassed(&declared, BACKGROUND, SOME_TIME_NS - MS, SOME_TIME_NS + 2 * MS);
	/* It counts once. */
	k2_declared_bypassed(&declared, BACKGROUND, SOME_TIME_NS - MS, SOME_TIME_NS + 3 * MS);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_BYPASS], 1);
}

/* The request waits in its queue for a millisecond, and at the device behind the flush. */
static void a_flush_delays_a_request_only_at_the_device(void)
{
	begin(&every_10_ms);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	k2_declared_dispatch(&declared, 0, 1, READ, 4096, SOME_TIME_NS + MS);
	k2_declared_bypassed(&declared, BACKGROUND, SOME_TIME_NS - MS,
			     SOME_TIME_NS + MS + 300 * US);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_BYPASS], 0);
	k2_declared_bypassed(&declared, BACKGROUND, SOME_TIME_NS - MS,
			     SOME_TIME_NS + MS + 500 * US);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_BYPASS], 1);
}

/* Nothing is known of the device's commands. */
static void a_flush_before_the_first_task_changes_nothing(void)
{
	declared = (struct k2_declared){};
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 4096, SOME_TIME_NS);
	k2_declared_bypassed(&declared, BACKGROUND, SOME_TIME_NS, SOME_TIME_NS + MS);
	k2_declared_done(&declared, 0, SOME_TIME_NS + MS);
	EXPECT(declared.faults, 0);
}

static void a_flush_of_its_level_blocks_no_task(void)
{
	begin(&every_10_ms);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	k2_declared_dispatch(&declared, 0, 1, READ, 4096, SOME_TIME_NS);
	k2_declared_bypassed(&declared, 1, SOME_TIME_NS, SOME_TIME_NS + 2 * MS);
	EXPECT(declared.faults, 0);
}

/* A discard that has waited for too long goes, and a request waits for it. */
static void a_discard_is_a_cause(void)
{
	struct k2_declared_offer offer = {.level = BACKGROUND, .op = 1, .bytes = LARGE_BYTES};
	u64 hold_until_ns;

	begin(&every_10_ms);
	k2_declared_fit(&declared, &offer, SOME_TIME_NS, &hold_until_ns);
	EXPECT(k2_declared_fit(&declared, &offer, hold_until_ns, &hold_until_ns), LARGE_BYTES);
	k2_declared_untimed(&declared, BACKGROUND, SOME_TIME_NS + 100 * MS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS + 100 * MS);
	k2_declared_untimed_done(&declared, SOME_TIME_NS + 105 * MS);
	EXPECT(declared.task[task].waited_ns_max, 5 * MS);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_FORCED], 1);
	EXPECT(declared.faults, 1);
}

static void a_command_from_before_the_task_is_a_cause(void)
{
	begin(&every_10_ms);
	k2_declared_untimed(&declared, BACKGROUND, SOME_TIME_NS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	k2_declared_untimed_done(&declared, SOME_TIME_NS + 5 * MS);
	EXPECT(declared.task[task].waited_over[K2_CAUSE_BYPASS], 1);
}

static void a_request_that_is_served_first_waits_no_longer(void)
{
	begin(&every_10_ms);
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 24U << 10, SOME_TIME_NS);
	request(SOME_TIME_NS, 300 * US);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 5 * MS);
	EXPECT(declared.task[task].waited_ns_max, 300 * US);
	EXPECT(declared.faults, 0);
}

/* For one that it finds, and one that goes before it while it is queued. */
static void a_request_that_waits_twice_counts_once(void)
{
	struct k2_declared_offer past = {
		.level = BACKGROUND,
		.op = READ,
		.bytes = 4096,
		.block_bytes = K2_PIECE_MIN,
		.may_split = true,
		.is_timed = true,
		.forced_past = 1U << 1,
	};
	u64 hold_until_ns;

	begin(&every_10_ms);
	k2_declared_dispatch(&declared, 0, BACKGROUND, READ, 24U << 10, SOME_TIME_NS);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	EXPECT(k2_declared_fit(&declared, &past, SOME_TIME_NS + MS, &hold_until_ns), 4096);
	k2_declared_dispatch(&declared, 1, BACKGROUND, READ, 4096, SOME_TIME_NS + MS);
	k2_declared_done(&declared, 0, SOME_TIME_NS + 2 * MS);
	EXPECT(declared.faults, 1);
	k2_declared_done(&declared, 1, SOME_TIME_NS + 4 * MS);
	EXPECT(declared.faults, 1);
}

static void what_may_not_be_split_waits_until_it_fits_but_not_for_ever(void)
{
	struct k2_declared_offer offer = {
		.level = BACKGROUND,
		.op = READ,
		.bytes = LARGE_BYTES,
		.block_bytes = K2_PIECE_MIN,
		.is_timed = true,
	};
	u64 hold_until_ns;

	begin(&every_10_ms);
	EXPECT(k2_declared_fit(&declared, &offer, SOME_TIME_NS, &hold_until_ns), 0);
	EXPECT(hold_until_ns, SOME_TIME_NS + K2_DECLARED_HOLD_NS);
	EXPECT(k2_declared_fit(&declared, &offer, hold_until_ns, &hold_until_ns), LARGE_BYTES);
	EXPECT(declared.forced, 1);
	/* Where there is room it need not wait. */
	request(SOME_TIME_NS + 200 * MS, 300 * US);
	EXPECT(k2_declared_fit(&declared, &offer, SOME_TIME_NS + 201 * MS, &hold_until_ns),
	       LARGE_BYTES);
}

static void what_may_not_be_split_goes_when_a_task_is_quiet(void)
{
	struct k2_declared_offer offer = {
		.level = BACKGROUND,
		.op = READ,
		.bytes = LARGE_BYTES,
		.block_bytes = K2_PIECE_MIN,
		.is_timed = true,
	};
	u64 end_ns, hold_until_ns;

	begin(&every_10_ms);
	end_ns = request(SOME_TIME_NS, 300 * US);
	EXPECT(k2_declared_fit(&declared, &offer, end_ns, &hold_until_ns), 0);
	EXPECT(hold_until_ns, end_ns + 50 * US + 1);
	EXPECT(k2_declared_fit(&declared, &offer, hold_until_ns, &hold_until_ns), LARGE_BYTES);
	EXPECT(declared.forced, 0);
}

static void background_waits_while_a_task_thinks_if_that_is_short(void)
{
	struct k2_declared_offer offer = {
		.level = BACKGROUND,
		.op = READ,
		.bytes = LARGE_BYTES,
		.block_bytes = K2_PIECE_MIN,
		.may_split = true,
		.is_timed = true,
		.may_wait = true,
	};
	u64 end_ns, hold_until_ns;

	begin(&every_10_ms);
	end_ns = request(SOME_TIME_NS, 300 * US);
	EXPECT(k2_declared_fit(&declared, &offer, end_ns, &hold_until_ns), 0);
	EXPECT(hold_until_ns, end_ns + 50 * US + 1);
	EXPECT(k2_declared_fit(&declared, &offer, hold_until_ns, &hold_until_ns), LARGE_BYTES);
}

static void a_task_that_has_gone_guards_nothing(void)
{
	begin(&every_10_ms);
	k2_declared_remove(&declared, task);
	EXPECT(!k2_declared_guards(&declared, BACKGROUND), true);
	EXPECT(declared.used, 0);
}

static void a_number_is_not_used_again_before_its_requests_have_ended(void)
{
	begin(&every_10_ms);
	k2_declared_arrival(&declared, task, SOME_TIME_NS);
	k2_declared_remove(&declared, task);
	EXPECT(k2_declared_add(&declared, &every_10_ms), task + 1);
	k2_declared_end(&declared, task, SOME_TIME_NS + MS);
	EXPECT(declared.task[task + 1].ended, 0);
	EXPECT(k2_declared_add(&declared, &every_10_ms), task);
}

static void there_is_no_room_for_more_tasks_than_that(void)
{
	u32 i;

	begin(&every_10_ms);
	for (i = 1; i < K2_DECLARED_MAX; i++)
		EXPECT(k2_declared_add(&declared, &every_10_ms), i);
	EXPECT(k2_declared_add(&declared, &every_10_ms), K2_DECLARED_NONE);
}

static void without_a_limit_only_the_smallest_piece_goes(void)
{
	begin(&every_10_ms);
	request(SOME_TIME_NS, 300 * US);
	declared.limit[READ] = (struct k2_limit){0};
	EXPECT(fit(BACKGROUND, LARGE_BYTES, SOME_TIME_NS + MS), K2_PIECE_MIN);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(guarded_before_its_first_request),
		TEST(a_level_is_guarded_against_those_below_only),
		TEST(away_until_the_next_job_can_come),
		TEST(not_away_while_a_request_is_outstanding),
		TEST(requests_soon_after_each_other_are_one_job),
		TEST(after_a_job_that_came_early_it_may_come_at_any_time),
		TEST(after_a_job_that_came_late_it_may_come_at_any_time),
		TEST(a_sporadic_task_is_never_late),
		TEST(with_an_exact_number_of_requests_it_does_not_think),
		TEST(what_is_with_the_device_takes_room),
		TEST(a_wait_has_one_cause),
		TEST(a_late_start_is_not_the_devices_fault),
		TEST(a_late_start_does_not_hide_the_devices_fault),
		TEST(a_late_start_is_the_fault_for_the_commands_behind_it),
		TEST(a_request_that_came_early_has_itself_to_blame),
		TEST(a_flush_that_k2_was_not_shown_is_a_cause),
		TEST(a_flush_alone_is_a_cause),
		TEST(a_flush_delays_a_request_only_at_the_device),
		TEST(a_flush_before_the_first_task_changes_nothing),
		TEST(a_flush_of_its_level_blocks_no_task),
		TEST(a_discard_is_a_cause),
		TEST(a_command_from_before_the_task_is_a_cause),
		TEST(a_request_that_is_served_first_waits_no_longer),
		TEST(a_request_that_waits_twice_counts_once),
		TEST(what_may_not_be_split_waits_until_it_fits_but_not_for_ever),
		TEST(what_may_not_be_split_goes_when_a_task_is_quiet),
		TEST(background_waits_while_a_task_thinks_if_that_is_short),
		TEST(a_task_that_has_gone_guards_nothing),
		TEST(a_number_is_not_used_again_before_its_requests_have_ended),
		TEST(there_is_no_room_for_more_tasks_than_that),
		TEST(without_a_limit_only_the_smallest_piece_goes),
	};

	return run_tests("declared: ", tests, sizeof(tests) / sizeof(tests[0]));
}
