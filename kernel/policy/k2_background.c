// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_background.h"

static inline u32 find_flow(const struct k2_background *background, u32 waiting, u32 key)
{
	u32 taken = k2_flows_of(waiting) | background->flows_inflight;
	u32 free = K2_ALL_FLOWS & ~taken, left;

	for (left = taken; left; left &= left - 1) {
		u32 flow = __builtin_ctz(left);

		if (background->flow_key[flow] == key)
			return K2_QUEUE_BEST_EFFORT + flow;
	}
	return K2_QUEUE_BEST_EFFORT + (free ? (u32)__builtin_ctz(free) : key % K2_FLOWS);
}

u32 k2_background_flow(const struct k2_background *background, u32 waiting, u32 key)
{
	return find_flow(background, waiting, key);
}

u32 k2_background_take_flow(struct k2_background *background, u32 waiting, u32 key)
{
	u32 queue = find_flow(background, waiting, key);
	u32 flow = queue - K2_QUEUE_BEST_EFFORT;

	if (!((k2_flows_of(waiting) | background->flows_inflight) & K2_FLOW_BIT(flow)))
		background->flow_key[flow] = key;
	return queue;
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
