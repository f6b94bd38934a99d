// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_background.h"

/* Bits of `waiting`. */
#define QUEUE_BIT(queue) (1U << (queue))
#define METADATA	 QUEUE_BIT(K2_QUEUE_METADATA)
#define BEST_EFFORT	 (QUEUE_BIT(K2_QUEUE_IDLE) - QUEUE_BIT(K2_QUEUE_BEST_EFFORT))
#define IDLE		 QUEUE_BIT(K2_QUEUE_IDLE)
#define ALL_FLOWS	 (QUEUE_BIT(K2_FLOWS) - 1)

/* The flows with something queued, one bit each. */
static u32 flows_of(u32 waiting)
{
	return (waiting & BEST_EFFORT) >> K2_QUEUE_BEST_EFFORT;
}

u32 k2_background_flow(const struct k2_background *background, u32 waiting, u32 key)
{
	u32 flows = flows_of(waiting), empty = ALL_FLOWS & ~flows, left;

	for (left = flows; left; left &= left - 1) {
		u32 flow = __builtin_ctz(left);

		if (background->flow_key[flow] == key)
			return K2_QUEUE_BEST_EFFORT + flow;
	}
	return K2_QUEUE_BEST_EFFORT + (empty ? (u32)__builtin_ctz(empty) : key % K2_FLOWS);
}

u32 k2_background_take_flow(struct k2_background *background, u32 waiting, u32 key)
{
	u32 queue = k2_background_flow(background, waiting, key);

	if (!(waiting & QUEUE_BIT(queue)))
		background->flow_key[queue - K2_QUEUE_BEST_EFFORT] = key;
	return queue;
}

/* Called with some flow waiting. */
static u32 next_flow(const struct k2_background *background, u32 waiting)
{
	u32 flows = flows_of(waiting);
	u32 after = flows & ~((2U << background->flow_last) - 1);

	return K2_QUEUE_BEST_EFFORT + (u32)__builtin_ctz(after ? after : flows);
}

/* Is it the turn of idle, whatever else there is? */
static bool idle_is_due(const struct k2_background *background)
{
	return background->best_effort_streak >= K2_BEST_EFFORT_STREAK_MAX;
}

static bool only_idle_waits(u32 waiting)
{
	return (waiting & (METADATA | BEST_EFFORT | IDLE)) == IDLE;
}

bool k2_background_has_work(const struct k2_background *background, u32 waiting)
{
	if (only_idle_waits(waiting))
		return !background->busy || idle_is_due(background);
	return waiting & (METADATA | BEST_EFFORT);
}

bool k2_background_needs_time(const struct k2_background *background, u32 waiting)
{
	return only_idle_waits(waiting) && !background->busy && background->quiet_since_ns &&
	       !idle_is_due(background);
}

u32 k2_background_next(const struct k2_background *background, u32 waiting, u64 now_ns)
{
	bool rest = waiting & (BEST_EFFORT | IDLE);

	if (!k2_background_has_work(background, waiting))
		return K2_QUEUE_NONE;
	if (k2_background_needs_time(background, waiting) &&
	    now_ns - background->quiet_since_ns < K2_GIVE_WAY_NS)
		return K2_QUEUE_NONE;
	if (waiting & METADATA && !(rest && background->metadata_streak >= K2_METADATA_STREAK_MAX))
		return K2_QUEUE_METADATA;
	if (waiting & BEST_EFFORT && !(waiting & IDLE && idle_is_due(background)))
		return next_flow(background, waiting);
	return K2_QUEUE_IDLE;
}

void k2_background_dispatched(struct k2_background *background, u32 queue, u32 waiting)
{
	if (queue == K2_QUEUE_IDLE) {
		background->metadata_streak = 0;
		background->best_effort_streak = 0;
		background->quiet_since_ns = 0;
		return;
	}
	background->busy++;
	if (queue == K2_QUEUE_METADATA) {
		if (waiting & (BEST_EFFORT | IDLE))
			background->metadata_streak++;
		return;
	}
	background->metadata_streak = 0;
	background->flow_last = queue - K2_QUEUE_BEST_EFFORT;
	if (waiting & IDLE)
		background->best_effort_streak++;
}

void k2_background_ended(struct k2_background *background, u32 queue)
{
	if (queue != K2_QUEUE_IDLE)
		background->busy--;
}

static bool gives_way(const struct k2_background *background, u32 waiting)
{
	return waiting & IDLE && (background->busy || waiting & (METADATA | BEST_EFFORT));
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
	if (!background->gives_way)
		background->quiet_since_ns = now_ns;
}
