/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One order for the two users of a card: mmcblk's queue, which k2 schedules, and a lane of chario
 * (a partition with its own queue), whose commands bypass mmcblk's queue.
 *
 * A lane asks k2 before each command. A command of a lower level never goes before a request of a
 * higher one. On the same level, the one that has waited longer goes first. A lane's background
 * alternates with metadata and best effort. While a lane has the card, k2 dispatches nothing. While
 * a lane waits, k2 dispatches no request that comes after it.
 *
 * chario looks this up by symbol_get(), so it also loads without k2.
 */
#ifndef K2_LANE_H
#define K2_LANE_H

#include <linux/blkdev.h>
#include <linux/list.h>

#define K2_LANE_LEVELS	   9
#define K2_LANE_BACKGROUND (K2_LANE_LEVELS - 1) /* requests that are not real-time */

enum k2_lane_answer {
	K2_LANE_GO, /* the lane has the card once commands that bypass k2 have ended */
	K2_LANE_WAIT, /* ask again when may_go() is called, or for a higher level */
	K2_LANE_FROZEN, /* the queue is being frozen: ask again in a moment */
	K2_LANE_NO_K2, /* another scheduler has the queue */
};

struct k2_data;

struct k2_lane {
	struct request_queue *queue; /* mmcblk's */
	/*
	 * k2 calls this when the lane should ask again, in any context, with a lock that ask() and
	 * give() take. After K2_LANE_OFFER_NS without ask(), other requests go first.
	 */
	void (*may_go)(struct k2_lane *lane);

	/* Requests wait while the lane has the card. This is a hint without a lock. */
	bool is_wanted;

	/* Used by k2 from ask() returning GO or WAIT until give() with @waits false. */
	struct k2_data *k2;
	struct list_head entry;
	u8 level;
	bool waits;
	u64 since_ns;
	u64 offered_ns; /* when may_go() was called; 0: not yet */
};

/* Both are called in process context, for one lane by one thread at a time. */
struct k2_lane_order {
	/* May a command of @level that has waited since @since_ns (monotonic) go now? */
	enum k2_lane_answer (*ask)(struct k2_lane *lane, u8 level, u64 since_ns);
	/* The host is released. @waits: a command still waits. */
	void (*give)(struct k2_lane *lane, bool waits);
};

extern const struct k2_lane_order k2_lane_order;

#endif /* K2_LANE_H */
