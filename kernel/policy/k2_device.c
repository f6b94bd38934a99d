// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_device.h"

#define EPOCH_NS      4000000000ULL
#define EPOCH_SAMPLES 64
/* This many samples of a fast device show its slowest before an epoch has passed. */
#define SAMPLES_ENOUGH 8192
#define NS_MIN	       1000U
#define NS_MAX	       2000000000U
/* After this many stalls in a row, the device has become slower. */
#define STALLS_MAX	8
#define RECENT_COMMANDS 24

static u32 units_of(u32 bytes)
{
	u32 units = (bytes >> K2_PIECE_MIN_SHIFT) + !!(bytes & (K2_PIECE_MIN - 1));

	return units ? units : 1;
}

/* log2 of @units, which is at least 1. */
static u32 octave_of(u32 units)
{
	u32 octave = 31 - (u32)__builtin_clz(units);

	return octave < K2_SIZES ? octave : K2_SIZES - 1;
}

/* Does @a need less time per byte than @b? */
static bool is_better(const struct k2_sample *a, const struct k2_sample *b)
{
	return !b->units || (u64)a->ns * b->units < (u64)b->ns * a->units;
}

static const struct k2_sample *best_of(const struct k2_op_device *op, u32 octave)
{
	const struct k2_sample *now = &op->best[0][octave], *before = &op->best[1][octave];

	return now->units && is_better(now, before) ? now : before;
}

/* Is @c on or below the line from @a through @b? Their sizes rise in this order. */
static bool is_below(const struct k2_sample *a, const struct k2_sample *b,
		     const struct k2_sample *c)
{
	s64 left = ((s64)c->ns - a->ns) * ((s64)b->units - a->units);
	s64 right = ((s64)b->ns - a->ns) * ((s64)c->units - a->units);

	return left <= right;
}

/* Finds the corners of the lower convex hull of the samples; returns their number. */
static u32 hull_of(const struct k2_op_device *op, struct k2_sample *hull)
{
	u32 corners = 0, octave;

	for (octave = 0; octave < K2_SIZES; octave++) {
		const struct k2_sample *sample = best_of(op, octave);

		if (!sample->units)
			continue;
		while (corners >= 2 && is_below(&hull[corners - 2], &hull[corners - 1], sample))
			corners--;
		/* A sample that took longer than a larger one is not at the edge. */
		while (corners && hull[corners - 1].ns >= sample->ns)
			corners--;
		hull[corners++] = *sample;
	}
	return corners;
}

/* No command takes no time, even if the device reports so. */
static u32 clamp_ns(u64 ns)
{
	if (ns < NS_MIN)
		return NS_MIN;
	return ns < NS_MAX ? (u32)ns : NS_MAX;
}

static u32 hull_ns(const struct k2_sample *hull, u32 corners, u32 units)
{
	const struct k2_sample *last = &hull[corners - 1];
	u32 i;

	if (units <= hull[0].units)
		return hull[0].ns;
	for (i = 1; i < corners; i++) {
		const struct k2_sample *a = &hull[i - 1], *b = &hull[i];

		if (units <= b->units)
			return a->ns + (u32)k2_div((u64)(b->ns - a->ns) * (units - a->units),
						   b->units - a->units);
	}
	return clamp_ns(k2_div((u64)last->ns * units, last->units));
}

static void draw_line(struct k2_op_device *op)
{
	struct k2_sample hull[K2_SIZES];
	u32 corners = hull_of(op, hull), i;

	op->is_known = corners > 0;
	for (i = 0; corners && i < K2_SIZES; i++)
		op->line_ns[i] = hull_ns(hull, corners, 1U << i);
}

static u32 line_ns(const struct k2_op_device *op, u32 units)
{
	u32 octave = octave_of(units);
	u32 low = op->line_ns[octave];
	u64 more = units - (1U << octave);

	if (octave + 1 < K2_SIZES)
		return low + (u32)((op->line_ns[octave + 1] - low) * more >> octave);
	return clamp_ns((u64)low + (low * more >> octave));
}

static void turn_epoch(struct k2_op_device *op, u64 now_ns)
{
	u32 i;

	if (op->epoch_samples >= SAMPLES_ENOUGH)
		op->has_seen_epoch = true;
	if (now_ns - op->epoch_ns < EPOCH_NS || op->epoch_commands < EPOCH_SAMPLES)
		return;
	op->has_seen_epoch = true;
	if (op->epoch_samples < EPOCH_SAMPLES)
		return;
	for (i = 0; i < K2_SIZES; i++) {
		op->best[1][i] = op->best[0][i];
		op->best[0][i].units = 0;
	}
	op->reserve_ns[1] = op->reserve_ns[0];
	op->reserve_ns[0] = 0;
	if (op->jump_ns[0])
		op->jump_ns[1] = op->jump_ns[0];
	op->jump_ns[0] = 0;
	op->epoch_ns = now_ns;
	op->epoch_commands = 0;
	op->epoch_samples = 0;
	draw_line(op);
}

static void start_again(struct k2_op_device *op, u64 now_ns)
{
	u64 stalls = op->stalls, stall_ns_max = op->stall_ns_max;

	*op = (struct k2_op_device){
		.epoch_ns = now_ns,
		.stalls = stalls,
		.stall_ns_max = stall_ns_max,
	};
}

/* Returns the overrun without the jump. */
static u32 learn_jump(struct k2_op_device *op, u32 over_ns, bool jumps)
{
	if (!jumps)
		return over_ns;
	if (!op->jump_ns[0] || over_ns < op->jump_ns[0])
		op->jump_ns[0] = (u32)k2_max(over_ns, 1);
	return (u32)k2_minus(over_ns, k2_op_jump_ns(op));
}

/* Returns whether to learn from the time of the command. */
static bool note_overrun(struct k2_op_device *op, u32 units, u32 ns, bool was_joined, bool jumps,
			 u64 now_ns)
{
	u32 wanted_ns = line_ns(op, units), over_ns;

	over_ns = ns > wanted_ns ? ns - wanted_ns : 0;
	/* The commands that joined it have delayed it. */
	if (was_joined && over_ns > op->line_ns[0])
		return !best_of(op, octave_of(units))->units;
	if (over_ns > k2_overrun_ns_max(op)) {
		op->stalls++;
		if (over_ns > op->stall_ns_max)
			op->stall_ns_max = over_ns;
		if (++op->stalls_in_a_row < STALLS_MAX)
			return false;
		start_again(op, now_ns);
		return true;
	}
	op->stalls_in_a_row = 0;
	if (++op->recent_commands == RECENT_COMMANDS) {
		op->recent_commands = 0;
		op->recent_ns[1] = op->recent_ns[0];
		op->recent_ns[0] = 0;
	}
	if (over_ns > op->reserve_ns[0])
		op->reserve_ns[0] = over_ns;
	op->last_ns = learn_jump(op, over_ns, jumps);
	if (op->last_ns > op->recent_ns[0])
		op->recent_ns[0] = op->last_ns;
	return true;
}

void k2_device_learn(struct k2_device *device, u32 op_number, u32 bytes, u64 took_ns,
		     bool was_joined, bool jumps, u64 now_ns)
{
	struct k2_op_device *op = &device->op[op_number];
	struct k2_sample sample = {units_of(bytes), clamp_ns(took_ns)};
	struct k2_sample *best = &op->best[0][octave_of(sample.units)];
	bool draw;

	if (!op->is_known)
		op->epoch_ns = now_ns;
	turn_epoch(op, now_ns);
	op->epoch_commands += op->epoch_commands < EPOCH_SAMPLES;
	/* A command that others joined does not show the slowest time, and ends no epoch. */
	op->epoch_samples += !was_joined;
	if (op->is_known && !note_overrun(op, sample.units, sample.ns, was_joined, jumps, now_ns))
		return;
	if (!is_better(&sample, best))
		return;
	draw = !op->is_known || is_better(&sample, best_of(op, octave_of(sample.units)));
	*best = sample;
	if (draw)
		draw_line(op);
}

void k2_device_believe(struct k2_device *device, u32 op_number, u32 bytes, u64 ns, u64 reserve_ns)
{
	struct k2_op_device *op = &device->op[op_number];
	struct k2_sample sample = {units_of(bytes), clamp_ns(ns)};

	op->best[0][octave_of(sample.units)] = sample;
	op->reserve_ns[0] = reserve_ns < NS_MAX ? (u32)reserve_ns : NS_MAX;
	op->has_seen_epoch = true;
	draw_line(op);
}

u64 k2_device_time_ns(const struct k2_device *device, u32 op_number, u32 bytes)
{
	const struct k2_op_device *op = &device->op[op_number];

	return op->is_known ? (u64)line_ns(op, units_of(bytes)) + k2_op_reserve_ns(op) : 0;
}

bool k2_device_lacks(const struct k2_device *device, u32 op_number, u32 bytes)
{
	return !best_of(&device->op[op_number], octave_of(units_of(bytes)))->units;
}

u32 k2_device_fit(const struct k2_device *device, u32 op_number, u32 bytes, u64 room_ns,
		  u64 reserve_ns)
{
	const struct k2_op_device *op = &device->op[op_number];
	u32 units = units_of(bytes), low = 0, bit;

	if (!op->is_known)
		return bytes < K2_PIECE_MIN ? bytes : K2_PIECE_MIN;
	room_ns = room_ns > reserve_ns ? room_ns - reserve_ns : 0;
	if (line_ns(op, units) <= room_ns)
		return bytes;
	/* Find the largest number of units below it that fits, bit by bit; at least one. */
	for (bit = 1U << octave_of(units); bit; bit >>= 1)
		if (low + bit < units && line_ns(op, low + bit) <= room_ns)
			low += bit;
	return (low ? low : 1) << K2_PIECE_MIN_SHIFT;
}

u64 k2_device_recent_ns(const struct k2_device *device, u32 op_number, bool jumps)
{
	const struct k2_op_device *op = &device->op[op_number];

	return k2_max(op->recent_ns[0], op->recent_ns[1]) + (jumps ? k2_op_jump_ns(op) : 0);
}
