/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A model of how long a device needs for a command, learned from past commands.
 *
 * Model, per operation: time(size) = line(size) + reserve. The line is the time of an undelayed
 * command: the lower convex hull of the best sample per octave of size, proportional above the
 * largest size, constant below the smallest. The reserve is the most by which a command exceeded
 * the line: slow episodes, steps, jitter. Both cover this epoch and the last, so old behaviour is
 * forgotten. Until an epoch has passed, or a fast device has done many commands, a slow episode may
 * not have been seen. Until then, the reserve is the most that it can be.
 *
 * A card reads on faster than elsewhere. The least overrun of commands that jump counts apart
 * from the other overruns: a piece that reads on may be larger.
 *
 * A command that exceeds the line by more than twice the time of a short one has stalled (a flash
 * card prepares a block, a device retries). A smaller piece would not have helped. Such a command
 * is counted and not learned. If stalls follow each other, the device has changed, and learning
 * starts again.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_DEVICE_H
#define K2_DEVICE_H

#include "k2_types.h"

#define K2_DEVICE_OPS 2 /* read, write */
/* Sizes are rounded up to this; no piece is smaller. */
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
	/* The largest overrun, without the jump, of these few commands, and of the few before. */
	u32 recent_ns[2];
	u32 recent_commands;
	u32 last_ns; /* the same of the last command */
	/* The least overrun of background that jumped, in this epoch and the last; 0: none did. */
	u32 jump_ns[2];
	u64 epoch_ns;
	u32 epoch_commands; /* counted up to the length of an epoch */
	u32 epoch_samples; /* commands that no other joined */
	u32 stalls_in_a_row;
	bool is_known;
	bool has_seen_epoch; /* a whole epoch has passed, or the caller has given a time */
	u64 stalls;
	u64 stall_ns_max;
};

struct k2_device {
	struct k2_op_device op[K2_DEVICE_OPS];
};

/*
 * A command of @bytes that found the device idle took @took_ns. @was_joined: others came before it
 * ended, and may have delayed it. @jumps: it did not begin where the last command ended.
 */
void k2_device_learn(struct k2_device *device, u32 op, u32 bytes, u64 took_ns, bool was_joined,
		     bool jumps, u64 now_ns);

/*
 * Assume that a command of @bytes takes @ns, and that commands exceed the line by @reserve_ns,
 * until an epoch passes or a better time is learned.
 */
void k2_device_believe(struct k2_device *device, u32 op, u32 bytes, u64 ns, u64 reserve_ns);

/* The predicted time of a command; 0 if no command of the operation is known. */
u64 k2_device_time_ns(const struct k2_device *device, u32 op, u32 bytes);

/* Has no command of about this size run alone lately? */
bool k2_device_lacks(const struct k2_device *device, u32 op, u32 bytes);

/* A command that exceeds the line by more has stalled. */
static inline u32 k2_overrun_ns_max(const struct k2_op_device *op)
{
	return 2 * op->line_ns[0];
}

static inline u32 k2_op_reserve_ns(const struct k2_op_device *op)
{
	u32 ns = op->reserve_ns[0] > op->reserve_ns[1] ? op->reserve_ns[0] : op->reserve_ns[1];

	/* The device may not have been slow yet. */
	if (!op->has_seen_epoch && ns < k2_overrun_ns_max(op))
		return k2_overrun_ns_max(op);
	return ns;
}

/* The most by which a command may exceed the line. */
static inline u64 k2_device_reserve_ns(const struct k2_device *device, u32 op)
{
	return k2_op_reserve_ns(&device->op[op]);
}

static inline u32 k2_op_jump_ns(const struct k2_op_device *op)
{
	u32 now = op->jump_ns[0], before = op->jump_ns[1];

	return now && (!before || now < before) ? now : before;
}

/*
 * The most by which a command exceeds the line at the speed of the last few: is the device in a
 * slow episode?
 */
u64 k2_device_recent_ns(const struct k2_device *device, u32 op, bool jumps);

/* By how much the last command exceeded it, without the jump. */
static inline u64 k2_device_last_ns(const struct k2_device *device, u32 op)
{
	return device->op[op].last_ns;
}

/* The largest part of @bytes that is predicted to fit, in whole K2_PIECE_MIN, at least one. */
u32 k2_device_fit(const struct k2_device *device, u32 op, u32 bytes, u64 room_ns, u64 reserve_ns);

#endif /* K2_DEVICE_H */
