/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Look-ahead: how large a piece may be, so that it blocks no real-time request for longer than
 * rt_block_us.
 *
 * A piece must have ended by the time the next real-time request may come (k2_streams.h), plus
 * rt_block_us. How long it takes is learned (k2_device.h), and what is with the device already
 * counts. Without a real-time process nothing is cut.
 *
 * The bound. A real-time request waits at most rt_block_us for reads and writes of the background,
 * if its process has made a real-time request before, if the device needs no longer than it did in
 * the last seconds (unless is_strict: as for the last commands) and at most rt_block_us for
 * K2_PIECE_MIN, and if the request does not come earlier than those before it allow. A stall of the
 * device (k2_device.h), such as a pause of a flash card for programming, comes on top: no piece is
 * short enough to avoid it. Stalls and early arrivals are counted.
 *
 * With several requests in flight, what each adds to the wait is less than the time it takes by
 * itself. By how much they delay another is learned, too (k2_delay.h).
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_LOOKAHEAD_H
#define K2_LOOKAHEAD_H

#include "k2_anticipation.h"
#include "k2_background.h"
#include "k2_declared.h"
#include "k2_delay.h"
#include "k2_device.h"
#include "k2_pace.h"
#include "k2_streams.h"

/* Upper end of rt_block_us. */
#define K2_RT_BLOCK_US_LIMIT 1000000U
/*
 * And what it is at first: the least that eMMC without a command queue can keep, where a command of
 * 4 KiB takes 150 to 430 us.
 */
#define K2_RT_BLOCK_US_DEFAULT 440U
/* Of rt_idle_ms, and what it is at first. */
#define K2_RT_IDLE_MS_LIMIT   3600000U
#define K2_RT_IDLE_MS_DEFAULT 10000U

#define K2_FLIGHT_NONE K2_FLIGHTS
/* A command that is not watched, for whose end declared tasks may wait. */
#define K2_FLIGHT_UNTIMED (K2_FLIGHTS + 1)

/* A command that is with the device, and watched. */
struct k2_flight {
	u32 op;
	u32 bytes;
	u32 level; /* K2_RT_LEVELS: background */
	u64 since_ns;
	u64 needs_ns; /* by itself */
	/* When it was dispatched: how many others were with the device, 0 if that is not known; */
	u32 others;
	u64 others_ns; /* what these needed one by one, */
	u64 worked_ns; /* and for how long the device had worked on them. */
};

struct k2_lookahead {
	u64 rt_block_ns; /* 0: off */
	bool is_strict; /* pieces keep rt_block_us even if a slow episode begins with them */
	u64 rt_idle_ns; /* a process that was silent for so long is not guarded; 0: always */
	struct k2_streams streams;
	struct k2_device device;
	struct k2_anticipation anticipation;
	struct k2_flight flight[K2_FLIGHTS];
	u32 watched; /* one bit for each in use */
	u8 level_watched[K2_RT_LEVELS]; /* of each real-time level, so many */
	u32 levels_watched; /* one bit for each of these that is not 0 */
	u32 watched_count;
	u32 first; /* the one that found the device idle, until it ends, or K2_FLIGHT_NONE */
	bool is_alone; /* nothing has joined it */
	/* Its time is to be learned, so no more of the background is to join it; */
	bool is_probing;
	u32 probe; /* K2_FLIGHT_NONE until it is watched */
	u64 needs_ns, rt_needs_ns; /* the sum of theirs, and of those of real-time */
	u64 busy_ns; /* since when the device works on what is with it now */
	struct k2_delay delay;
	struct k2_pace pace;
	struct k2_declared declared;
	u64 held_since_ns; /* the next piece has not fitted; 0: it has */
	u32 unwatched; /* dispatches while nothing is guarded */
	struct k2_excess excess;
};

void k2_lookahead_init(struct k2_lookahead *ahead);
/* False: out of range, nothing was changed. */
bool k2_lookahead_set_rt_block_us(struct k2_lookahead *ahead, u32 rt_block_us);

bool k2_lookahead_set_rt_idle_ms(struct k2_lookahead *ahead, u32 rt_idle_ms);

/* Is there a real-time process of a level before @level to be guarded? */
bool k2_lookahead_guards(const struct k2_lookahead *ahead, u32 level, u64 now_ns);

/* A real-time request arrives; returns its stream for k2_lookahead_rt_end(). */
u32 k2_lookahead_rt_arrival(struct k2_lookahead *ahead, const struct k2_thread *thread, u64 now_ns);
void k2_lookahead_rt_end(struct k2_lookahead *ahead, u32 stream, u64 now_ns);

/*
 * A request of @level (K2_RT_LEVELS: background) was with the device that the caller knows of only
 * now that it has ended. It had arrived at @since_ns.
 */
void k2_lookahead_bypassed(struct k2_lookahead *ahead, u32 level, u64 since_ns, u64 now_ns);
void k2_lookahead_rt_bypassed(struct k2_lookahead *ahead, u32 level, u64 since_ns, u64 now_ns);

/* A request that may be cut. */
struct k2_cut {
	u32 op;
	u32 bytes;
	u32 block_bytes; /* cut at multiples of it */
	u32 inflight; /* other commands with the device, watched or not */
	u32 rt_inflight; /* of these, real-time */
	bool is_rt; /* of a lower level */
	bool may_wait; /* the device may be left idle for real-time that is about to come */
	bool is_paced; /* if a write, it keeps the pace of background writes */
	/* Of k2_lookahead_make_room(). */
	u64 room_ns;
	u64 wait_until_ns; /* 0: nothing is waited for */
};

/*
 * For how long the device may work on a request that levels before @level are guarded against, and
 * if it does not fit, until when to wait for real-time. Called with k2_lookahead_guards() true.
 */
void k2_lookahead_make_room(struct k2_lookahead *ahead, struct k2_cut *cut, u32 level, u64 now_ns);

/*
 * How much of a request to dispatch now. 0: nothing before another command has ended, or if none is
 * in flight, before cut->wait_until_ns or a real-time request.
 */
u32 k2_lookahead_piece_bytes(struct k2_lookahead *ahead, const struct k2_cut *cut, u64 now_ns);

/*
 * A read or write of @level (K2_RT_LEVELS: background) goes to the device, where @inflight others
 * are; returns its number, for k2_lookahead_done(), or K2_FLIGHT_NONE. One that is not watched is
 * told by k2_lookahead_unwatched(), which returns the same.
 */
u32 k2_lookahead_watch(struct k2_lookahead *ahead, u32 level, u32 op, u32 bytes, u32 inflight,
		       u64 now_ns);
static inline u32 k2_lookahead_unwatched(struct k2_lookahead *ahead, u32 level, u64 now_ns)
{
	ahead->is_alone = false;
	if (!ahead->declared.task)
		return K2_FLIGHT_NONE;
	k2_declared_untimed(&ahead->declared, level, now_ns);
	return K2_FLIGHT_UNTIMED;
}

/* Is a real-time request of a level after @level watched? */
static inline bool k2_lookahead_has_lower(const struct k2_lookahead *ahead, u32 level)
{
	return ahead->levels_watched >> (level + 1);
}

/* The device has done it. */
void k2_lookahead_done(struct k2_lookahead *ahead, u32 flight, u64 now_ns);
/* The driver gave it back: what time it took says nothing. */
void k2_lookahead_cancel(struct k2_lookahead *ahead, u32 flight, u64 now_ns);

#endif /* K2_LOOKAHEAD_H */
