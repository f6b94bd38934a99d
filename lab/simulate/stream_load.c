// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Real-time threads with all kinds of arrivals next to a background that never pauses, on a card,
 * with k2's policy, without a kernel. Measures the times of the requests and the throughput of the
 * background.
 *
 * The card is the lab's flash model, the decisions are those of kernel/policy (scheduler.c). A
 * thread has one request at a time; where it is late, it catches up. Prints one line of JSON.
 *
 * By hand: make -C lab/simulate, then build/simulate/stream_load [NAME=NUMBER]... [thread
 * [NAME=NUMBER]...]..., with the numbers of the card (card.c) and those below. Numbers after the
 * word thread belong to that thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler.h"

#define US_NS	    1000ULL
#define MS_NS	    1000000ULL
#define SECOND_NS   1000000000ULL
#define KIB	    1024U
#define THREADS_MAX 64
#define DEPTH_MAX   256
#define SECTORS	    4194304ULL
/* Process numbers of the background. */
#define BACKGROUND_PROCESS 1000000U

static struct {
	u64 inflight_max, split_kib, rt_block_us, host_us;
	u64 bg_write, bg_kib, bg_depth;
	u64 warm_ms, seconds, load_seed;
} load = {
	.inflight_max = 1,
	.rt_block_us = 440,
	.bg_kib = 512,
	.bg_depth = 1,
	.seconds = 60,
	.load_seed = 1,
};

struct thread_numbers {
	u64 write, level, kib, process;
	u64 period_us, jitter_us; /* a grid, and the largest deviation from a place */
	u64 drift_ppm, period2_us, period2_at_ms;
	u64 think_us, think_jitter_us; /* instead: from an end to the next request */
	u64 poisson_us; /* mean of a random gap, after min_us */
	u64 min_us;
	u64 burst; /* requests one after the other at each place */
	u64 on_ms, off_ms;
	u64 late_us, late_every_ms, late_skips; /* how late it is, and how often */
	u64 life_ms, dead_us; /* how long a thread lives, and the time to the next one */
	u64 threads; /* this many threads take turns; 0: there is one */
	u64 start_ms, stop_ms;
};

static struct thread {
	struct thread_numbers number;
	struct request request;
	double grid_ns; /* the place of the next request */
	u64 due_ns; /* when it comes */
	u64 from_ns; /* when the one at the device came */
	u64 late_at_ns, born_ns;
	u64 burst_left;
	u64 count; /* of requests */
	u64 lives;
	bool is_waiting; /* for the device */
	u64 *latency_ns;
	u64 samples, room;
} threads[THREADS_MAX];

static u32 thread_count;
static struct request background[DEPTH_MAX];
static u64 now_ns, random_state, background_bytes, background_ns_max;

static u64 below(u64 limit)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth */
	return limit ? (random_state >> 32) % limit : 0;
}

static double uniform(void)
{
	return ((double)below(1ULL << 31) + 1) / (1ULL << 31);
}

static double spread_ns(u64 jitter_us)
{
	return (2 * uniform() - 1) * (double)(jitter_us * US_NS);
}

/* -ln(x) for 0 < x <= 1, without the math library. */
static double minus_ln(double x)
{
	double y = 0, term, power, ratio;

	while (x < 0.5) {
		x *= 2;
		y += 0.69314718055994530942;
	}
	ratio = (1 - x) / (1 + x);
	power = ratio;
	for (int i = 1; i < 40; i += 2) {
		term = 2 * power / i;
		y += term;
		power *= ratio * ratio;
	}
	return y;
}

static double exponential_ns(u64 mean_us)
{
	return minus_ln(uniform()) * (double)(mean_us * US_NS);
}

static u64 period_us(const struct thread_numbers *number)
{
	if (number->period2_us && now_ns >= number->period2_at_ms * MS_NS)
		return number->period2_us;
	return number->period_us;
}

/* Moves to the next place that is not in a pause. */
static void leave_pause(struct thread *thread, double *place_ns)
{
	double cycle_ns = (double)((thread->number.on_ms + thread->number.off_ms) * MS_NS);
	double into_ns;

	if (!thread->number.off_ms)
		return;
	into_ns = *place_ns - cycle_ns * (double)(u64)(*place_ns / cycle_ns);
	if (into_ns <= (double)(thread->number.on_ms * MS_NS))
		return;
	thread->grid_ns += cycle_ns - into_ns;
	*place_ns += cycle_ns - into_ns;
}

static void plan_late(struct thread *thread)
{
	struct thread_numbers *number = &thread->number;

	if (!number->late_us || now_ns < thread->late_at_ns)
		return;
	thread->late_at_ns = now_ns + number->late_every_ms * MS_NS;
	if (thread->due_ns < now_ns)
		thread->due_ns = now_ns;
	thread->due_ns += number->late_us * US_NS;
	while (number->late_skips &&
	       thread->grid_ns + (double)(period_us(number) * US_NS) < (double)thread->due_ns)
		thread->grid_ns += (double)(period_us(number) * US_NS);
}

/* A thread ends, and the next one starts. */
static void plan_life(struct thread *thread)
{
	struct thread_numbers *number = &thread->number;

	if (!number->life_ms || now_ns < thread->born_ns + number->life_ms * MS_NS)
		return;
	thread->born_ns = now_ns + number->dead_us * US_NS;
	thread->grid_ns = (double)thread->born_ns + (double)MS_NS;
	thread->due_ns = (u64)thread->grid_ns;
	thread->lives++;
}

static void plan_next(struct thread *thread)
{
	struct thread_numbers *number = &thread->number;
	double place_ns;

	if (thread->burst_left) {
		thread->due_ns = now_ns;
		return;
	}
	if (number->think_us) {
		thread->due_ns = now_ns + (u64)((double)(number->think_us * US_NS) +
						spread_ns(number->think_jitter_us));
	} else {
		double gap_ns = (double)(period_us(number) * US_NS);

		if (number->poisson_us)
			gap_ns = (double)(number->min_us * US_NS) +
				 exponential_ns(number->poisson_us);
		thread->grid_ns += gap_ns * (1 + (double)number->drift_ppm / 1000000);
		place_ns = thread->grid_ns + spread_ns(number->jitter_us);
		leave_pause(thread, &place_ns);
		thread->due_ns = place_ns > 0 ? (u64)place_ns : 0;
	}
	plan_late(thread);
	plan_life(thread);
	if (thread->due_ns < now_ns)
		thread->due_ns = now_ns;
}

static u64 random_sector(u32 bytes)
{
	u64 sectors = bytes / 512;

	return below(SECTORS / sectors) * sectors;
}

/* Each life is a new thread, and so is each turn in a pool. */
static u32 key_of(const struct thread *thread)
{
	u32 number = (u32)(thread - threads) + 1;
	u64 turn = thread->lives;

	if (thread->number.threads)
		turn = thread->count % thread->number.threads;
	return number + THREADS_MAX * (u32)turn;
}

static void submit(struct thread *thread)
{
	struct thread_numbers *number = &thread->number;

	thread->request = (struct request){
		.command = {.op = number->write ? CARD_WRITE : CARD_READ,
			    .sector = random_sector((u32)number->kib * KIB),
			    .bytes = (u32)number->kib * KIB},
		.queue = (u32)number->level,
		.process = key_of(thread),
		.group = (u32)number->process,
		.may_split = true,
		.declared = K2_DECLARED_NONE,
		.owner = (u32)(thread - threads),
	};
	if (!thread->burst_left)
		thread->burst_left = number->burst;
	thread->burst_left--;
	thread->from_ns = now_ns;
	thread->is_waiting = true;
	thread->count++;
	scheduler_insert(&thread->request, now_ns);
}

static void submit_background(struct request *request)
{
	u32 bytes = (u32)load.bg_kib * KIB;

	*request = (struct request){
		.command = {.op = load.bg_write ? CARD_WRITE : CARD_READ,
			    .sector = random_sector(bytes),
			    .bytes = bytes},
		.queue = K2_QUEUE_IDLE,
		.process = BACKGROUND_PROCESS,
		.may_split = true,
		.declared = K2_DECLARED_NONE,
		.owner = THREADS_MAX,
		.from_ns = now_ns,
	};
	scheduler_insert(request, now_ns);
}

static bool is_measured(void)
{
	return now_ns >= load.warm_ms * MS_NS;
}

static void note_latency(struct thread *thread)
{
	if (!is_measured())
		return;
	if (thread->samples == thread->room) {
		thread->room = 2 * thread->room + 1024;
		thread->latency_ns = realloc(thread->latency_ns, thread->room * sizeof(u64));
		if (!thread->latency_ns)
			abort();
	}
	thread->latency_ns[thread->samples++] = now_ns - thread->from_ns;
}

static void finish(struct request *request)
{
	struct thread *thread;

	if (request->owner == THREADS_MAX) {
		if (is_measured()) {
			background_bytes += load.bg_kib * KIB;
			if (now_ns - request->from_ns > background_ns_max)
				background_ns_max = now_ns - request->from_ns;
		}
		submit_background(request);
		return;
	}
	thread = &threads[request->owner];
	thread->is_waiting = false;
	note_latency(thread);
	plan_next(thread);
}

static bool is_over(const struct thread *thread)
{
	return thread->number.stop_ms && now_ns >= thread->number.stop_ms * MS_NS;
}

static u64 step(void)
{
	u64 next_ns;
	struct request *request;

	while ((request = scheduler_ended(now_ns)))
		finish(request);
	for (u32 i = 0; i < thread_count; i++)
		if (!threads[i].is_waiting && threads[i].due_ns <= now_ns && !is_over(&threads[i]))
			submit(&threads[i]);
	scheduler_dispatch(now_ns);
	next_ns = scheduler_next_ns();
	for (u32 i = 0; i < thread_count; i++)
		if (!threads[i].is_waiting && !is_over(&threads[i]) && threads[i].due_ns < next_ns)
			next_ns = threads[i].due_ns;
	return next_ns;
}

static void run(void)
{
	u64 end_ns = load.warm_ms * MS_NS + load.seconds * SECOND_NS;

	for (u32 i = 0; i < thread_count; i++) {
		struct thread *thread = &threads[i];

		thread->grid_ns =
			(double)(thread->number.start_ms * MS_NS) + 1.37e6 * (double)(i + 1);
		thread->due_ns = (u64)thread->grid_ns;
		thread->born_ns = thread->due_ns;
		thread->late_at_ns = thread->due_ns + thread->number.late_every_ms * MS_NS;
	}
	for (u32 i = 0; i < load.bg_depth; i++)
		submit_background(&background[i]);
	while (now_ns < end_ns)
		now_ns = step();
}

static int compare(const void *left, const void *right)
{
	u64 a = *(const u64 *)left, b = *(const u64 *)right;

	return a < b ? -1 : a > b;
}

static double quantile_ms(const struct thread *thread, double part)
{
	u64 number = (u64)((double)thread->samples * part);

	if (!thread->samples)
		return 0;
	if (number >= thread->samples)
		number = thread->samples - 1;
	return (double)thread->latency_ns[number] / MS_NS;
}

static void print_results(void)
{
	printf("{\"bg_mib_s\": %.2f, \"bg_ms_max\": %.1f, \"over\": %lu, \"unguarded\": %lu, "
	       "\"blocked_ms_max\": %.3f, "
	       "\"threads\": [",
	       (double)background_bytes / 1048576 / (double)load.seconds,
	       (double)background_ns_max / MS_NS, scheduler_policy()->rt_blocked_over_count,
	       scheduler_policy()->rt_unguarded_count,
	       (double)scheduler_policy()->rt_blocked_ns_max / MS_NS);
	for (u32 i = 0; i < thread_count; i++) {
		struct thread *thread = &threads[i];

		qsort(thread->latency_ns, thread->samples, sizeof(u64), compare);
		printf("%s{\"count\": %lu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f, "
		       "\"max_ms\": %.3f}",
		       i ? ", " : "", thread->samples, quantile_ms(thread, 0.5),
		       quantile_ms(thread, 0.99), quantile_ms(thread, 0.999),
		       quantile_ms(thread, 1));
	}
	printf("]}\n");
}

#define LOAD(name)                                                                                 \
	{                                                                                          \
#name, &load.name                                                                  \
	}

static const struct {
	const char *name;
	u64 *value;
} load_numbers[] = {
	LOAD(inflight_max),
	LOAD(split_kib),
	LOAD(rt_block_us),
	LOAD(host_us),
	LOAD(bg_write),
	LOAD(bg_kib),
	LOAD(bg_depth),
	LOAD(warm_ms),
	LOAD(seconds),
	LOAD(load_seed),
	{},
};

#define THREAD(name)                                                                               \
	{                                                                                          \
#name, offsetof(struct thread_numbers, name)                                       \
	}

static const struct {
	const char *name;
	size_t offset;
} thread_numbers[] = {
	THREAD(write),
	THREAD(level),
	THREAD(kib),
	THREAD(process),
	THREAD(period_us),
	THREAD(jitter_us),
	THREAD(drift_ppm),
	THREAD(period2_us),
	THREAD(period2_at_ms),
	THREAD(think_us),
	THREAD(think_jitter_us),
	THREAD(poisson_us),
	THREAD(min_us),
	THREAD(burst),
	THREAD(on_ms),
	THREAD(off_ms),
	THREAD(late_us),
	THREAD(late_every_ms),
	THREAD(late_skips),
	THREAD(life_ms),
	THREAD(dead_us),
	THREAD(threads),
	THREAD(start_ms),
	THREAD(stop_ms),
	{},
};

static u64 *find_number(const char *name, size_t length)
{
	struct thread *thread = thread_count ? &threads[thread_count - 1] : NULL;

	for (size_t i = 0; thread && thread_numbers[i].name; i++)
		if (strlen(thread_numbers[i].name) == length &&
		    !strncmp(thread_numbers[i].name, name, length))
			return (u64 *)((char *)&thread->number + thread_numbers[i].offset);
	for (size_t i = 0; !thread && load_numbers[i].name; i++)
		if (strlen(load_numbers[i].name) == length &&
		    !strncmp(load_numbers[i].name, name, length))
			return load_numbers[i].value;
	if (thread)
		return NULL;
	return (u64 *)card_number(name, length);
}

static bool take_argument(const char *argument)
{
	const char *equals = strchr(argument, '=');
	u64 *value;
	char *end;

	if (!strcmp(argument, "thread")) {
		if (thread_count == THREADS_MAX)
			return false;
		threads[thread_count++].number =
			(struct thread_numbers){.kib = 64, .burst = 1, .process = thread_count + 1};
		return true;
	}
	value = equals ? find_number(argument, (size_t)(equals - argument)) : NULL;
	if (!value)
		return false;
	*value = strtoull(equals + 1, &end, 10);
	return *end == 0 && end > equals + 1;
}

int main(int count, char **arguments)
{
	struct scheduler_settings settings;

	for (int i = 1; i < count; i++)
		if (!take_argument(arguments[i])) {
			fprintf(stderr, "stream_load: %s: not NAME=NUMBER of a known name\n",
				arguments[i]);
			return 2;
		}
	if (load.bg_depth > DEPTH_MAX || !load.bg_kib || !load.seconds) {
		fprintf(stderr, "stream_load: bg_depth is 0 to %d, bg_kib and seconds are not 0\n",
			DEPTH_MAX);
		return 2;
	}
	random_state = load.load_seed * 7919;
	settings = (struct scheduler_settings){
		.inflight_max = (u32)load.inflight_max,
		.split_kib = (u32)load.split_kib,
		.rt_block_us = (u32)load.rt_block_us,
		.host_ns = load.host_us * US_NS,
	};
	if (!card_begin(load.load_seed) || !scheduler_begin(&settings)) {
		fprintf(stderr, "stream_load: a number is out of range\n");
		return 2;
	}
	run();
	print_results();
	return 0;
}
