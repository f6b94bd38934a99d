// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A task set (docs/spec/tasks-1.md) on a card, with k2's policy, without a kernel. Measures the
 * longest time of its jobs.
 *
 * It searches for the worst case in many short trials. Each has other phases, jitter at its limits,
 * and a background that prefers large, small, cache-sized or short-lived requests, or none at
 * times. The card is the lab's flash model; kernel/policy decides (scheduler.c). Prints one line of
 * JSON. Called by tests/bound.
 *
 * By hand: make -C lab/simulate, then build/simulate/task_set [NAME=NUMBER]... [task
 * [NAME=NUMBER]...]..., with the numbers of the card (card.c) and those below. Numbers after the
 * word task belong to that task.
 */
#include <stdio.h>
#include <stdlib.h>

#include "scheduler.h"
#include "task_numbers.h"

#define US_NS	     1000ULL
#define MS_NS	     1000000ULL
#define KIB	     1024U
#define REQUESTS_MAX 4096
#define PROCESSES    3 /* of the background */
/* Owners of requests: tasks by number, then the background. */
#define OWNER_NONE  TASKS_MAX
#define OWNER_FLUSH (OWNER_NONE + PROCESSES)
#define SECTORS	    4194304ULL
/* Trials begin here, so that negative jitter stays above 0. */
#define BEGIN_NS (200 * MS_NS)

enum task_state {
	WAITS, /* for its release */
	COMPUTES, /* before I/Os */
	AT_IO,
	AT_FLUSH,
	FINISHES, /* computes after them */
};

static struct task {
	struct task_numbers number;
	enum task_state state;
	u64 place_ns, release_ns; /* of the next job, without and with jitter */
	u64 job_ns, io_ns; /* when this job was released, and when its I/Os began */
	u64 due_ns; /* the end of the state */
	u64 ios_left, ios_now;
	u32 parts_left;
	u64 cpu_after_ns;
	u32 declared;
	/* Results. */
	u64 jobs, job_ns_max, io_ns_max;
	u64 waited_ns_max, waited_over[K2_CAUSES], early;
} tasks[TASKS_MAX];

static struct request requests[REQUESTS_MAX], *free_requests;
static u64 now_ns, random_state;
/* Bytes that the background submits after each task's first job, and the time counted. */
static u64 background_bytes, counted_from_ns, counted_ns;

enum habit {
	LARGEST,
	ANY_SIZE,
	CACHE_SIZED,
	SMALLEST,
	HABITS
};

/* The background in this trial. */
static struct {
	bool is_on;
	enum habit habit;
	u32 queued;
	u64 toggle_every_ns, toggle_ns, flush_ns;
	/* The kernel has one flush at the card, and merges all waiting ones into the next. */
	bool flush_at_card, flush_waits;
} background;

static u64 below(u64 limit)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth */
	return limit ? (random_state >> 32) % limit : 0;
}

static u64 random_sector(void)
{
	return below(SECTORS / 8) * 8;
}

static struct request *new_request(u32 owner)
{
	struct request *request = free_requests;

	if (!request) {
		fprintf(stderr, "task_set: more than %d requests (lower bg_depth, kib, at_once)\n",
			REQUESTS_MAX);
		exit(2);
	}
	free_requests = request->next;
	*request = (struct request){
		.owner = owner,
		.process = owner + 1,
		.may_split = true,
		.declared = owner < OWNER_NONE ? tasks[owner].declared : K2_DECLARED_NONE,
	};
	return request;
}

static void free_request(struct request *request)
{
	request->next = free_requests;
	free_requests = request;
}

static void send_flush(u32 owner)
{
	struct request *request = new_request(owner);

	request->command = (struct card_command){.op = CARD_FLUSH};
	request->queue = owner < OWNER_NONE ? (u32)tasks[owner].number.level : K2_QUEUE_BEST_EFFORT;
	request->bypasses = true;
	scheduler_insert(request, now_ns);
}

/* Tasks. */

static bool is_flushed(const struct task *task)
{
	return task->number.durable && card_has_cache();
}

static u64 jitter_ns(const struct task *task)
{
	u64 most_ns = 2 * task->number.jitter_us * US_NS;

	switch (below(4)) {
	case 0:
		return 0;
	case 1:
		return most_ns;
	default:
		return below(most_ns + 1);
	}
}

static void plan_job(struct task *task, u64 more_ns)
{
	task->place_ns += task->number.period_us * US_NS + more_ns;
	task->release_ns = task->place_ns - task->number.jitter_us * US_NS + jitter_ns(task);
}

static void compute(struct task *task)
{
	u64 at_once = task->number.at_once, cpu_ns, before_ns;

	task->ios_now = at_once < task->ios_left ? at_once : task->ios_left;
	cpu_ns = task->ios_now * task->number.cpu_us * US_NS;
	before_ns = below(3) ? cpu_ns : below(cpu_ns + 1);
	task->cpu_after_ns = cpu_ns - before_ns;
	task->state = COMPUTES;
	task->due_ns = now_ns + before_ns;
}

/* The block layer splits an I/O that is larger than max_sectors_kb. */
static void send_io(struct task *task)
{
	const struct task_numbers *number = &task->number;
	u64 left_kib = number->kib, sector = random_sector();

	while (left_kib) {
		u64 kib = left_kib < load.max_sectors_kb ? left_kib : load.max_sectors_kb;
		struct request *request = new_request((u32)(task - tasks));

		request->command = (struct card_command){
			.op = number->write ? CARD_WRITE : CARD_READ,
			.sector = sector,
			.bytes = (u32)kib * KIB,
			.is_durable = is_flushed(task),
		};
		request->queue = (u32)number->level;
		request->bypasses = is_flushed(task) && load.fua_bypasses;
		task->parts_left++;
		scheduler_insert(request, now_ns);
		left_kib -= kib;
		sector += kib * 2;
	}
}

static void begin_ios(struct task *task)
{
	task->state = AT_IO;
	task->due_ns = NEVER_NS;
	task->io_ns = now_ns;
	task->parts_left = 0;
	for (u64 i = 0; i < task->ios_now; i++)
		send_io(task);
}

static void end_ios(struct task *task)
{
	if (now_ns - task->io_ns > task->io_ns_max)
		task->io_ns_max = now_ns - task->io_ns;
	task->state = FINISHES;
	task->due_ns = now_ns + task->cpu_after_ns;
}

static void end_job(struct task *task)
{
	if (now_ns - task->job_ns > task->job_ns_max)
		task->job_ns_max = now_ns - task->job_ns;
	task->jobs++;
	task->state = WAITS;
	task->due_ns = task->release_ns;
}

static void begin_job(struct task *task, bool is_sporadic)
{
	task->job_ns = task->release_ns;
	task->ios_left = task->number.ios;
	plan_job(task, is_sporadic ? below(task->number.period_us * US_NS) : 0);
	compute(task);
}

/* Does the task's due work; returns whether there was any. */
static bool run_task(struct task *task)
{
	if (task->due_ns > now_ns)
		return false;
	switch (task->state) {
	case WAITS:
		begin_job(task, !load.greedy && !below(8));
		break;
	case COMPUTES:
		begin_ios(task);
		break;
	case FINISHES:
		task->ios_left -= task->ios_now;
		if (task->ios_left)
			compute(task);
		else
			end_job(task);
		break;
	default:
		return false;
	}
	return true;
}

static void task_request_ended(struct task *task)
{
	if (task->state == AT_FLUSH) {
		end_ios(task);
		return;
	}
	if (--task->parts_left)
		return;
	if (!is_flushed(task)) {
		end_ios(task);
		return;
	}
	task->state = AT_FLUSH;
	send_flush((u32)(task - tasks));
}

/* The background. */

static u32 background_kib(enum card_op op)
{
	u32 most = (u32)(load.bg_kib < load.max_sectors_kb ? load.bg_kib : load.max_sectors_kb);
	u32 least = most < 4 ? most : 4, cache_kib = card_cache_kib();

	switch (load.greedy ? LARGEST : below(8) ? background.habit : ANY_SIZE) {
	case CACHE_SIZED:
		return op == CARD_WRITE && cache_kib && cache_kib < most ? cache_kib : most;
	case SMALLEST:
		return least;
	case ANY_SIZE:
		least += (u32)below(most / 4) * 4;
		return least < most ? least : most;
	default:
		return most;
	}
}

static struct card_command background_command(void)
{
	struct card_command command = {.op = CARD_READ, .sector = random_sector()};

	if (load.bg_discard_kib && !below(8)) {
		command.op = CARD_DISCARD;
		command.bytes = (u32)load.bg_discard_kib * KIB;
		return command;
	}
	if (load.bg_write && (!load.bg_read || below(2)))
		command.op = CARD_WRITE;
	command.bytes = background_kib(command.op) * KIB;
	/* The block layer removes FUA if the card has no cache. */
	command.is_durable = command.op == CARD_WRITE && load.bg_durable && !below(4) &&
			     card_has_cache();
	return command;
}

static void fill_background(void)
{
	while (background.is_on && background.queued < load.bg_depth &&
	       (load.bg_read || load.bg_write)) {
		struct request *request = new_request(OWNER_NONE + (u32)below(PROCESSES));

		request->command = background_command();
		request->queue = K2_QUEUE_BEST_EFFORT;
		request->may_split = !load.bg_whole && request->command.op != CARD_DISCARD;
		request->bypasses = request->command.is_durable && load.fua_bypasses;
		background.queued++;
		if (now_ns >= counted_from_ns)
			background_bytes += request->command.bytes;
		scheduler_insert(request, now_ns);
	}
}

static bool run_background(void)
{
	bool has_run = false;

	if (background.flush_waits && !background.flush_at_card) {
		background.flush_waits = false;
		background.flush_at_card = true;
		send_flush(OWNER_FLUSH);
		has_run = true;
	}
	if (background.flush_ns <= now_ns) {
		background.flush_waits = true;
		background.flush_ns = now_ns + load.bg_flush_us * US_NS;
		if (!below(3))
			background.flush_ns += below(load.bg_flush_us * US_NS);
		has_run = true;
	}
	if (background.toggle_ns <= now_ns) {
		background.is_on = !background.is_on;
		background.toggle_ns = now_ns + 1 + below(background.toggle_every_ns);
		has_run = true;
	}
	return has_run;
}

/* Trials. */

static void declare(struct task *task)
{
	const struct task_numbers *number = &task->number;
	struct k2_declaration stated = {
		.level = (u32)number->level,
		.period_ns = number->period_us * US_NS,
		.jitter_ns = number->declared_jitter_us * US_NS,
		.think_ns = number->think_us * US_NS,
		.block_ns = number->block_us * US_NS,
		.exact = (u32)number->exact,
		.is_sporadic = true,
	};

	task->declared = number->block_us ? scheduler_declare(&stated) : K2_DECLARED_NONE;
}

static void begin_declared(void)
{
	if (load.read_limit_ns)
		scheduler_limit(CARD_READ, load.read_limit_ns, load.read_limit_per_kib_ns);
	if (load.write_limit_ns)
		scheduler_limit(CARD_WRITE, load.write_limit_ns, load.write_limit_per_kib_ns);
	for (u32 i = 0; i < task_count; i++)
		declare(&tasks[i]);
}

static void begin_trial(void)
{
	static const u64 spreads_ns[] = {0, 2 * MS_NS, 20 * MS_NS};
	u64 spread_ns = spreads_ns[below(3)];

	free_requests = NULL;
	for (u32 i = 0; i < REQUESTS_MAX; i++)
		free_request(&requests[i]);
	now_ns = 0;
	for (u32 i = 0; i < task_count; i++) {
		struct task *task = &tasks[i];

		task->state = WAITS;
		task->place_ns = BEGIN_NS + below(spread_ns + 1);
		if (task->number.period_us * US_NS < task->place_ns)
			task->place_ns -= task->number.period_us * US_NS;
		plan_job(task, 0);
		task->due_ns = task->release_ns;
	}
	background = (typeof(background)){
		.is_on = true,
		.habit = (enum habit)below(HABITS),
		.toggle_every_ns = load.greedy || below(2) ? 0 : MS_NS + below(40 * MS_NS),
		.toggle_ns = NEVER_NS,
		.flush_ns = load.bg_flush_us ? below(BEGIN_NS) : NEVER_NS,
	};
	if (background.toggle_every_ns)
		background.toggle_ns = below(background.toggle_every_ns);
}

static void run_due(void)
{
	bool has_run = true;

	while (has_run) {
		struct request *request;

		has_run = run_background();
		while ((request = scheduler_ended(now_ns))) {
			if (request->owner < OWNER_NONE)
				task_request_ended(&tasks[request->owner]);
			else if (request->owner == OWNER_FLUSH)
				background.flush_at_card = false;
			else
				background.queued--;
			free_request(request);
			has_run = true;
		}
		for (u32 i = 0; i < task_count; i++)
			has_run |= run_task(&tasks[i]);
		fill_background();
		scheduler_dispatch(now_ns);
	}
}

static u64 next_ns(void)
{
	u64 next_ns = scheduler_next_ns();

	if (background.flush_ns < next_ns)
		next_ns = background.flush_ns;
	if (background.toggle_ns < next_ns)
		next_ns = background.toggle_ns;
	for (u32 i = 0; i < task_count; i++)
		if (tasks[i].due_ns < next_ns)
			next_ns = tasks[i].due_ns;
	return next_ns;
}

static u64 longest_period_ns(void)
{
	u64 longest_us = 0;

	for (u32 i = 0; i < task_count; i++)
		if (tasks[i].number.period_us > longest_us)
			longest_us = tasks[i].number.period_us;
	return longest_us * US_NS;
}

static void add_declared(struct task *task)
{
	const struct k2_declared_task *declared;

	if (task->declared == K2_DECLARED_NONE)
		return;
	declared = scheduler_declared(task->declared);
	task->early += declared->early;
	if (declared->waited_ns_max > task->waited_ns_max)
		task->waited_ns_max = declared->waited_ns_max;
	for (u32 i = 0; i < K2_CAUSES; i++)
		task->waited_over[i] += declared->waited_over[i];
}

static void run_trial(const struct scheduler_settings *settings)
{
	u64 period_ns = longest_period_ns();
	u64 end_ns = BEGIN_NS + period_ns * (load.periods + 2);

	if (!scheduler_begin(settings) || !card_begin(1 + below(1 << 30))) {
		fprintf(stderr, "task_set: a number is out of range\n");
		exit(2);
	}
	counted_from_ns = BEGIN_NS + 2 * period_ns;
	begin_trial();
	begin_declared();
	while (now_ns < end_ns) {
		run_due();
		now_ns = next_ns();
	}
	counted_ns += end_ns - counted_from_ns;
	for (u32 i = 0; i < task_count; i++)
		add_declared(&tasks[i]);
}

static void report_task(const struct task *task, const char *separator)
{
	printf("%s{\"jobs\": %llu, \"job_ns_max\": %llu, \"io_ns_max\": %llu, "
	       "\"waited_ns_max\": %llu, \"early\": %llu, \"over\": [",
	       separator, (unsigned long long)task->jobs, (unsigned long long)task->job_ns_max,
	       (unsigned long long)task->io_ns_max, (unsigned long long)task->waited_ns_max,
	       (unsigned long long)task->early);
	for (u32 i = 0; i < K2_CAUSES; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)task->waited_over[i]);
	printf("]}");
}

static void report(void)
{
	printf("{\"background_mib_s\": %.2f, \"tasks\": [",
	       (double)background_bytes / (1 << 20) / ((double)counted_ns / 1e9));
	for (u32 i = 0; i < task_count; i++)
		report_task(&tasks[i], i ? ", " : "");
	printf("]}\n");
}

int main(int argc, char **argv)
{
	struct scheduler_settings settings;

	if (!task_numbers_parse(argc, argv))
		return 2;
	for (u32 i = 0; i < task_count; i++)
		tasks[i].number = task_numbers[i];
	settings = (struct scheduler_settings){
		.inflight_max = (u32)load.inflight_max,
		.split_kib = (u32)load.split_kib,
		.rt_block_us = (u32)load.rt_block_us,
		.background_wait_ms_max = (u32)load.background_wait_ms_max,
		.host_ns = load.host_us * US_NS,
	};
	random_state = load.load_seed;
	for (u64 i = 0; i < load.trials; i++)
		run_trial(&settings);
	report();
	return 0;
}
