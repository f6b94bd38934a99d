/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counts the causes of real-time requests that take too long.
 *
 * From arrival to end, a request should take at most the time of its command alone, at the device's
 * slowest lately (k2_device.h), plus rt_block_us. A request that takes longer exceeds the bound. It
 * is counted under one cause: the first below that applied to it, or to a request of its stream
 * that was outstanding at the same time.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_EXCESS_H
#define K2_EXCESS_H

#include "k2_types.h"

enum k2_excess_cause {
	K2_EXCESS_STALL, /* the device stalled meanwhile */
	K2_EXCESS_LANE, /* it waited for a command of a lane of a lower level */
	K2_EXCESS_UNGUARDED, /* it came while an unsplit background command was with the device */
	K2_EXCESS_EARLY, /* it found background, and came earlier than predicted */
	K2_EXCESS_BACKGROUND, /* the device had background when it came, or got some later */
	K2_EXCESS_LOWER, /* it came while a request of a lower level was with the device */
	K2_EXCESS_RT, /* other requests of its level, of a higher one, or of its stream */
	K2_EXCESS_DEVICE, /* no other cause: the command itself was slow */
	K2_EXCESS_CAUSES
};

/* The state that a request finds, or leaves. */
struct k2_scene {
	u64 stalls; /* stalls of the device until now */
	u64 lane_waits; /* ended waits of its level for lanes */
	u64 background_dispatched, rt_inserted; /* until now, including this request */
	bool has_background, has_unguarded, has_lower, has_rt; /* other requests */
	bool is_early;
};

/* What the requests of a stream met since none of them was outstanding. */
struct k2_met {
	struct k2_scene scene; /* of its first request; the has_ and is_ flags of all */
	u64 alone_ns; /* the longest time alone of these requests */
};

struct k2_excess {
	u64 count[K2_EXCESS_CAUSES];
	u64 ns_max; /* the largest excess */
};

/* @is_first: no other is outstanding. @alone_ns: the time of its command alone; 0: unknown. */
void k2_excess_arrival(struct k2_met *met, const struct k2_scene *scene, bool is_first,
		       u64 alone_ns);

/* By how much does a request that took @took_ns, and may wait for @block_ns, exceed the bound? */
static inline u64 k2_excess_ns(const struct k2_met *met, u64 took_ns, u64 block_ns)
{
	u64 limit_ns = met->alone_ns + block_ns;

	return met->alone_ns && took_ns > limit_ns ? took_ns - limit_ns : 0;
}

/* A request ended that exceeded the bound by @excess_ns. */
void k2_excess_end(struct k2_excess *excess, const struct k2_met *met, const struct k2_scene *scene,
		   u64 excess_ns);

#endif /* K2_EXCESS_H */
