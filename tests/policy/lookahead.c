// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The bound of rt_block_us on a simulated card: streams of real-time reads of 64 KiB next to
 * background of 512 KiB. For each stream: how many requests from the second on found a background
 * command that kept the card for longer than the bound (none may). Also the throughput of the
 * background after the first seconds, relative to that under a scheduler that serves real-time
 * first and splits nothing.
 *
 * Pieces are strict (rt_strict): a slow episode that begins at any time keeps the bound.
 *
 * Time is that of the events; software takes none.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "card.h"
#include "k2_decision.h"

#define US		 1000ULL
#define MS		 1000000ULL
#define S		 1000000000ULL
#define WARM_NS		 (2 * S)
#define TASKS_MAX	 5
#define DEPTH_MAX	 32
#define BACKGROUND_MAX	 32
#define BACKGROUND_BYTES (512U << 10)
#define RT_LEVEL	 0
/* Blocked times are counted in steps of 10 us up to 5 ms. */
#define STEP_NS	      (10 * US)
#define BLOCKED_STEPS 500
/* Of the card, once in 4 MiB. */
#define PAUSE_US 2293
/*
 * Now and then a request comes a little earlier than any before it. With a command queue, large
 * commands overlap less than those that were with the card lately.
 */
#define RARE_PER_MILLION       100
#define RARE_PER_MILLION_QUEUE 500

enum pattern {
	PERIODIC,
	THINK,
	SPORADIC,
	POISSON,
	ON_OFF,
	BURST,
	BACK_TO_BACK
};

struct stream {
	enum pattern pattern;
	uint32_t period_us, jitter_us, kib;
};

struct task {
	struct stream stream;
	uint64_t base_ns, next_ns, arrival_ns;
	uint32_t turn, number; /* of requests so far; of the policy */
	bool waits, is_served;
};

struct command {
	bool is_used;
	int task; /* -1: background */
	uint32_t background, bytes, flight;
	uint64_t end_ns;
};

struct background {
	uint64_t sector;
	uint32_t left_bytes;
	bool is_served;
};

struct run {
	const char *name;
	struct stream streams[TASKS_MAX];
	uint32_t bound_us;
	uint32_t depth; /* commands in flight; over 1: the card has a queue */
	bool writes; /* of the background */
	uint32_t pause_us; /* by which a write is now and then longer */
	double share_min; /* of the background's share without guarding */
	uint32_t p99_us_max; /* of the time that a request is blocked; 0: the bound */
};

static struct {
	const struct run *run;
	struct k2_lookahead ahead;
	struct k2_stream streams[K2_STREAMS];
	struct k2_policy policy; /* only for requests in flight */
	struct task tasks[TASKS_MAX];
	uint32_t task_count, depth, background_count;
	struct command commands[DEPTH_MAX];
	struct background background[BACKGROUND_MAX];
	uint32_t turn;
	uint64_t now_ns, hold_until_ns;
	/* Results. */
	uint64_t background_bytes, arrivals, over, blocked_ns_max;
	uint64_t blocked[BLOCKED_STEPS]; /* how many, by time */
} sim;

static uint64_t random_state;

static double uniform(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (double)((random_state * 0x2545f4914f6cdd1dULL) >> 11) * 0x1p-53;
}

static uint64_t exponential_ns(double mean_us)
{
	return (uint64_t)(-mean_us * log(1 - uniform()) * US);
}

static uint64_t random_sector(void)
{
	return (uint64_t)(uniform() * 1e8) & ~7ULL;
}

/* Where the period is, and how far from there. */
static uint64_t next_period(struct task *task, uint64_t more_ns)
{
	task->base_ns += task->stream.period_us * US + more_ns;
	return task->base_ns + (uint64_t)(2 * uniform() * task->stream.jitter_us * US);
}

static uint64_t next_arrival(struct task *task)
{
	uint64_t period_ns = task->stream.period_us * US;

	task->turn++;
	switch (task->stream.pattern) {
	case PERIODIC:
		return next_period(task, 0);
	case THINK:
		return sim.now_ns + period_ns +
		       (uint64_t)(2 * uniform() * task->stream.jitter_us * US);
	case SPORADIC:
		return task->arrival_ns + period_ns + exponential_ns(task->stream.period_us);
	case POISSON:
		task->base_ns += exponential_ns(task->stream.period_us);
		return task->base_ns;
	case ON_OFF: /* a second on, two off */
		return next_period(task, task->turn % 100 ? 0 : 2 * S);
	case BURST: /* of four, one after the other */
		return task->turn % 4 ? sim.now_ns + US : next_period(task, 0);
	case BACK_TO_BACK:
		return sim.now_ns + 20 * US;
	}
	abort();
}

static void begin(const struct run *run, bool guarded, uint64_t seed)
{
	random_state = 88172645463325252ULL + seed * 7919;
	sim = (typeof(sim)){
		.run = run,
		.depth = run->depth,
		.hold_until_ns = K2_NEVER,
		.background_count = run->depth > 1 ? BACKGROUND_MAX : 1,
	};
	k2_policy_init(&sim.policy, run->depth);
	k2_lookahead_init(&sim.ahead);
	sim.ahead.streams.stream = sim.streams;
	k2_lookahead_set_rt_block_us(&sim.ahead, guarded ? run->bound_us : 0);
	sim.ahead.is_strict = true;
	card_begin(run->depth > 1, run->pause_us * US);
	while (sim.task_count < TASKS_MAX && run->streams[sim.task_count].kib) {
		struct task *task = &sim.tasks[sim.task_count];

		task->stream = run->streams[sim.task_count++];
		task->base_ns = (uint64_t)(uniform() * 10 * MS);
		task->next_ns = task->base_ns;
	}
}

static void arrive(uint32_t number)
{
	struct task *task = &sim.tasks[number];
	struct k2_thread thread;
	uint64_t blocked_ns = 0;

	task->waits = true;
	task->arrival_ns = sim.now_ns;
	thread = (struct k2_thread){number + 1, number + 1, RT_LEVEL, false};
	task->number = k2_lookahead_rt_arrival(&sim.ahead, &thread, sim.now_ns);
	for (uint32_t i = 0; i < sim.depth; i++) {
		const struct command *command = &sim.commands[i];

		if (command->is_used && command->task < 0 &&
		    command->end_ns > sim.now_ns + blocked_ns)
			blocked_ns = command->end_ns - sim.now_ns;
	}
	/* A thread's first request finds it unknown. */
	if (!task->turn)
		return;
	sim.arrivals++;
	sim.blocked[blocked_ns < BLOCKED_STEPS * STEP_NS ? blocked_ns / STEP_NS
							 : BLOCKED_STEPS - 1]++;
	/* What a stall of the card adds is not the policy's. */
	sim.over += blocked_ns > (sim.run->bound_us + sim.run->pause_us) * US;
	if (blocked_ns > sim.blocked_ns_max)
		sim.blocked_ns_max = blocked_ns;
}

static void end(struct command *command)
{
	bool is_rt = command->task >= 0;

	if (command->flight != K2_FLIGHT_NONE)
		k2_lookahead_done(&sim.ahead, command->flight, sim.now_ns);
	command->is_used = false;
	sim.policy.inflight[is_rt ? K2_CLASS_RT : K2_CLASS_BACKGROUND]--;
	if (is_rt) {
		struct task *task = &sim.tasks[command->task];

		k2_lookahead_rt_end(&sim.ahead, task->number, sim.now_ns);
		task->waits = task->is_served = false;
		task->next_ns = next_arrival(task);
		if (task->next_ns < sim.now_ns)
			task->next_ns = sim.now_ns;
		return;
	}
	sim.background[command->background].is_served = false;
	if (sim.now_ns > WARM_NS)
		sim.background_bytes += command->bytes;
}

/* Returns the command with as much as may go now, NULL if nothing may. */
static struct command *dispatch(uint32_t queue, bool write, uint64_t sector, uint32_t bytes)
{
	struct k2_offer offer = {
		.queue = queue,
		.op = write,
		.bytes = bytes,
		.block_bytes = K2_PIECE_MIN,
		.may_split = true,
	};
	struct k2_decision decision = k2_decide(&sim.ahead, &sim.policy, &offer, sim.now_ns);
	uint32_t inflight = k2_policy_inflight(&sim.policy);
	struct command *command = sim.commands;

	if (!decision.bytes) {
		sim.hold_until_ns = decision.hold_until_ns ?: K2_NEVER;
		return NULL;
	}
	while (command->is_used)
		command++;
	*command = (struct command){
		.is_used = true,
		.task = -1,
		.bytes = decision.bytes,
		.flight = K2_FLIGHT_NONE,
		.end_ns = card_command(write, sector, decision.bytes, sim.now_ns),
	};
	if (decision.is_watched)
		command->flight = k2_lookahead_watch(&sim.ahead, k2_guarded_level(queue), write,
						     decision.bytes, inflight, sim.now_ns);
	else
		command->flight =
			k2_lookahead_unwatched(&sim.ahead, k2_guarded_level(queue), sim.now_ns);
	sim.policy.inflight[k2_policy_class(queue)]++;
	return command;
}

static bool dispatch_rt(void)
{
	struct task *first = NULL;

	for (uint32_t i = 0; i < sim.task_count; i++) {
		struct task *task = &sim.tasks[i];

		if (task->waits && !task->is_served &&
		    (!first || task->arrival_ns < first->arrival_ns))
			first = task;
	}
	if (!first)
		return false;
	first->is_served = true;
	dispatch(RT_LEVEL, false, random_sector(), first->stream.kib << 10)->task =
		(int)(first - sim.tasks);
	return true;
}

/* A split request goes on first. */
static struct background *next_background(void)
{
	struct background *found = NULL;

	for (uint32_t i = 0; i < sim.background_count; i++) {
		struct background *one = &sim.background[(sim.turn + i) % sim.background_count];

		if (one->is_served)
			continue;
		if (one->left_bytes)
			return one;
		if (!found)
			found = one;
	}
	return found;
}

static bool dispatch_background(void)
{
	struct background *background = next_background();
	struct command *command;

	if (!background)
		return false;
	if (!background->left_bytes)
		*background = (struct background){random_sector(), BACKGROUND_BYTES, false};
	command = dispatch(K2_QUEUE_BEST_EFFORT, sim.run->writes, background->sector,
			   background->left_bytes);
	if (!command)
		return false;
	command->background = (uint32_t)(background - sim.background);
	background->is_served = true;
	background->left_bytes -= command->bytes;
	background->sector += command->bytes >> 9;
	sim.turn = command->background + 1;
	return true;
}

/* Makes the next thing happen. */
static void step(void)
{
	struct command *first = NULL;
	uint32_t next = TASKS_MAX;
	uint64_t event_ns;

	for (uint32_t i = 0; i < sim.depth; i++) {
		struct command *command = &sim.commands[i];

		if (command->is_used && (!first || command->end_ns < first->end_ns))
			first = command;
	}
	for (uint32_t i = 0; i < sim.task_count; i++)
		if (!sim.tasks[i].waits &&
		    (next == TASKS_MAX || sim.tasks[i].next_ns < sim.tasks[next].next_ns))
			next = i;
	event_ns = first ? first->end_ns : K2_NEVER;
	if (sim.hold_until_ns < event_ns) {
		first = NULL;
		event_ns = sim.hold_until_ns;
	}
	if (next < TASKS_MAX && sim.tasks[next].next_ns < event_ns) {
		if (sim.tasks[next].next_ns > sim.now_ns)
			sim.now_ns = sim.tasks[next].next_ns;
		arrive(next);
	} else {
		sim.now_ns = event_ns;
		if (first)
			end(first);
	}
	sim.hold_until_ns = K2_NEVER;
	while (k2_policy_inflight(&sim.policy) < sim.depth &&
	       (dispatch_rt() || dispatch_background()))
		;
}

/* Returns MiB/s of the background. */
static double simulate(const struct run *run, bool guarded, uint64_t seed, uint64_t length_ns)
{
	begin(run, guarded, seed);
	while (sim.now_ns < WARM_NS + length_ns)
		step();
	return (double)sim.background_bytes / (1 << 20) / ((double)length_ns / S);
}

#define EVERY(ms, jitter)                                                                          \
	{                                                                                          \
		{                                                                                  \
			PERIODIC, (ms)*1000, jitter, 64                                            \
		}                                                                                  \
	}
#define PLAIN(pattern, us, jitter)                                                                 \
	{                                                                                          \
		{                                                                                  \
			pattern, us, jitter, 64                                                    \
		}                                                                                  \
	}

static const struct run runs[] = {
	{"every 5 ms +-0.2", EVERY(5, 200), 440, 1, false, 0, 0.83, 160},
	{"every 10 ms +-0.2", EVERY(10, 200), 440, 1, false, 0, 0.94, 130},
	{"every 10 ms +-1", EVERY(10, 1000), 440, 1, false, 0, 0.78, 0},
	{"every 33 ms +-0.2", EVERY(33, 200), 440, 1, false, 0, 0.97, 160},
	{"every 100 ms +-0.2", EVERY(100, 200), 440, 1, false, 0, 0.98, 180},
	{"every 5 ms +-0.2", EVERY(5, 200), 1000, 1, false, 0, 0.87, 0},
	{"every 10 ms +-1", EVERY(10, 1000), 1000, 1, false, 0, 0.93, 0},
	{"thinks 9 ms +-0.2", PLAIN(THINK, 9000, 200), 440, 1, false, 0, 0.93, 0},
	{"sporadic, 5 ms at least", PLAIN(SPORADIC, 5000, 0), 440, 1, false, 0, 0.5, 0},
	{"Poisson, 10 ms", PLAIN(POISSON, 10000, 0), 440, 1, false, 0, 0.25, 0},
	{"Poisson, 10 ms", PLAIN(POISSON, 10000, 0), 1000, 1, false, 0, 0.8, 0},
	{"on 1 s, off 2 s", PLAIN(ON_OFF, 10000, 200), 440, 1, false, 0, 0.88, 0},
	{"bursts of 4 every 20 ms", PLAIN(BURST, 20000, 200), 440, 1, false, 0, 0.78, 0},
	{"back to back", PLAIN(BACK_TO_BACK, 0, 0), 440, 1, false, 0, 0.04, 0},
	{"back to back", PLAIN(BACK_TO_BACK, 0, 0), 1000, 1, false, 0, 0.34, 0},
	{"every 10, 33 and 100 ms",
	 {{PERIODIC, 10000, 200, 64}, {PERIODIC, 33000, 200, 64}, {PERIODIC, 100000, 200, 64}},
	 440,
	 1,
	 false,
	 0,
	 0.88,
	 0},
	{"5 streams every 20 ms",
	 {{PERIODIC, 20000, 200, 64},
	  {PERIODIC, 20000, 200, 64},
	  {PERIODIC, 20000, 200, 64},
	  {PERIODIC, 20000, 200, 64},
	  {PERIODIC, 20000, 200, 64}},
	 440,
	 1,
	 false,
	 0,
	 0.85,
	 0},
	{"every 10 ms, 4 in flight", EVERY(10, 200), 440, 4, false, 0, 0.86, 0},
	{"every 10 ms, 32 in flight", EVERY(10, 200), 440, 32, false, 0, 0.85, 0},
	{"every 10 ms, 2 in flight", EVERY(10, 200), 1000, 2, false, 0, 0.93, 0},
	{"every 10 ms, 32 in flight", EVERY(10, 200), 1000, 32, false, 0, 0.88, 0},
	{"back to back, 32 in flight", PLAIN(BACK_TO_BACK, 0, 0), 1000, 32, false, 0, 0.33, 0},
	{"back to back, 32 in flight", PLAIN(BACK_TO_BACK, 0, 0), 2000, 32, false, 0, 0.6, 0},
	{"two back to back, 32 in flight",
	 {{BACK_TO_BACK, 0, 0, 64}, {BACK_TO_BACK, 0, 0, 64}},
	 4000,
	 32,
	 false,
	 0,
	 0.4,
	 0},
	{"beside writes", EVERY(10, 200), 1000, 1, true, 0, 0.9, 0},
	{"beside writes and pauses", EVERY(10, 200), 1000, 1, true, PAUSE_US, 0.9, 0},
	{"beside writes and pauses", PLAIN(POISSON, 10000, 0), 2000, 1, true, PAUSE_US, 0.55, 0},
	{"beside writes, 4 in flight", EVERY(10, 200), 2000, 4, true, 0, 0.76, 0},
	{"beside writes and pauses, 4 in flight", EVERY(10, 200), 2000, 4, true, PAUSE_US, 0.75, 0},
	{"beside writes and pauses, 32 in flight", EVERY(10, 200), 2000, 32, true, PAUSE_US, 0.68,
	 0},
};

static uint64_t blocked_quantile_us(uint64_t percent)
{
	uint64_t left = sim.arrivals * percent / 100, step = 0;

	while (sim.blocked[step] <= left && step + 1 < BLOCKED_STEPS)
		left -= sim.blocked[step++];
	return step * STEP_NS / US;
}

#define SEEDS  3
#define LENGTH (100 * S)

static bool check(const struct run *run)
{
	double unguarded = simulate(run, false, 1, LENGTH), share = 0;
	uint64_t arrivals = 0, over = 0, blocked_ns_max = 0, p99_us = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		share += simulate(run, true, seed, LENGTH) / unguarded / SEEDS;
		arrivals += sim.arrivals;
		over += sim.over;
		if (blocked_quantile_us(99) > p99_us)
			p99_us = blocked_quantile_us(99);
		if (sim.blocked_ns_max > blocked_ns_max)
			blocked_ns_max = sim.blocked_ns_max;
	}
	uint64_t rare = run->depth > 1 ? RARE_PER_MILLION_QUEUE : RARE_PER_MILLION;
	uint64_t p99_us_max = run->p99_us_max ?: run->bound_us + run->pause_us;
	bool held = share >= run->share_min && over * 1000000 <= rare * arrivals &&
		    p99_us <= p99_us_max;

	printf("%s policy: lookahead: %s, bound %" PRIu32 " us: background %.1f %% of %.1f MiB/s, "
	       "%" PRIu64 " of %" PRIu64 " blocked for longer, p99 %" PRIu64 ", %.0f us at most\n",
	       held ? "ok  " : "FAIL", run->name, run->bound_us, 100 * share, unguarded, over,
	       arrivals, p99_us, (double)blocked_ns_max / US);
	return held;
}

/* The learned time of a command that took 5 ms, because it waited for another or by itself. */
static uint64_t learned_ns(bool waited)
{
	struct k2_lookahead ahead;
	uint32_t flight;

	k2_lookahead_init(&ahead);
	flight = k2_lookahead_watch(&ahead, K2_RT_LEVELS, 0, K2_PIECE_MIN, 0, S);
	if (waited)
		k2_lookahead_bypassed(&ahead, K2_RT_LEVELS, S, S + 4 * MS);
	k2_lookahead_done(&ahead, flight, S + 5 * MS);
	return k2_device_time_ns(&ahead.device, 0, K2_PIECE_MIN);
}

static bool learns_from_what_did_not_wait(void)
{
	bool held = learned_ns(false) >= 5 * MS && learned_ns(true) == 0;

	printf("%s policy: lookahead: learns_from_what_did_not_wait\n", held ? "ok  " : "FAIL");
	return held;
}

int main(void)
{
	int status = learns_from_what_did_not_wait() ? EXIT_SUCCESS : EXIT_FAILURE;

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		if (!check(&runs[i]))
			status = EXIT_FAILURE;
	return status;
}
