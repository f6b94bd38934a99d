/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One order for two users of a card: mmcblk's queue, which k2 keeps, and a lane of chario, whose
 * commands go past that queue.
 *
 * Before each command a lane asks k2. A command of a lower level never goes before a request of a
 * higher one; of the same level, who has waited longer goes first. A lane's background takes
 * turns with metadata and best effort. While a lane has the card, k2 dispatches nothing; while one
 * waits, nothing that comes after it.
 *
 * chario finds this by symbol_get(), so that it loads without k2.
 */
#ifndef K2_LANE_H
#define K2_LANE_H

#include <linux/blkdev.h>
#include <linux/list.h>

#define K2_LANE_LEVELS	   9
#define K2_LANE_BACKGROUND (K2_LANE_LEVELS - 1) /* all that is not real-time */

enum k2_lane_answer {
	K2_LANE_GO, /* the card is the lane's, as soon as what went past k2 has ended */
	K2_LANE_WAIT, /* ask again when may_go() is called, or for a higher level */
	K2_LANE_FROZEN, /* the queue is being frozen: ask again in a moment */
	K2_LANE_NO_K2, /* another scheduler has the queue */
};

struct k2_data;

struct k2_lane {
	struct request_queue *queue; /* mmcblk's */
	/*
	 * It is worth asking again. Called in any context, with a lock that ask() and give() take.
	 * A lane that does not ask for K2_LANE_OFFER_NS lets others go.
	 */
	void (*may_go)(struct k2_lane *lane);

	/* Requests wait for it while it has the card. A hint, without a lock. */
	bool is_wanted;

	/* Of k2, as long as ask() has said GO or WAIT, and give() not that it has gone. */
	struct k2_data *k2;
	struct list_head entry;
	u8 level;
	bool waits;
	u64 since_ns;
	u64 offered_ns; /* when may_go() was called; 0: it was not */
};

/* Both are called in process context, by one thread at a time for a lane. */
struct k2_lane_order {
	/* A command of @level waits since @since_ns (monotonic): may it go now? */
	enum k2_lane_answer (*ask)(struct k2_lane *lane, u8 level, u64 since_ns);
	/* The host is released. @waits: a command still waits. */
	void (*give)(struct k2_lane *lane, bool waits);
};

extern const struct k2_lane_order k2_lane_order;

#endif /* K2_LANE_H */
