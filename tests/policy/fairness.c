// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What background_wait_ms_max promises, on a simulated device that serves one request at a time
 * (inflight_max 1), for random streams of real-time and background. With W the knob, R the longest
 * real-time request and P the longest background piece:
 *
 *   background	has something queued and nothing in the device for at most W + R;
 *   real-time	waits at most I + P * (1 + I / W, rounded down), where I is the time the device spends
 *		on other real-time while it waits.
 *
 * Both are checked for each request, not on average. The first violation ends the run and names
 * the command that repeats it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clocked.h"

#define NS_PER_MS     1000000ULL
#define RT_QUEUED_MAX 8
#define RUN_NS	      (2000 * NS_PER_MS)
#define SEEDS_DEFAULT 300

struct rt_request {
	u64 arrival_ns;
	u64 rt_served_ns; /* of the device, when it arrived */
};

struct simulation {
	struct k2_policy policy;
	u64 wait_ns_max; /* the knob */
	u64 piece_ns_max, rt_ns_max;
	u64 rt_served_ns; /* time the device spent on real-time so far */

	/* Real-time that waits, per level in the order of arrival. */
	struct rt_request waiting[K2_RT_LEVELS][RT_QUEUED_MAX];
	u64 background_since_ns; /* queued and not in the device since */
	u64 rt_percent; /* how likely another real-time request comes along */
};

static u64 now_ns;
static uint64_t random_state;
static uint64_t seed;

static u64 clock_ns(void)
{
	return now_ns;
}

static u64 random_below(u64 bound)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return ((random_state * 0x2545f4914f6cdd1dULL) >> 20) % bound;
}

static void at_most(const char *what, u64 value, u64 limit)
{
	if (value <= limit)
		return;
	printf("FAIL policy: fairness: seed %" PRIu64 ": %s is %" PRIu64 ", bound %" PRIu64 "\n"
	       "replay: build/tests/policy/fairness %" PRIu64 "\n",
	       seed, what, value, limit, seed);
	exit(EXIT_FAILURE);
}

static void insert_rt(struct simulation *sim)
{
	u32 level = (u32)random_below(K2_RT_LEVELS);
	u32 queued = sim->policy.queued[level];

	if (queued == RT_QUEUED_MAX)
		return;
	sim->waiting[level][queued] = (struct rt_request){now_ns, sim->rt_served_ns};
	insert(&sim->policy, level);
}

static u32 background_queued(const struct simulation *sim)
{
	return sim->policy.queued[K2_QUEUE_METADATA] + sim->policy.queued[K2_QUEUE_BEST_EFFORT];
}

static void insert_background(struct simulation *sim)
{
	if (background_queued(sim) == 0)
		sim->background_since_ns = now_ns;
	insert(&sim->policy, random_below(2) ? K2_QUEUE_METADATA : K2_QUEUE_BEST_EFFORT);
}

/* Called at the start of a service, the worst time to come, and when the device is idle. */
static void arrivals(struct simulation *sim)
{
	while (random_below(100) < sim->rt_percent)
		insert_rt(sim);
	if (background_queued(sim) < 4 && random_below(2))
		insert_background(sim);
}

static void serve_rt(struct simulation *sim, u32 level)
{
	struct rt_request request = sim->waiting[level][0];
	u64 others_ns = sim->rt_served_ns - request.rt_served_ns;
	u64 pieces = 1 + others_ns / sim->wait_ns_max;
	u64 service_ns = 1 + random_below(sim->rt_ns_max);

	at_most("a real-time wait (ns)", now_ns - request.arrival_ns,
		others_ns + pieces * sim->piece_ns_max);
	dispatch(&sim->policy, level);
	for (u32 i = 0; i < sim->policy.queued[level]; i++)
		sim->waiting[level][i] = sim->waiting[level][i + 1];
	arrivals(sim);
	now_ns += service_ns;
	sim->rt_served_ns += service_ns;
	complete(&sim->policy, level);
}

static void serve_background(struct simulation *sim, u32 queue)
{
	at_most("a wait of background (ns)", now_ns - sim->background_since_ns,
		sim->wait_ns_max + sim->rt_ns_max);
	dispatch(&sim->policy, queue);
	arrivals(sim);
	now_ns += 1 + random_below(sim->piece_ns_max);
	if (random_below(16))
		give_back(&sim->policy, queue, K2_BACK_REST);
	else
		complete(&sim->policy, queue);
	sim->background_since_ns = now_ns;
}

/* Returns how often background went before real-time. */
static u64 run(void)
{
	static struct simulation sim;
	u32 wait_ms;

	now_ns = 0;
	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	wait_ms = 1 + (u32)random_below(50);
	sim = (struct simulation){
		.wait_ns_max = wait_ms * NS_PER_MS,
		.piece_ns_max = 1 + random_below(10 * NS_PER_MS),
		.rt_ns_max = 1 + random_below(5 * NS_PER_MS),
		.rt_percent = random_below(80),
	};
	k2_policy_init(&sim.policy, 1);
	k2_policy_set_background_wait_ms_max(&sim.policy, wait_ms);
	while (now_ns < RUN_NS) {
		u32 queue = next_queue(&sim.policy);

		if (queue == K2_QUEUE_NONE) {
			now_ns += random_below(NS_PER_MS);
			arrivals(&sim);
		} else if (k2_policy_class(queue) == K2_CLASS_BACKGROUND) {
			serve_background(&sim, queue);
		} else {
			serve_rt(&sim, queue);
		}
	}
	return sim.policy.background_forced_count;
}

int main(int argc, char **argv)
{
	u64 forced = 0;

	if (argc > 2) {
		fprintf(stderr, "usage: %s [SEED]\n", argv[0]);
		return 2;
	}
	if (argc == 2) {
		seed = strtoull(argv[1], NULL, 10);
		forced = run();
		printf("ok   policy: fairness: seed %" PRIu64 ", %" PRIu64 " pieces forced\n", seed,
		       forced);
		return EXIT_SUCCESS;
	}
	for (seed = 1; seed <= SEEDS_DEFAULT; seed++)
		forced += run();
	if (forced == 0) {
		printf("FAIL policy: fairness: nothing was ever forced, so nothing was tested\n");
		return EXIT_FAILURE;
	}
	printf("ok   policy: fairness_keeps_its_bounds (seeds 1 to %d, %" PRIu64
	       " pieces forced)\n",
	       SEEDS_DEFAULT, forced);
	return EXIT_SUCCESS;
}
