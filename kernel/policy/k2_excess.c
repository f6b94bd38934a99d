// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_excess.h"

void k2_excess_arrival(struct k2_met *met, const struct k2_scene *scene, bool is_first,
		       u64 alone_ns)
{
	if (is_first)
		*met = (struct k2_met){.scene = *scene};
	met->alone_ns = k2_max(met->alone_ns, alone_ns);
	met->scene.has_background |= scene->has_background;
	met->scene.has_unguarded |= scene->has_unguarded;
	met->scene.has_lower |= scene->has_lower;
	met->scene.has_rt |= scene->has_rt;
	met->scene.is_early |= scene->is_early;
}

static enum k2_excess_cause cause_of(const struct k2_met *met, const struct k2_scene *now)
{
	const struct k2_scene *then = &met->scene;

	if (now->stalls != then->stalls)
		return K2_EXCESS_STALL;
	if (now->lane_waits != then->lane_waits)
		return K2_EXCESS_LANE;
	if (then->has_unguarded)
		return K2_EXCESS_UNGUARDED;
	if (then->has_background)
		return then->is_early ? K2_EXCESS_EARLY : K2_EXCESS_BACKGROUND;
	if (now->background_dispatched != then->background_dispatched)
		return K2_EXCESS_BACKGROUND;
	if (then->has_lower)
		return K2_EXCESS_LOWER;
	if (then->has_rt || now->rt_inserted != then->rt_inserted)
		return K2_EXCESS_RT;
	return K2_EXCESS_DEVICE;
}

void k2_excess_end(struct k2_excess *excess, const struct k2_met *met, const struct k2_scene *scene,
		   u64 excess_ns)
{
	excess->count[cause_of(met, scene)]++;
	excess->ns_max = k2_max(excess->ns_max, excess_ns);
}
