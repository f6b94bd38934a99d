// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Each I/O of a declared task that lower levels block for longer than stated has one cause.
 *
 * Two tasks, each with one I/O at a time, on a device that serves commands in the order in which
 * they came. Runs are random. In most of them one kind of thing goes wrong: then all counts have
 * that cause. The device says who was in front of each I/O, and for how long.
 */
#include <string.h>

#include "expect.h"
#include "k2_decision.h"

#define US	    1000ULL
#define MS	    1000000ULL
#define KIB	    1024U
#define TASKS	    2
#define COMMANDS    64
#define END_NS	    (4000 * MS)
#define RUNS	    40
#define NEVER	    (~0ULL)
#define LEAST_NS    (240 * US)
#define BACKGROUND  K2_RT_LEVELS
#define RANDOM_SKIP 8

enum wrong {
	DEVICE = 1, /* takes longer than its limit */
	DISPATCH = 2, /* the driver begins a command late */
	EARLY = 4, /* jobs come before their time */
	LATE = 8, /* or after it */
	BYPASS = 16, /* flushes, which k2 is not shown */
	FORCED = 32, /* requests that may not be split, and discards */
	POLICY = 64, /* more is dispatched than was decided */
	LAST = 128
};

struct command {
	bool is_there, bypasses;
	u32 flight, level, bytes;
	int task; /* -1: background */
	u64 sent_ns, began_ns, start_ns, end_ns;
};

static const struct k2_declaration stated[TASKS] = {
	{.level = 1,
	 .period_ns = 10 * MS,
	 .jitter_ns = 200 * US,
	 .think_ns = 50 * US,
	 .block_ns = 440 * US},
	{.level = 3,
	 .period_ns = 27 * MS,
	 .jitter_ns = MS,
	 .think_ns = 50 * US,
	 .block_ns = 700 * US},
};

static struct {
	struct k2_lookahead ahead;
	struct k2_policy policy;
	struct k2_declared_memory memory;
	struct command commands[COMMANDS];
	u64 now_ns, free_ns, hold_until_ns, flush_ns;
	bool is_held;
	u32 wrong;
	/* The request at the head of the background. */
	u32 queue, bytes;
	bool may_split, is_timed;
	struct io {
		bool is_there;
		u32 bytes;
		u64 place_ns, next_ns, arrived_ns;
		u64 one_ns_max, until_ns; /* lower levels were in front: one of them, all */
		u64 counted; /* by k2, before it */
	} io[TASKS];
	u64 late, count[K2_CAUSES];
} sim;

static u64 random_state;

static u64 below(u64 limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL; /* Knuth */
	return limit ? (random_state >> 32) % limit : 0;
}

static bool goes_wrong(enum wrong kind, u64 one_in)
{
	return sim.wrong & kind && !below(one_in);
}

static struct k2_declared_task *task_of(u32 number)
{
	return &sim.memory.task[number];
}

static u64 counted(u32 number)
{
	u64 sum = 0;
	u32 cause;

	for (cause = 0; cause < K2_CAUSES; cause++)
		sum += task_of(number)->waited_over[cause];
	return sum;
}

/* The device. */

static void send(struct command command, u64 takes_ns)
{
	u32 i = 0;

	while (sim.commands[i].is_there)
		i++;
	command.is_there = true;
	command.sent_ns = sim.now_ns;
	command.began_ns = sim.now_ns;
	if (!command.bypasses && goes_wrong(DISPATCH, 20))
		command.began_ns += below(5 * MS);
	command.start_ns = k2_max(command.began_ns, sim.free_ns);
	command.end_ns = command.start_ns + takes_ns;
	sim.free_ns = command.end_ns;
	sim.commands[i] = command;
}

static u64 takes_ns(u32 bytes, bool is_timed)
{
	u64 limit_ns = k2_declared_limit_ns(&sim.ahead.declared, 0, bytes);

	if (!is_timed)
		return MS + below(9 * MS);
	if (goes_wrong(DEVICE, 50))
		return limit_ns + below(8 * MS);
	return limit_ns / 2 + below(limit_ns / 2 + 1);
}

/* A command of a lower level was before this I/O, if the I/O is still there. */
static void was_in_front(const struct command *command, struct io *io)
{
	u64 from_ns = k2_max(command->start_ns, io->arrived_ns);

	if (command->end_ns <= io->arrived_ns)
		return;
	io->one_ns_max = k2_max(io->one_ns_max, command->end_ns - from_ns);
	io->until_ns = command->end_ns;
}

static void end_io(u32 number)
{
	struct io *io = &sim.io[number];
	u64 block_ns = k2_max(stated[number].block_ns, LEAST_NS), more;

	k2_declared_end(&sim.ahead.declared, number, sim.now_ns);
	io->is_there = false;
	more = counted(number) - io->counted;
	EXPECT_WITHIN(more, 0, 1);
	if (io->one_ns_max > block_ns)
		EXPECT(more, 1);
	if (more)
		EXPECT_WITHIN(io->until_ns - io->arrived_ns, block_ns + 1, NEVER);
	sim.late += more;
}

static void end_in_policy(const struct command *command)
{
	u32 queue = command->task < 0 ? sim.queue : command->level;
	u32 *left = command->task < 0 ? &sim.bytes : &sim.io[command->task].bytes;

	if (command->flight < K2_FLIGHTS)
		k2_declared_began(&sim.ahead.declared, command->flight, command->began_ns);
	if (command->flight != K2_FLIGHT_NONE)
		k2_lookahead_done(&sim.ahead, command->flight, sim.now_ns);
	*left -= command->bytes;
	sim.is_held = false;
	if (*left) {
		k2_policy_give_back(&sim.policy, queue, K2_BACK_REST);
		if (command->task >= 0)
			k2_declared_back(&sim.ahead.declared, (u32)command->task, sim.now_ns);
		return;
	}
	k2_policy_complete(&sim.policy, queue);
	if (command->task >= 0)
		end_io((u32)command->task);
}

static void end_command(struct command *command)
{
	u32 i;

	command->is_there = false;
	for (i = 0; i < TASKS; i++)
		if (sim.io[i].is_there && command->level > stated[i].level)
			was_in_front(command, &sim.io[i]);
	if (command->bypasses)
		k2_lookahead_bypassed(&sim.ahead, BACKGROUND, command->sent_ns, sim.now_ns);
	else
		end_in_policy(command);
}

/* The load. */

static void begin_io(u32 number)
{
	struct io *io = &sim.io[number];
	u64 period_ns = stated[number].period_ns, jitter_ns = stated[number].jitter_ns;

	io->is_there = true;
	io->bytes = 4 * KIB * (1 + (u32)below(16));
	io->arrived_ns = sim.now_ns;
	io->one_ns_max = 0;
	io->until_ns = sim.now_ns;
	io->counted = counted(number);
	io->place_ns += period_ns;
	if (goes_wrong(LATE, 10))
		io->place_ns += 3 * jitter_ns + below(period_ns);
	io->next_ns = io->place_ns - jitter_ns + below(2 * jitter_ns + 1);
	if (goes_wrong(EARLY, 10))
		io->next_ns -= 3 * jitter_ns + below(period_ns / 2);
	k2_policy_insert(&sim.policy, stated[number].level);
	k2_declared_arrival(&sim.ahead.declared, number, sim.now_ns);
	sim.is_held = false;
}

static void fill_background(void)
{
	if (sim.bytes)
		return;
	sim.bytes = 512 * KIB;
	sim.may_split = !goes_wrong(FORCED, 10);
	sim.is_timed = sim.may_split || below(2);
	sim.queue = k2_policy_take_flow(&sim.policy, 7);
	k2_policy_insert(&sim.policy, sim.queue);
	sim.is_held = false;
}

static u32 watch(const struct k2_decision *decision, u32 level, u32 bytes, bool is_timed)
{
	if (!decision->is_watched || !is_timed)
		return k2_lookahead_unwatched(&sim.ahead, level, sim.now_ns);
	return k2_lookahead_watch(&sim.ahead, level, 0, bytes, k2_policy_inflight(&sim.policy),
				  sim.now_ns);
}

static bool dispatch(void)
{
	u32 queue = k2_policy_next(&sim.policy, sim.now_ns), number = queue != stated[0].level;
	bool is_rt = queue < K2_RT_LEVELS;
	struct k2_offer offer = {
		.queue = queue,
		.bytes = is_rt ? sim.io[number].bytes : sim.bytes,
		.block_bytes = 512,
		.may_split = is_rt || sim.may_split,
		.is_timed = is_rt || sim.is_timed,
	};
	struct k2_decision decision;
	struct command command;

	if (queue == K2_QUEUE_NONE || sim.is_held)
		return false;
	decision = k2_decide(&sim.ahead, &sim.policy, &offer, sim.now_ns);
	if (!decision.bytes) {
		sim.is_held = true;
		sim.hold_until_ns = decision.hold_until_ns ? decision.hold_until_ns : NEVER;
		return false;
	}
	command = (struct command){
		.level = k2_guarded_level(queue),
		.bytes = !is_rt && goes_wrong(POLICY, 10) ? offer.bytes : decision.bytes,
		.task = is_rt ? (int)number : -1,
	};
	command.flight = watch(&decision, command.level, command.bytes, offer.is_timed);
	k2_policy_dispatch(&sim.policy, queue);
	send(command, takes_ns(command.bytes, offer.is_timed));
	return true;
}

static struct command *first_to_end(void)
{
	struct command *first = NULL;
	u32 i;

	for (i = 0; i < COMMANDS; i++)
		if (sim.commands[i].is_there && (!first || sim.commands[i].end_ns < first->end_ns))
			first = &sim.commands[i];
	return first;
}

static void flush(void)
{
	sim.flush_ns = sim.now_ns + MS + below(50 * MS);
	send((struct command){.level = BACKGROUND, .bypasses = true, .task = -1}, below(8 * MS));
}

static void note_waits(void)
{
	if (k2_policy_waits_changed(&sim.policy))
		k2_policy_note_waits(&sim.policy, sim.now_ns);
}

static void step(void)
{
	struct command *first = first_to_end();
	u64 next_ns = first ? first->end_ns : NEVER;
	u32 i;

	for (i = 0; i < TASKS; i++)
		if (!sim.io[i].is_there)
			next_ns = k2_min(next_ns, k2_max(sim.io[i].next_ns, sim.now_ns));
	next_ns = k2_min(next_ns, sim.flush_ns);
	if (sim.is_held)
		next_ns = k2_min(next_ns, sim.hold_until_ns);
	sim.now_ns = next_ns;
	if (first && first->end_ns <= sim.now_ns)
		end_command(first);
	if (sim.flush_ns <= sim.now_ns)
		flush();
	for (i = 0; i < TASKS; i++)
		if (!sim.io[i].is_there && sim.io[i].next_ns <= sim.now_ns)
			begin_io(i);
	if (sim.hold_until_ns <= sim.now_ns)
		sim.is_held = false;
	note_waits();
	fill_background();
	while (dispatch())
		note_waits();
}

/* The tasks are declared while background is with the device. */
static void begin(u32 wrong, u32 inflight_max)
{
	u32 i;

	memset(&sim, 0, sizeof(sim));
	sim.wrong = wrong;
	sim.now_ns = 100 * MS;
	sim.flush_ns = wrong & BYPASS ? 110 * MS : NEVER;
	k2_policy_init(&sim.policy, inflight_max);
	k2_lookahead_init(&sim.ahead);
	k2_lookahead_set_rt_block_us(&sim.ahead, 0);
	if (wrong & FORCED)
		k2_policy_set_background_wait_ms_max(&sim.policy, 2);
	k2_declared_begin(&sim.ahead.declared, &sim.memory);
	k2_declared_set_limit(&sim.ahead.declared, 0, 200 * US, 10 * US);
	fill_background();
	if (wrong & BYPASS)
		dispatch();
	for (i = 0; i < TASKS; i++) {
		EXPECT(k2_declared_add(&sim.ahead.declared, &stated[i]), i);
		sim.io[i].place_ns = sim.now_ns + below(MS);
		sim.io[i].next_ns = sim.io[i].place_ns;
	}
}

static void run(u32 wrong, u32 seed)
{
	u32 i, cause;
	u64 sum = 0;

	random_state = seed;
	for (i = 0; i < RANDOM_SKIP; i++)
		below(2);
	begin(wrong, seed % 2 ? 1 : 3);
	while (sim.now_ns < END_NS && !failed)
		step();
	for (i = 0; i < TASKS; i++)
		for (cause = 0; cause < K2_CAUSES; cause++)
			sim.count[cause] += task_of(i)->waited_over[cause];
	for (cause = 0; cause < K2_CAUSES; cause++)
		sum += sim.count[cause];
	for (i = 0; i < TASKS; i++)
		if (sim.io[i].is_there)
			sim.late += counted(i) - sim.io[i].counted;
	EXPECT(sum, sim.late);
	if (failed)
		printf("wrong %u, seed %u, at %" PRIu64 " ns\n", wrong, seed, sim.now_ns);
}

/* With one kind of thing wrong all counts are of @cause, or there are none. */
static u64 one_cause(u32 wrong, u32 cause)
{
	u64 found = 0, others = 0;
	u32 seed, i;

	for (seed = 1; seed <= RUNS && !failed; seed++) {
		run(wrong, seed);
		for (i = 0; i < K2_CAUSES; i++)
			*(i == cause ? &found : &others) += sim.count[i];
		EXPECT(others, 0);
	}
	return found;
}

static void nothing_is_late_if_nothing_goes_wrong(void)
{
	EXPECT(one_cause(0, K2_CAUSE_POLICY), 0);
}

static void a_slow_device_is_the_cause(void)
{
	EXPECT_WITHIN(one_cause(DEVICE, K2_CAUSE_DEVICE), 100, NEVER);
}

static void a_late_driver_is_the_cause(void)
{
	EXPECT_WITHIN(one_cause(DISPATCH, K2_CAUSE_DISPATCH), 100, NEVER);
}

static void an_early_job_is_the_cause(void)
{
	EXPECT_WITHIN(one_cause(EARLY, K2_CAUSE_EARLY), 100, NEVER);
}

static void a_late_job_does_not_wait_longer(void)
{
	EXPECT(one_cause(LATE, K2_CAUSE_LATE), 0);
}

static void what_k2_is_not_shown_is_the_cause(void)
{
	EXPECT_WITHIN(one_cause(BYPASS, K2_CAUSE_BYPASS), 100, NEVER);
}

static void what_did_not_fit_is_the_cause(void)
{
	EXPECT_WITHIN(one_cause(FORCED, K2_CAUSE_FORCED), 100, NEVER);
}

static void a_wrong_decision_is_k2s_own_fault(void)
{
	EXPECT_WITHIN(one_cause(POLICY, K2_CAUSE_POLICY), 100, NEVER);
}

static void each_late_request_has_one_cause_whatever_goes_wrong(void)
{
	u64 found[K2_CAUSES] = {0};
	u32 seed, cause;

	for (seed = 1; seed <= 20 * RUNS && !failed; seed++) {
		run((u32)below(LAST), seed);
		for (cause = 0; cause < K2_CAUSES; cause++)
			found[cause] += sim.count[cause];
	}
	for (cause = 0; cause < K2_CAUSES; cause++)
		EXPECT_WITHIN(found[cause], 100, NEVER);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(nothing_is_late_if_nothing_goes_wrong),
		TEST(a_slow_device_is_the_cause),
		TEST(a_late_driver_is_the_cause),
		TEST(an_early_job_is_the_cause),
		TEST(a_late_job_does_not_wait_longer),
		TEST(what_k2_is_not_shown_is_the_cause),
		TEST(what_did_not_fit_is_the_cause),
		TEST(a_wrong_decision_is_k2s_own_fault),
		TEST(each_late_request_has_one_cause_whatever_goes_wrong),
	};

	return run_tests("causes: ", tests, sizeof(tests) / sizeof(tests[0]));
}
