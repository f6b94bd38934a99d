/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Numbers the commands that the device has, for declared tasks. */
#ifndef K2_LOOKAHEAD_H
#define K2_LOOKAHEAD_H

#include "background.h"
#include "declared.h"

#define K2_FLIGHTS     32
#define K2_FLIGHT_NONE K2_FLIGHTS
/* The number of a command of unknown time, for whose end declared tasks may wait. */
#define K2_FLIGHT_UNTIMED (K2_FLIGHTS + 1)
/* Upper end of the bound that a task states. */
#define K2_RT_BLOCK_US_LIMIT 1000000U
/* The request belongs to no task. */
#define K2_STREAM_NONE K2_DECLARED_MAX

struct k2_lookahead {
	struct k2_declared declared;
	u32 watched; /* one bit for each number in use */
};

static inline void k2_lookahead_init(struct k2_lookahead *ahead)
{
	*ahead = (struct k2_lookahead){};
}

/* A command of unknown time goes to the device. */
static inline u32 k2_lookahead_unwatched(struct k2_lookahead *ahead, u32 level, u64 now_ns)
{
	if (!ahead->declared.task)
		return K2_FLIGHT_NONE;
	k2_declared_untimed(&ahead->declared, level, now_ns);
	return K2_FLIGHT_UNTIMED;
}

/* A read or write goes to the device. Returns its number. */
static inline u32 k2_lookahead_watch(struct k2_lookahead *ahead, u32 level, u32 op, u32 bytes,
				     u32 inflight, u64 now_ns)
{
	u32 number;

	if (~ahead->watched == 0)
		return k2_lookahead_unwatched(ahead, level, now_ns);
	number = (u32)__builtin_ctz(~ahead->watched);
	ahead->watched |= 1U << number;
	k2_declared_dispatch(&ahead->declared, number, level, op, bytes, now_ns);
	return number;
}

/* It has ended, or the driver returned it undone. */
static inline void k2_lookahead_done(struct k2_lookahead *ahead, u32 number, u64 now_ns)
{
	if (number == K2_FLIGHT_UNTIMED) {
		k2_declared_untimed_done(&ahead->declared, now_ns);
		return;
	}
	k2_declared_done(&ahead->declared, number, now_ns);
	ahead->watched &= ~(1U << number);
}

static inline void k2_lookahead_cancel(struct k2_lookahead *ahead, u32 number, u64 now_ns)
{
	k2_lookahead_done(ahead, number, now_ns);
}

/* A request that k2 did not dispatch has ended. */
static inline void k2_lookahead_bypassed(struct k2_lookahead *ahead, u32 level, u64 since_ns,
					 u64 now_ns)
{
	k2_declared_bypassed(&ahead->declared, level, since_ns, now_ns);
}

#endif /* K2_LOOKAHEAD_H */
