/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Writes of the background, paced just below what the device drains.
 *
 * Problem: an SSD takes a write into its buffer in some 10 us, and programs flash from there. Once
 * background has filled the buffer, a write waits for a program or for garbage collection, 1 to
 * 5 ms, with one in flight as with many. Below the rate at which the device drains the buffer it
 * has room, and a write of a real-time process takes no longer than alone.
 *
 * Model. A write that takes longer than those before it explain, and than real-time is to wait, has
 * stalled, by that much. Time is cut into windows. After each with a stall the pace falls, by an
 * eighth until a pace is found that keeps the device calm, and then in proportion to the stall;
 * after each without one, in which the pace held a write back, it rises, the faster the longer the
 * device has been calm. The two balance where the device is stalled for 1 in 1024 of the time: so
 * rarely does a real-time write find it stalled.
 *
 * Stalls that are not half as frequent at the lowest pace as without one are the device's own (a
 * flash card's pauses): then there is no pace for a time, and for twice as long after each trial
 * that does not help.
 *
 * Next to real-time reads. A read waits for a die that programs data of the buffer. Hardly any pace
 * shortens the longest of these waits, but one shortens the median: it falls while nearly half of
 * the reads wait for longer than rt_block_us, and rises while less than two fifths do.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_PACE_H
#define K2_PACE_H

#include "k2_types.h"

struct k2_pace {
	u32 rate; /* bytes per ms; 0: not paced */
	u32 done; /* what the device can do, bytes per ms */
	u64 due_ns; /* all that was dispatched has been drained, at this rate */
	/* When a real-time write, or a read next to writes, last came; 0: never. */
	u64 rt_write_ns, rt_read_ns;
	u64 off_until_ns; /* a pace has not helped */
	u64 off_ns; /* for how long it is left off the next time */
	/* Since the device was last judged: done, let through, in this time. */
	u64 paced_bytes, allowed_bytes, paced_ns;
	u32 calm; /* windows without a stall, one after the other */
	bool is_found; /* a rate that keeps the device calm */
	/* Of a trial, without a pace or at the lowest: */
	u32 windows;
	u32 stalled;
	u32 windows_free; /* of the trial without a pace */
	/* In this window: */
	u64 window_ns; /* its begin; 0: there is none */
	u64 bytes; /* written */
	u64 busy_ns; /* the device had writes */
	u64 stalled_ns;
	u32 reads, late_reads; /* of real-time, next to writes */
	bool has_held;
	/* Now: */
	u32 inflight; /* writes */
	u64 since_ns; /* they are, and are counted */
	u64 stall_ns; /* the end of the last stall that was counted */
};

/* A real-time write arrives. */
void k2_pace_rt_write(struct k2_pace *pace, u64 now_ns);

/* One of its reads has ended. @is_late: it took longer than it may. */
void k2_pace_rt_read(struct k2_pace *pace, bool is_late, u64 now_ns);

/* The next write of the background may go at this time; 0: now. */
u64 k2_pace_until_ns(struct k2_pace *pace, u64 now_ns);

/*
 * Do writes of @bytes, each of which takes @needs_ns, one at a time, all that the pace lets
 * through? Then more of them at once would only be before a real-time one in the device.
 */
bool k2_pace_one_is_enough(struct k2_pace *pace, u32 bytes, u64 needs_ns, u64 now_ns);

/* A write goes to the device. */
void k2_pace_begin(struct k2_pace *pace, u32 bytes, u64 now_ns);
/* It has ended; @stalled_ns: 0 if it has not stalled. */
void k2_pace_end(struct k2_pace *pace, u32 bytes, u64 stalled_ns, u64 now_ns);
/* The driver gave it back. */
void k2_pace_cancel(struct k2_pace *pace);
/* Background goes to the device that is not told: this window says nothing. */
static inline void k2_pace_untold(struct k2_pace *pace)
{
	pace->window_ns = 0;
}

#endif /* K2_PACE_H */
