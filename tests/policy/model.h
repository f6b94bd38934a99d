/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A model of the policy too plain to be wrong: every request there ever was, in an array, with its
 * state. What the policy keeps as counts, it finds by looking at all of them. property.c drives it.
 */
#include "clocked.h"

#define REQUESTS_MAX 400

enum state {
	QUEUED,
	IN_FLIGHT,
	COMPLETED,
	MERGED
};

struct model_request {
	enum state state;
	u32 queue;
	u32 process;
	u32 bytes; /* still to be done */
	u32 piece_bytes; /* of that, in flight */
	u64 order; /* queued with a smaller one: served first */
	u64 dispatched, rest, retried, deferred;
};

struct model {
	struct model_request requests[REQUESTS_MAX];
	u32 count;
	u32 inflight_max;
	u32 split_bytes;
	u64 order_next; /* of the next insertion at the tail */
	u64 order_head; /* of the next insertion at the head */
	bool blocked;
	u64 blocked_since_ns, blocked_ns_max, blocked_count;
	u32 wait_ms_max;
	bool waits;
	u64 waits_since_ns, wait_ns_longest, forced_count;
	u32 metadata_in_a_row; /* while other background was queued */
	u32 best_effort_in_a_row; /* while idle was queued */
	u32 flow_last; /* the queue of best effort whose turn was last */
	bool gives_way; /* idle, to other background */
	u32 processes;
	bool gave_way; /* and neither had its turn since, nor was allowed to go */
	u64 quiet_since_ns;
};

static u64 now_ns;

static u32 count_state(const struct model *model, enum state state, u32 queue_first, u32 queue_last)
{
	u32 count = 0;

	for (u32 i = 0; i < model->count; i++) {
		const struct model_request *request = &model->requests[i];

		count += request->state == state && request->queue >= queue_first &&
			 request->queue <= queue_last;
	}
	return count;
}

static struct model_request *head_of(struct model *model, u32 queue)
{
	struct model_request *head = NULL;

	for (u32 i = 0; i < model->count; i++) {
		struct model_request *request = &model->requests[i];

		if (request->state == QUEUED && request->queue == queue &&
		    (!head || request->order < head->order))
			head = request;
	}
	return head;
}

static bool model_is_due(const struct model *model)
{
	return model->wait_ms_max && model->waits &&
	       now_ns - model->waits_since_ns >= model->wait_ms_max * 1000000ULL;
}

/* Is there anything of these queues, in this state? */
static bool any(const struct model *model, enum state state, u32 queue_first, u32 queue_last)
{
	return count_state(model, state, queue_first, queue_last) > 0;
}

static bool others_queued(const struct model *model)
{
	return any(model, QUEUED, K2_QUEUE_METADATA, K2_QUEUE_IDLE - 1);
}

static bool others_in_flight(const struct model *model)
{
	return any(model, IN_FLIGHT, K2_QUEUE_METADATA, K2_QUEUE_IDLE - 1);
}

/* Must idle, of which something is queued, wait? */
static bool idle_waits(const struct model *model)
{
	if (model->best_effort_in_a_row >= 128)
		return false;
	if (others_queued(model))
		return !(model->metadata_in_a_row >= 16 &&
			 !any(model, QUEUED, K2_QUEUE_BEST_EFFORT, K2_QUEUE_IDLE - 1));
	return others_in_flight(model) || model->gave_way;
}

static u32 model_flow(struct model *model)
{
	for (u32 turn = 1; turn <= K2_FLOWS; turn++) {
		u32 flow = (model->flow_last - K2_QUEUE_BEST_EFFORT + turn) % K2_FLOWS;

		if (head_of(model, K2_QUEUE_BEST_EFFORT + flow))
			return K2_QUEUE_BEST_EFFORT + flow;
	}
	return K2_QUEUE_NONE;
}

static u32 model_background(struct model *model)
{
	bool idle = head_of(model, K2_QUEUE_IDLE);
	u32 flow = model_flow(model);
	bool metadata_pauses = model->metadata_in_a_row >= 16 && (idle || flow != K2_QUEUE_NONE);

	if (head_of(model, K2_QUEUE_METADATA) && !metadata_pauses)
		return K2_QUEUE_METADATA;
	if (flow != K2_QUEUE_NONE && !(idle && model->best_effort_in_a_row >= 128))
		return flow;
	return idle && !idle_waits(model) ? K2_QUEUE_IDLE : K2_QUEUE_NONE;
}

static u32 model_next(struct model *model)
{
	bool rt = any(model, QUEUED, 0, K2_RT_LEVELS - 1);
	u32 queue = K2_QUEUE_NONE;

	if (count_state(model, IN_FLIGHT, 0, K2_QUEUES - 1) >= model->inflight_max)
		return K2_QUEUE_NONE;
	if (!rt || model_is_due(model))
		queue = model_background(model);
	for (u32 level = 0; queue == K2_QUEUE_NONE && level < K2_RT_LEVELS; level++) {
		if (head_of(model, level))
			queue = level;
	}
	return queue;
}

static void model_note_blocked(struct model *model)
{
	bool rt_waits = count_state(model, QUEUED, 0, K2_RT_LEVELS - 1) > 0;
	bool full = count_state(model, IN_FLIGHT, 0, K2_QUEUES - 1) >= model->inflight_max;
	bool background = count_state(model, IN_FLIGHT, K2_RT_LEVELS, K2_QUEUES - 1) > 0;
	bool blocked = rt_waits && full && background;

	if (blocked && !model->blocked) {
		model->blocked_since_ns = now_ns;
		model->blocked_count++;
	}
	if (!blocked && model->blocked && now_ns - model->blocked_since_ns > model->blocked_ns_max)
		model->blocked_ns_max = now_ns - model->blocked_since_ns;
	model->blocked = blocked;
}

static void model_note_waits(struct model *model)
{
	bool waits = count_state(model, QUEUED, K2_RT_LEVELS, K2_QUEUES - 1) &&
		     !count_state(model, IN_FLIGHT, K2_RT_LEVELS, K2_QUEUES - 1);

	bool rt_there = count_state(model, QUEUED, 0, K2_RT_LEVELS - 1) ||
			count_state(model, IN_FLIGHT, 0, K2_RT_LEVELS - 1);

	if (!model->waits)
		waits = waits && rt_there;
	if (waits && !model->waits)
		model->waits_since_ns = now_ns;
	if (model->waits && now_ns - model->waits_since_ns > model->wait_ns_longest)
		model->wait_ns_longest = now_ns - model->waits_since_ns;
	model->waits = waits;
}

static void model_note_gives_way(struct model *model)
{
	bool gives_way = any(model, QUEUED, K2_QUEUE_IDLE, K2_QUEUE_IDLE) &&
			 (others_queued(model) || others_in_flight(model));

	if (model->gives_way && !gives_way) {
		model->quiet_since_ns = now_ns;
		model->gave_way = true;
	}
	model->gives_way = gives_way;
}

static void model_note(struct model *model)
{
	model_note_gives_way(model);
	model_note_blocked(model);
	model_note_waits(model);
}
