// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * k2's policy against a plain model of it (model.h).
 *
 * A run is a stream of random steps from one seed. After each step, everything the policy says
 * is compared with the model. The first difference ends the run and names the command that
 * repeats it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define STEPS_DEFAULT 1500
#define SEEDS_DEFAULT 100
#define BLOCK_BYTES   512

static uint64_t random_state;
static uint64_t seed;
static uint64_t step;

static u64 clock_ns(void)
{
	return now_ns;
}

/* xorshift64*, Vigna 2016: good enough, and the same on every machine. */
static u32 random_below(u32 bound)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (u32)((random_state * 0x2545f4914f6cdd1dULL) >> 33) % bound;
}

static void differ(const char *what, uint64_t policy, uint64_t model)
{
	printf("FAIL policy: property: seed %" PRIu64 ", step %" PRIu64 ": %s: policy says %" PRIu64
	       ", model says %" PRIu64 "\n"
	       "replay: build/tests/policy/property %" PRIu64 " %" PRIu64 "\n",
	       seed, step, what, policy, model, seed, step + 1);
	exit(EXIT_FAILURE);
}

static void same(const char *what, uint64_t policy, uint64_t model)
{
	if (policy != model)
		differ(what, policy, model);
}

/* A random request in @state, or NULL. */
static struct model_request *pick(struct model *model, enum state state)
{
	u32 count = count_state(model, state, 0, K2_QUEUES - 1);
	u32 chosen;

	if (count == 0)
		return NULL;
	chosen = random_below(count);
	for (u32 i = 0; i < model->count; i++) {
		if (model->requests[i].state == state && chosen-- == 0)
			return &model->requests[i];
	}
	return NULL;
}

/*
 * A process keeps to one queue while it has something there or in flight, and has it alone, as long
 * as there are enough.
 */
static void check_flow(const struct model *model, const struct model_request *request)
{
	bool shared = false, elsewhere = false;

	if (model->processes > K2_FLOWS)
		return;
	for (u32 i = 0; i + 1 < model->count; i++) {
		const struct model_request *other = &model->requests[i];

		if ((other->state != QUEUED && other->state != IN_FLIGHT) ||
		    k2_policy_group(other->queue) != K2_GROUP_BEST_EFFORT)
			continue;
		shared |= other->queue == request->queue && other->process != request->process;
		elsewhere |= other->queue != request->queue && other->process == request->process;
	}
	same("a flow is shared", shared, false);
	same("a process has two flows", elsewhere, false);
}

static u32 queue_of(struct k2_policy *policy, u16 ioprio, bool metadata, u32 process)
{
	u32 queue = k2_policy_queue(ioprio, metadata);
	u32 found;

	if (queue != K2_QUEUE_BEST_EFFORT)
		return queue;
	found = k2_policy_flow(policy, process);
	same("the flow that is found", found, k2_policy_take_flow(policy, process));
	return found;
}

static bool step_insert(struct k2_policy *policy, struct model *model)
{
	struct model_request *request;
	u32 class = random_below(4), level = random_below(8);
	u32 group;
	bool metadata = random_below(3) == 0;

	if (model->count == REQUESTS_MAX)
		return false;
	request = &model->requests[model->count++];
	*request = (struct model_request){
		.state = QUEUED,
		.process = random_below(model->processes),
		.bytes = BLOCK_BYTES * (1 + random_below(1024)),
		.order = model->order_next++,
	};
	group = class == 1   ? level
		: metadata   ? K2_GROUP_METADATA
		: class == 3 ? K2_GROUP_IDLE
			     : K2_GROUP_BEST_EFFORT;
	request->queue = queue_of(policy, (u16)(class << 13 | level), metadata, request->process);
	same("group of ioprio", k2_policy_group(request->queue), group);
	if (group == K2_GROUP_BEST_EFFORT)
		check_flow(model, request);
	insert(policy, request->queue);
	return true;
}

/* The head of @queue has just been taken off it. */
static void model_count_turns(struct model *model, u32 queue)
{
	if (queue < K2_RT_LEVELS)
		return;
	if (queue == K2_QUEUE_METADATA) {
		model->metadata_in_a_row += any(model, QUEUED, K2_QUEUE_BEST_EFFORT, K2_QUEUE_IDLE);
		return;
	}
	model->metadata_in_a_row = 0;
	if (queue == K2_QUEUE_IDLE) {
		model->best_effort_in_a_row = 0;
		model->gave_way = false;
		return;
	}
	model->flow_last = queue;
	model->best_effort_in_a_row += any(model, QUEUED, K2_QUEUE_IDLE, K2_QUEUE_IDLE);
}

static bool step_dispatch(struct k2_policy *policy, struct model *model)
{
	u32 queue = next_queue(policy);
	struct model_request *head;
	u32 piece_bytes;

	if (queue == K2_QUEUE_NONE)
		return false;
	head = head_of(model, queue);
	piece_bytes = head->bytes;
	if (queue >= K2_RT_LEVELS && model->split_bytes && model->split_bytes < piece_bytes)
		piece_bytes = model->split_bytes;
	/* A piece that the driver returned for a retry keeps its size. */
	if (head->piece_bytes == 0) {
		same("piece bytes", k2_policy_piece_bytes(policy, queue, head->bytes, BLOCK_BYTES),
		     piece_bytes);
		head->piece_bytes = piece_bytes;
	}
	head->state = IN_FLIGHT;
	head->dispatched++;
	if (queue >= K2_RT_LEVELS && count_state(model, QUEUED, 0, K2_RT_LEVELS - 1))
		model->forced_count++;
	model_count_turns(model, queue);
	dispatch(policy, queue);
	return true;
}

static void back_to_head(struct model *model, struct model_request *request)
{
	request->state = QUEUED;
	request->order = model->order_head--;
}

/* The device is done with a piece, or with all of it. */
static bool step_end(struct k2_policy *policy, struct model *model)
{
	struct model_request *request = pick(model, IN_FLIGHT);

	if (!request)
		return false;
	request->bytes -= request->piece_bytes;
	request->piece_bytes = 0;
	if (request->bytes) {
		back_to_head(model, request);
		request->rest++;
		give_back(policy, request->queue, K2_BACK_REST);
	} else {
		request->state = COMPLETED;
		complete(policy, request->queue);
	}
	return true;
}

/* An error ends a request whatever is left of it. */
static bool step_error(struct k2_policy *policy, struct model *model)
{
	struct model_request *request = pick(model, IN_FLIGHT);

	if (!request)
		return false;
	request->state = COMPLETED;
	complete(policy, request->queue);
	return true;
}

static bool step_retry(struct k2_policy *policy, struct model *model)
{
	struct model_request *request = pick(model, IN_FLIGHT);
	bool defer = random_below(2);

	if (!request)
		return false;
	back_to_head(model, request);
	if (defer) {
		request->piece_bytes = 0;
		request->deferred++;
	} else {
		request->retried++;
	}
	give_back(policy, request->queue, defer ? K2_BACK_DEFERRED : K2_BACK_RETRY);
	return true;
}

static bool step_merge(struct k2_policy *policy, struct model *model)
{
	struct model_request *request = pick(model, QUEUED);
	struct model_request *into = pick(model, QUEUED);
	u64 bytes;
	bool allowed;

	if (!request || request == into || request->queue != into->queue)
		return false;
	if (request->dispatched || into->dispatched)
		return false;
	bytes = (u64)request->bytes + into->bytes;
	allowed = request->queue >= K2_RT_LEVELS && (model->split_bytes || bytes <= 128 * 1024);
	same("may merge", k2_policy_may_merge(policy, into->queue, bytes), allowed);
	if (!allowed)
		return false;
	into->bytes += request->bytes;
	request->state = MERGED;
	merge(policy, request->queue);
	return true;
}

static void step_knob(struct k2_policy *policy, struct model *model)
{
	u32 inflight_max = random_below(5);
	u32 split_kib = random_below(2) ? 0 : 1U << random_below(22);
	u32 wait_ms_max = random_below(4) ? random_below(3) : random_below(100000);

	if (random_below(2)) {
		bool valid = wait_ms_max <= 60000;

		same("set background_wait_ms_max",
		     k2_policy_set_background_wait_ms_max(policy, wait_ms_max), valid);
		if (valid)
			model->wait_ms_max = wait_ms_max;
	} else if (random_below(2)) {
		bool valid = inflight_max >= 1;

		same("set inflight_max", k2_policy_set_inflight_max(policy, inflight_max), valid);
		if (valid)
			model->inflight_max = inflight_max;
	} else {
		bool valid = split_kib <= 1U << 20;

		same("set split_kib", k2_policy_set_split_kib(policy, split_kib, BLOCK_BYTES),
		     valid);
		if (valid)
			model->split_bytes = split_kib * 1024;
	}
}

static void compare_class(const struct k2_policy *policy, const struct model *model, u32 class,
			  u32 queue_first, u32 queue_last)
{
	const struct k2_counts *counts = &policy->counts[class];
	u64 inserted = 0, dispatched = 0, rest = 0, retried = 0, deferred = 0;

	for (u32 i = 0; i < model->count; i++) {
		const struct model_request *request = &model->requests[i];

		if (request->queue < queue_first || request->queue > queue_last)
			continue;
		inserted++;
		dispatched += request->dispatched;
		rest += request->rest;
		retried += request->retried;
		deferred += request->deferred;
	}
	same("inserted", counts->inserted, inserted);
	same("dispatched", counts->dispatched, dispatched);
	same("rest", counts->back[K2_BACK_REST], rest);
	same("retried", counts->back[K2_BACK_RETRY], retried);
	same("deferred", counts->back[K2_BACK_DEFERRED], deferred);
	same("merged", counts->merged, count_state(model, MERGED, queue_first, queue_last));
	same("completed", counts->completed,
	     count_state(model, COMPLETED, queue_first, queue_last));
	same("in flight", policy->inflight[class],
	     count_state(model, IN_FLIGHT, queue_first, queue_last));
}

static void compare(const struct k2_policy *policy, struct model *model)
{
	u64 waits_ns = model->waits ? now_ns - model->waits_since_ns : 0;
	u32 next = model_next(model);

	for (u32 queue = 0; queue < K2_QUEUES; queue++)
		same("queued", policy->queued[queue], count_state(model, QUEUED, queue, queue));
	compare_class(policy, model, K2_CLASS_RT, 0, K2_RT_LEVELS - 1);
	compare_class(policy, model, K2_CLASS_BACKGROUND, K2_RT_LEVELS, K2_QUEUES - 1);
	same("next", next_queue(policy), next);
	same("has work", k2_policy_has_work(policy), next != K2_QUEUE_NONE);
	same("balanced", k2_policy_balanced(policy), true);
	same("idle", k2_policy_idle(policy),
	     count_state(model, QUEUED, 0, K2_QUEUES - 1) +
			     count_state(model, IN_FLIGHT, 0, K2_QUEUES - 1) ==
		     0);
	same("blocked count", policy->rt_blocked_count, model->blocked_count);
	same("blocked ns", policy->rt_blocked_ns_max, model->blocked_ns_max);
	same("forced count", policy->background_forced_count, model->forced_count);
	same("background wait ns", k2_policy_background_wait_ns(policy, now_ns),
	     waits_ns > model->wait_ns_longest ? waits_ns : model->wait_ns_longest);
}

/* Did a request move? Knobs move none: the policy looks at them at the next transition. */
static bool take_step(struct k2_policy *policy, struct model *model)
{
	switch (random_below(16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		return step_insert(policy, model);
	case 4:
	case 5:
	case 6:
	case 7:
	case 8:
		return step_dispatch(policy, model);
	case 9:
	case 10:
	case 11:
	case 12:
		return step_end(policy, model);
	case 13:
		if (random_below(4) == 0)
			return step_error(policy, model);
		return step_retry(policy, model);
	case 14:
		return step_merge(policy, model);
	default:
		step_knob(policy, model);
		return false;
	}
}

/* The timer: a late one is also right. */
static void step_look(struct k2_policy *policy, struct model *model)
{
	bool waits = model->gave_way && !model->gives_way;
	u64 until_ns = model->quiet_since_ns + 2000000;

	same("look", k2_policy_look(policy, now_ns), waits && now_ns < until_ns ? until_ns : 0);
	if (waits && now_ns >= until_ns)
		model->gave_way = false;
}

static u64 run(u64 steps)
{
	static struct model model;
	struct k2_policy policy;

	now_ns = 0;
	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	memset(&model, 0, sizeof(model));
	model.order_next = 1ULL << 32;
	model.order_head = (1ULL << 32) - 1;
	model.inflight_max = 1 + random_below(4);
	model.flow_last = K2_QUEUE_BEST_EFFORT;
	model.processes = 1 + random_below(2 * K2_FLOWS);
	k2_policy_init(&policy, model.inflight_max);

	for (step = 0; step < steps; step++) {
		/* Mostly short, now and then so long that a wait runs out. */
		now_ns += random_below(8) ? random_below(1000) : random_below(3000000);
		if (take_step(&policy, &model))
			model_note(&model);
		if (random_below(4) == 0)
			step_look(&policy, &model);
		compare(&policy, &model);
	}
	/* Drain: whatever was put in comes out. */
	for (; !k2_policy_idle(&policy); step++) {
		if (step_dispatch(&policy, &model))
			model_note(&model);
		if (step_end(&policy, &model))
			model_note(&model);
		now_ns += 1000;
		step_look(&policy, &model);
	}
	compare(&policy, &model);
	return step;
}

int main(int argc, char **argv)
{
	u64 steps = STEPS_DEFAULT, total = 0;

	if (argc == 3) {
		seed = strtoull(argv[1], NULL, 10);
		total = run(strtoull(argv[2], NULL, 10));
		printf("ok   policy: property: seed %" PRIu64 ", %" PRIu64 " steps\n", seed, total);
		return EXIT_SUCCESS;
	}
	if (argc != 1) {
		fprintf(stderr, "usage: %s [SEED STEPS]\n", argv[0]);
		return 2;
	}
	for (seed = 1; seed <= SEEDS_DEFAULT; seed++)
		total += run(steps);
	printf("ok   policy: agrees_with_the_plain_model (seeds 1 to %d, %" PRIu64 " steps)\n",
	       SEEDS_DEFAULT, total);
	return EXIT_SUCCESS;
}
