/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the device is believed to need for a command, learned from those it has done.
 *
 * Model, per operation: time(size) = line(size) + reserve. The line is what a command needs that
 * nothing delays: the lower convex hull of the best sample per octave of size, proportional above
 * the largest, constant below the smallest. The reserve is the most by which a command missed the
 * line: slow episodes, jumps, jitter. Both are of this epoch and the last, so what the device no
 * longer does is forgotten. Before the first epoch is over, or so many commands, a slow episode may
 * not have been seen, and the reserve is the most that it can be.
 *
 * A command that misses the line by more than twice what a short one takes has stalled (a
 * flash card prepares a block, a device retries): cutting would not have helped, so it is counted,
 * and not learned, unless stalls follow each other: then the device has changed, and learning
 * begins again.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_DEVICE_H
#define K2_DEVICE_H

#include "k2_types.h"

#define K2_DEVICE_OPS 2 /* read, write */
/* Sizes are rounded up to this; nothing is cut smaller. */
#define K2_PIECE_MIN_SHIFT 12
#define K2_PIECE_MIN	   4096U
/* 4 KiB to 8 MiB. */
#define K2_SIZES 12

struct k2_sample {
	u32 units; /* of K2_PIECE_MIN; 0: none */
	u32 ns;
};

struct k2_op_device {
	struct k2_sample best[2][K2_SIZES]; /* this epoch, the last; by octave of size */
	u32 line_ns[K2_SIZES]; /* of K2_PIECE_MIN << i */
	u32 reserve_ns[2];
	u32 recent_ns[2]; /* the same of these few commands, and the few before */
	u32 recent_commands;
	u64 epoch_ns;
	u32 epoch_commands; /* up to what an epoch needs */
	u32 epoch_samples; /* of those that nothing joined */
	u32 stalls_in_a_row;
	bool is_known;
	bool has_seen_epoch; /* a whole one, or been told */
	u64 stalls;
	u64 stall_ns_max;
};

struct k2_device {
	struct k2_op_device op[K2_DEVICE_OPS];
};

/*
 * A command of @bytes that found the device idle took @took_ns. @was_joined: others came before it
 * ended, and may have delayed it.
 */
void k2_device_learn(struct k2_device *device, u32 op, u32 bytes, u64 took_ns, bool was_joined,
		     u64 now_ns);

/*
 * Believe, until it is forgotten or something better is learned, that a command of @bytes takes
 * @ns, and that commands miss the line by @reserve_ns.
 */
void k2_device_believe(struct k2_device *device, u32 op, u32 bytes, u64 ns, u64 reserve_ns);

/* The believed time of a command; 0 if nothing is known of the operation. */
u64 k2_device_time_ns(const struct k2_device *device, u32 op, u32 bytes);

/* Has no command of about this size had the device for itself lately? */
bool k2_device_lacks(const struct k2_device *device, u32 op, u32 bytes);

/* What misses the line by more has stalled. */
static inline u32 k2_overrun_ns_max(const struct k2_op_device *op)
{
	return 2 * op->line_ns[0];
}

static inline u32 k2_op_reserve_ns(const struct k2_op_device *op)
{
	u32 ns = op->reserve_ns[0] > op->reserve_ns[1] ? op->reserve_ns[0] : op->reserve_ns[1];

	/* It may not have been slow yet. */
	if (!op->has_seen_epoch && ns < k2_overrun_ns_max(op))
		return k2_overrun_ns_max(op);
	return ns;
}

/* By how much a command may miss the line. */
static inline u64 k2_device_reserve_ns(const struct k2_device *device, u32 op)
{
	return k2_op_reserve_ns(&device->op[op]);
}

/* By how much the last few have missed it: does the device have a slow episode now? */
u64 k2_device_recent_ns(const struct k2_device *device, u32 op);

/* The largest part of @bytes, in whole K2_PIECE_MIN and at least one, believed to fit. */
u32 k2_device_fit(const struct k2_device *device, u32 op, u32 bytes, u64 room_ns, u64 reserve_ns);

#endif /* K2_DEVICE_H */
