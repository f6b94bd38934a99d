// SPDX-License-Identifier: MIT OR Apache-2.0
#include "scheduler.h"

#include <stdio.h>
#include <stdlib.h>

#define COMMANDS_MAX 1024
/* More commands than this cannot end at one time, unless they take no time. */
#define ENDED_MAX    1000000
#define BLOCK_BYTES  512
#define SECTOR_SHIFT 9

struct queue {
	struct request *first, *last;
};

static struct {
	struct scheduler_settings settings;
	struct k2_policy policy;
	struct k2_lookahead ahead;
	struct k2_stream streams[K2_STREAMS];
	struct k2_declared_memory memory;
	struct queue queues[K2_QUEUES];
	struct request *at_card[COMMANDS_MAX];
	u32 at_card_count;
	u64 hold_until_ns;
	bool is_held;
	u64 ended_ns; /* when the last command ended, */
	u32 ended; /* and how many did at that time */
} k2;

bool scheduler_begin(const struct scheduler_settings *settings)
{
	k2 = (typeof(k2)){.settings = *settings};
	k2_policy_init(&k2.policy, 1);
	k2_lookahead_init(&k2.ahead);
	k2.ahead.streams.stream = k2.streams;
	k2_declared_begin(&k2.ahead.declared, &k2.memory);
	k2.policy.rt_blocked_ns_bound = settings->rt_block_us * 1000ULL;
	return k2_policy_set_inflight_max(&k2.policy, settings->inflight_max) &&
	       k2_policy_set_split_kib(&k2.policy, settings->split_kib, BLOCK_BYTES) &&
	       k2_policy_set_background_wait_ms_max(&k2.policy, settings->background_wait_ms_max) &&
	       k2_lookahead_set_rt_block_us(&k2.ahead, settings->rt_block_us);
}

u32 scheduler_declare(const struct k2_declaration *stated)
{
	return k2_declared_add(&k2.ahead.declared, stated);
}

void scheduler_limit(enum card_op op, u64 base_ns, u64 per_kib_ns)
{
	/* The time of each command includes the host's part. */
	if (!k2_declared_set_limit(&k2.ahead.declared, op, (u32)base_ns, (u32)per_kib_ns))
		abort();
}

const struct k2_declared_task *scheduler_declared(u32 number)
{
	return &k2.ahead.declared.task[number];
}

const struct k2_policy *scheduler_policy(void)
{
	return &k2.policy;
}

static void note_waits(u64 now_ns)
{
	if (k2_policy_waits_changed(&k2.policy))
		k2_policy_note_waits(&k2.policy, now_ns);
}

static void at_tail(struct queue *queue, struct request *request)
{
	request->next = NULL;
	if (queue->first)
		queue->last->next = request;
	else
		queue->first = request;
	queue->last = request;
}

static void at_head(struct queue *queue, struct request *request)
{
	request->next = queue->first;
	if (!queue->first)
		queue->last = request;
	queue->first = request;
}

static bool is_write(const struct request *request)
{
	return request->command.op != CARD_READ;
}

static bool is_learned(const struct request *request)
{
	return request->command.op <= CARD_WRITE;
}

static bool is_rt(const struct request *request)
{
	return request->queue < K2_RT_LEVELS;
}

static void to_card(struct request *request, u32 bytes, u64 now_ns)
{
	struct card_command piece = request->command;

	if (k2.at_card_count == COMMANDS_MAX)
		abort();
	piece.bytes = bytes;
	request->piece_bytes = bytes;
	request->sent_ns = now_ns;
	request->end_ns = card_do(&piece, now_ns) + k2.settings.host_ns;
	k2.at_card[k2.at_card_count++] = request;
}

void scheduler_insert(struct request *request, u64 now_ns)
{
	request->flight = K2_FLIGHT_NONE;
	request->stream = K2_STREAM_NONE;
	if (request->bypasses) {
		to_card(request, request->command.bytes, now_ns);
		return;
	}
	if (request->queue == K2_QUEUE_BEST_EFFORT)
		request->queue = k2_policy_take_flow(&k2.policy, request->process);
	k2_policy_insert(&k2.policy, request->queue);
	k2.is_held = false;
	if (request->declared != K2_DECLARED_NONE) {
		k2_declared_arrival(&k2.ahead.declared, request->declared, now_ns);
	} else if (is_rt(request) && k2_looks_ahead(&k2.ahead, &k2.policy)) {
		struct k2_thread thread = {
			.process = request->group ? request->group : request->process,
			.thread = request->process,
			.level = request->queue,
			.is_write = is_write(request),
		};

		request->stream = k2_lookahead_rt_arrival(&k2.ahead, &thread, now_ns);
		if (is_write(request))
			k2_pace_rt_write(&k2.ahead.pace, now_ns);
	}
	at_tail(&k2.queues[request->queue], request);
	note_waits(now_ns);
}

static struct k2_decision decide(const struct request *request, u64 now_ns)
{
	struct k2_offer offer = {
		.queue = request->queue,
		.op = is_write(request),
		.bytes = request->command.bytes,
		.block_bytes = BLOCK_BYTES,
		.may_split = request->may_split,
		.is_timed = is_learned(request),
	};

	return k2_decide(&k2.ahead, &k2.policy, &offer, now_ns);
}

static bool dispatch_one(u64 now_ns)
{
	u32 queue = k2_policy_next(&k2.policy, now_ns);
	struct k2_decision decision;
	struct request *request;

	if (queue == K2_QUEUE_NONE)
		return false;
	request = k2.queues[queue].first;
	decision = decide(request, now_ns);
	if (!decision.bytes) {
		k2.is_held = true;
		k2.hold_until_ns = decision.hold_until_ns ? decision.hold_until_ns : NEVER_NS;
		return false;
	}
	if (decision.is_watched && is_learned(request))
		request->flight = k2_lookahead_watch(&k2.ahead, k2_guarded_level(queue),
						     is_write(request), decision.bytes,
						     k2_policy_inflight(&k2.policy), now_ns);
	else
		request->flight =
			k2_lookahead_unwatched(&k2.ahead, k2_guarded_level(queue), now_ns);
	k2.queues[queue].first = request->next;
	k2_policy_dispatch(&k2.policy, queue);
	note_waits(now_ns);
	to_card(request, decision.bytes, now_ns);
	return true;
}

void scheduler_dispatch(u64 now_ns)
{
	if (k2.is_held && k2.hold_until_ns <= now_ns)
		k2.is_held = false;
	while (!k2.is_held && dispatch_one(now_ns))
		;
}

/* Returns whether the whole request is done. */
static bool end(struct request *request, u64 now_ns)
{
	bool is_done = request->piece_bytes == request->command.bytes;

	if (request->bypasses) {
		k2_lookahead_bypassed(&k2.ahead, k2_guarded_level(request->queue), request->sent_ns,
				      now_ns);
		return true;
	}
	if (request->flight != K2_FLIGHT_NONE)
		k2_lookahead_done(&k2.ahead, request->flight, now_ns);
	request->flight = K2_FLIGHT_NONE;
	if (is_done && request->stream != K2_STREAM_NONE)
		k2_lookahead_rt_end(&k2.ahead, request->stream, now_ns);
	if (is_done && request->declared != K2_DECLARED_NONE)
		k2_declared_end(&k2.ahead.declared, request->declared, now_ns);
	k2.is_held = false;
	if (is_done) {
		k2_policy_complete(&k2.policy, request->queue);
	} else {
		request->command.bytes -= request->piece_bytes;
		request->command.sector += request->piece_bytes >> SECTOR_SHIFT;
		k2_policy_give_back(&k2.policy, request->queue, K2_BACK_REST);
		at_head(&k2.queues[request->queue], request);
		if (request->declared != K2_DECLARED_NONE)
			k2_declared_back(&k2.ahead.declared, request->declared, now_ns);
	}
	note_waits(now_ns);
	return is_done;
}

/* Fails if commands take no time: the load would never end. */
static void expect_time_passes(u64 now_ns)
{
	k2.ended = k2.ended_ns == now_ns ? k2.ended + 1 : 0;
	k2.ended_ns = now_ns;
	if (k2.ended < ENDED_MAX)
		return;
	fprintf(stderr, "the card: commands take no time (give read_base_ns and write_base_ns)\n");
	exit(2);
}

struct request *scheduler_ended(u64 now_ns)
{
	for (u32 i = 0; i < k2.at_card_count; i++) {
		struct request *request = k2.at_card[i];

		if (request->end_ns > now_ns)
			continue;
		expect_time_passes(now_ns);
		k2.at_card[i--] = k2.at_card[--k2.at_card_count];
		if (end(request, now_ns))
			return request;
	}
	return NULL;
}

u64 scheduler_next_ns(void)
{
	u64 next_ns = k2.is_held ? k2.hold_until_ns : NEVER_NS;

	for (u32 i = 0; i < k2.at_card_count; i++)
		if (k2.at_card[i]->end_ns < next_ns)
			next_ns = k2.at_card[i]->end_ns;
	return next_ns;
}
