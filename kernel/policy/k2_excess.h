/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Why did a real-time request take longer than it should have?
 *
 * From its arrival to its end a request should take no longer than its command alone at the slowest
 * that the device was seen lately (k2_device.h), plus rt_block_us. One that does has exceeded the
 * bound, and is counted with one cause: the first below that applied to it, or to a request of its
 * stream that was outstanding with it.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_EXCESS_H
#define K2_EXCESS_H

#include "k2_types.h"

enum k2_excess_cause {
	K2_EXCESS_STALL, /* the device stalled meanwhile */
	K2_EXCESS_LANE, /* it waited for a command of a lane of a lower level */
	K2_EXCESS_UNGUARDED, /* it found a command of the background that was not cut */
	K2_EXCESS_EARLY, /* it found background, and came before its time */
	K2_EXCESS_BACKGROUND, /* background was with the device when it came, or later */
	K2_EXCESS_LOWER, /* it found a real-time request of a lower level with the device */
	K2_EXCESS_RT, /* other real-time requests of its level or before, or of its own stream */
	K2_EXCESS_DEVICE, /* nothing else: the command took so long */
	K2_EXCESS_CAUSES
};

/* What a request finds, or leaves. */
struct k2_scene {
	u64 stalls; /* of the device, until now */
	u64 lane_waits; /* of its level, that have ended */
	u64 background_dispatched, rt_inserted; /* until now, this one included */
	bool has_background, has_unguarded, has_lower, has_rt; /* besides it */
	bool is_early;
};

/* What a stream has met since it had no request outstanding. */
struct k2_met {
	struct k2_scene scene; /* of its first request, and has_ and is_ of all */
	u64 alone_ns; /* the longest of them */
};

struct k2_excess {
	u64 count[K2_EXCESS_CAUSES];
	u64 ns_max; /* beyond what it should have taken */
};

/* @is_first: no other is outstanding. @alone_ns: what its command needs; 0: not known. */
void k2_excess_arrival(struct k2_met *met, const struct k2_scene *scene, bool is_first,
		       u64 alone_ns);

/* By how much has one that took @took_ns, and may wait for @block_ns, exceeded the bound? */
static inline u64 k2_excess_ns(const struct k2_met *met, u64 took_ns, u64 block_ns)
{
	u64 limit_ns = met->alone_ns + block_ns;

	return met->alone_ns && took_ns > limit_ns ? took_ns - limit_ns : 0;
}

/* It has, by @excess_ns. */
void k2_excess_end(struct k2_excess *excess, const struct k2_met *met, const struct k2_scene *scene,
		   u64 excess_ns);

#endif /* K2_EXCESS_H */
