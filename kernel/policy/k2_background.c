// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_background.h"

#define FLOW_BIT(flow) (1U << (flow))
#define ALL_FLOWS      (FLOW_BIT(K2_FLOWS) - 1)

/* The flows that have a request queued, one bit each. */
static u32 flows_of(u32 waiting)
{
	return (waiting & K2_BEST_EFFORT_BITS) >> K2_QUEUE_BEST_EFFORT;
}

u32 k2_background_flow(const struct k2_background *background, u32 waiting, u32 key)
{
	u32 taken = flows_of(waiting) | background->flows_inflight;
	u32 free = ALL_FLOWS & ~taken, left;

	for (left = taken; left; left &= left - 1) {
		u32 flow = __builtin_ctz(left);

		if (background->flow_key[flow] == key)
			return K2_QUEUE_BEST_EFFORT + flow;
	}
	return K2_QUEUE_BEST_EFFORT + (free ? (u32)__builtin_ctz(free) : key % K2_FLOWS);
}

u32 k2_background_take_flow(struct k2_background *background, u32 waiting, u32 key)
{
	u32 queue = k2_background_flow(background, waiting, key);
	u32 flow = queue - K2_QUEUE_BEST_EFFORT;

	if (!((flows_of(waiting) | background->flows_inflight) & FLOW_BIT(flow)))
		background->flow_key[flow] = key;
	return queue;
}

/* At least one flow has a request queued. */
static u32 next_flow(const struct k2_background *background, u32 waiting)
{
	u32 flows = flows_of(waiting);
	u32 after = flows & ~((2U << background->flow_last) - 1);

	return K2_QUEUE_BEST_EFFORT + (u32)__builtin_ctz(after ? after : flows);
}

u32 k2_background_next(const struct k2_background *background, u32 waiting)
{
	bool rest = waiting & (K2_BEST_EFFORT_BITS | K2_IDLE_BIT);

	if (!k2_background_has_work(background, waiting))
		return K2_QUEUE_NONE;
	if (waiting & K2_METADATA_BIT &&
	    !(rest && background->metadata_streak >= K2_METADATA_STREAK_MAX))
		return K2_QUEUE_METADATA;
	if (waiting & K2_BEST_EFFORT_BITS &&
	    !(waiting & K2_IDLE_BIT && k2_background_idle_is_due(background)))
		return next_flow(background, waiting);
	return K2_QUEUE_IDLE;
}

u64 k2_background_look(struct k2_background *background, u64 now_ns)
{
	u64 until_ns = background->quiet_since_ns + K2_GIVE_WAY_NS;

	if (background->gives_way || !background->gave_way)
		return 0;
	if (now_ns < until_ns)
		return until_ns;
	background->gave_way = false;
	return 0;
}

static void flow_dispatched(struct k2_background *background, u32 flow)
{
	background->flow_last = flow;
	background->flow_inflight[flow]++;
	background->flows_inflight |= FLOW_BIT(flow);
}

static void flow_ended(struct k2_background *background, u32 flow)
{
	background->flow_inflight[flow]--;
	if (background->flow_inflight[flow] == 0)
		background->flows_inflight &= ~FLOW_BIT(flow);
}

void k2_background_dispatched(struct k2_background *background, u32 queue, u32 waiting)
{
	if (queue == K2_QUEUE_IDLE) {
		background->metadata_streak = 0;
		background->best_effort_streak = 0;
		background->gave_way = false;
		return;
	}
	background->busy++;
	if (queue == K2_QUEUE_METADATA) {
		if (waiting & (K2_BEST_EFFORT_BITS | K2_IDLE_BIT))
			background->metadata_streak++;
		return;
	}
	background->metadata_streak = 0;
	if (waiting & K2_IDLE_BIT)
		background->best_effort_streak++;
	flow_dispatched(background, queue - K2_QUEUE_BEST_EFFORT);
}

void k2_background_ended(struct k2_background *background, u32 queue)
{
	if (queue == K2_QUEUE_IDLE)
		return;
	background->busy--;
	if (queue != K2_QUEUE_METADATA)
		flow_ended(background, queue - K2_QUEUE_BEST_EFFORT);
}

static bool gives_way(const struct k2_background *background, u32 waiting)
{
	return waiting & K2_IDLE_BIT &&
	       (background->busy || waiting & (K2_METADATA_BIT | K2_BEST_EFFORT_BITS));
}

bool k2_background_changed(const struct k2_background *background, u32 waiting)
{
	return gives_way(background, waiting) != background->gives_way;
}

void k2_background_note(struct k2_background *background, u32 waiting, u64 now_ns)
{
	if (!k2_background_changed(background, waiting))
		return;
	background->gives_way = !background->gives_way;
	if (background->gives_way)
		return;
	background->gave_way = true;
	background->quiet_since_ns = now_ns;
}
