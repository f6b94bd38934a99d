// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The cost of k2's decisions per request on this machine's clock, next to a plain counter of queued
 * requests for the same steps. Virtual time cannot show this. Called by scripts/bench with the
 * number of requests per round; prints the spread over the rounds, since machines are noisy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../policy/clocked.h"

#define ROUNDS	    15
#define BLOCK_BYTES 512

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

/* Alternating one by one, no class waits for the other: the clock is not asked. */
static u64 clock_ns(void)
{
	abort();
}

/* One request: queue, choose, dispatch, complete. Alternates real-time and background. */
static void policy_step(struct k2_policy *policy, unsigned long i)
{
	u32 queue = i & 1 ? K2_QUEUE_BEST_EFFORT : i & 7;

	insert(policy, queue);
	queue = next_queue(policy);
	if (queue == K2_QUEUE_NONE)
		abort();
	if (k2_policy_piece_bytes(policy, queue, 524288, BLOCK_BYTES) > 524288)
		abort();
	dispatch(policy, queue);
	complete(policy, queue);
}

static volatile u32 queued, inflight;

static void counter_step(unsigned long i)
{
	(void)i;
	queued++;
	queued--;
	inflight++;
	inflight--;
}

static double policy_round_ns(unsigned long requests)
{
	struct k2_policy policy;
	double start_ns = now_ns();
	unsigned long i;

	k2_policy_init(&policy, 1);
	for (i = 0; i < requests; i++)
		policy_step(&policy, i);
	if (!k2_policy_idle(&policy) || !k2_policy_balanced(&policy))
		abort();
	return (now_ns() - start_ns) / requests;
}

static double counter_round_ns(unsigned long requests)
{
	double start_ns = now_ns();
	unsigned long i;

	for (i = 0; i < requests; i++)
		counter_step(i);
	return (now_ns() - start_ns) / requests;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double report(const char *name, double *rounds_ns)
{
	qsort(rounds_ns, ROUNDS, sizeof(*rounds_ns), compare);
	printf("%-16s %8.1f %8.1f %8.1f\n", name, rounds_ns[0], rounds_ns[ROUNDS / 2],
	       rounds_ns[ROUNDS - 1]);
	return rounds_ns[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	unsigned long requests = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	double policy_ns[ROUNDS], counter_ns[ROUNDS];
	unsigned int i;

	if (requests == 0) {
		fprintf(stderr, "usage: policy REQUESTS_PER_ROUND (at least 1)\n");
		return 2;
	}
	for (i = 0; i < ROUNDS; i++) {
		policy_ns[i] = policy_round_ns(requests);
		counter_ns[i] = counter_round_ns(requests);
	}
	printf("%-16s %8s %8s %8s   ns per request, %d rounds of %lu\n", "", "min", "median", "max",
	       ROUNDS, requests);
	printf("ratio of medians %.1f\n",
	       report("k2 policy", policy_ns) / report("plain counters", counter_ns));
	return 0;
}
