/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Look-ahead: how large a piece may be without blocking a real-time request for longer than
 * rt_block_us.
 *
 * A piece must end before the next real-time request may come (k2_streams.h), plus rt_block_us. k2
 * learns how long it takes (k2_device.h), and adds the commands that are in flight already. Without
 * a real-time process, no request is split.
 *
 * The bound. A real-time request waits at most rt_block_us for background reads and writes, if its
 * process has made one before and it comes no earlier than the earlier ones allow. The device must
 * need at most rt_block_us for K2_PIECE_MIN, and no longer than in the last seconds (unless
 * is_strict: than for the last commands). A stall of the device (k2_device.h), such as a flash
 * card's pause for programming, comes on top: no piece is short enough to avoid it. k2 counts
 * stalls and early arrivals.
 *
 * With several requests in flight, each adds less to the wait than the time it takes alone. k2 also
 * learns how long they delay another (k2_delay.h).
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
 * The default: the smallest bound that eMMC without a command queue can keep, where a command of 4
 * KiB takes 150 to 430 us.
 */
#define K2_RT_BLOCK_US_DEFAULT 440U
/* Upper end of rt_idle_ms, and its default. */
#define K2_RT_IDLE_MS_LIMIT   3600000U
#define K2_RT_IDLE_MS_DEFAULT 10000U

#define K2_FLIGHT_NONE K2_FLIGHTS
/* The number of a command that is not measured, for whose end declared tasks may wait. */
#define K2_FLIGHT_UNTIMED (K2_FLIGHTS + 1)

/* A command that is with the device and is measured. */
struct k2_flight {
	u32 op;
	u32 bytes;
	u32 level; /* K2_RT_LEVELS: background */
	u64 since_ns;
	u64 needs_ns; /* alone */
	bool jumps; /* it is background that does not begin where the last command ended */
	/* When it was dispatched: the number of others with the device, or 0 if unknown; */
	u32 others;
	u64 others_ns; /* the time of these one by one, */
	u64 worked_ns; /* and how long the device had worked on them */
};

struct k2_lookahead {
	u64 rt_block_ns; /* 0: off */
	bool is_strict; /* pieces keep rt_block_us even if a slow episode begins */
	u64 rt_idle_ns; /* a process silent for this long is not guarded; 0: all are */
	struct k2_streams streams;
	struct k2_device device;
	struct k2_anticipation anticipation;
	struct k2_flight flight[K2_FLIGHTS];
	u32 watched; /* one bit for each measured command */
	u8 level_watched[K2_RT_LEVELS]; /* measured commands of each real-time level */
	u32 levels_watched; /* one bit for each level that has some */
	u32 watched_count;
	u32 first; /* the command that found the device idle, until its end; or K2_FLIGHT_NONE */
	bool is_alone; /* no other command has joined it */
	/* A command runs to measure its time, so no other background may join it. */
	bool is_probing;
	u32 probe; /* that command; K2_FLIGHT_NONE before it is dispatched */
	u64 needs_ns, rt_needs_ns; /* sums over measured commands: all, and real-time */
	u64 busy_ns; /* when the device began to work on its present commands */
	struct k2_delay delay;
	struct k2_pace pace;
	struct k2_declared declared;
	u64 held_since_ns; /* since then the next piece does not fit; 0: it fits */
	/* The last command was a piece of a request of left_queue, of which left_bytes are left. */
	u32 left_queue, left_bytes;
	bool jumps; /* the next command does not begin where the last one ended */
	u32 unwatched; /* dispatches while no process is guarded */
	struct k2_excess excess;
};

void k2_lookahead_init(struct k2_lookahead *ahead);
/* False: the value is out of range and not set. */
bool k2_lookahead_set_rt_block_us(struct k2_lookahead *ahead, u32 rt_block_us);

bool k2_lookahead_set_rt_idle_ms(struct k2_lookahead *ahead, u32 rt_idle_ms);

/* Is there a guarded real-time process of a level before @level? */
bool k2_lookahead_guards(const struct k2_lookahead *ahead, u32 level, u64 now_ns);

/* A real-time request arrives; returns its stream for k2_lookahead_rt_end(). */
u32 k2_lookahead_rt_arrival(struct k2_lookahead *ahead, const struct k2_thread *thread, u64 now_ns);
void k2_lookahead_rt_end(struct k2_lookahead *ahead, u32 stream, u64 now_ns);

/*
 * A request of @level (K2_RT_LEVELS: background) that k2 did not dispatch has ended. The caller
 * knows of it only now; the request arrived at @since_ns.
 */
void k2_lookahead_bypassed(struct k2_lookahead *ahead, u32 level, u64 since_ns, u64 now_ns);
void k2_lookahead_rt_bypassed(struct k2_lookahead *ahead, u32 level, u64 since_ns, u64 now_ns);

/* A request that may be split. */
struct k2_cut {
	u32 op;
	u32 bytes;
	u32 block_bytes; /* pieces are multiples of this */
	u32 inflight; /* other commands with the device, measured or not */
	u32 rt_inflight; /* of these, the real-time ones */
	bool is_rt; /* it is real-time, of a lower level */
	bool may_wait; /* the device may stay idle until a real-time request comes */
	bool is_paced; /* if it is a write, the pace of writes limits it */
	/* Results of k2_lookahead_make_room(). */
	u64 room_ns;
	u64 wait_until_ns; /* 0: no real-time request is waited for */
};

/*
 * Computes how long the device may work on a request of a level not before @level, and if no piece
 * fits, until when to wait for real-time. The caller has checked k2_lookahead_guards().
 */
void k2_lookahead_make_room(struct k2_lookahead *ahead, struct k2_cut *cut, u32 level, u64 now_ns);

/*
 * How much of a request to dispatch now. 0: wait until another command ends. If none is in flight,
 * wait until cut->wait_until_ns or a real-time request.
 */
u32 k2_lookahead_piece_bytes(struct k2_lookahead *ahead, const struct k2_cut *cut, u64 now_ns);

/*
 * A read or write of @level (K2_RT_LEVELS: background) goes to the device, which has @inflight
 * others. Returns a number for k2_lookahead_done(), or K2_FLIGHT_NONE. For a command that is not
 * measured, the caller calls k2_lookahead_unwatched(), which also returns a number.
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

/* Is a real-time request of a level after @level measured? */
static inline bool k2_lookahead_has_lower(const struct k2_lookahead *ahead, u32 level)
{
	return ahead->levels_watched >> (level + 1);
}

/* The device has completed it. */
void k2_lookahead_done(struct k2_lookahead *ahead, u32 flight, u64 now_ns);
/* The driver returned it undone: its time is not learned. */
void k2_lookahead_cancel(struct k2_lookahead *ahead, u32 flight, u64 now_ns);

#endif /* K2_LOOKAHEAD_H */
