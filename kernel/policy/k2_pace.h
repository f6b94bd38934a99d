/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limits the rate of background writes to just below what the device drains.
 *
 * Problem: an SSD takes a write into its buffer in about 10 us, and programs flash from there. Once
 * background writes have filled the buffer, a write waits 1 to 5 ms for a program or for garbage
 * collection, at any queue depth. Below the rate at which the device drains the buffer, the buffer
 * has room, and a real-time write takes no longer than alone.
 *
 * Model. A write has stalled by the time that neither its own time, nor the writes before it, nor
 * rt_block_us explains. Time is divided into windows. After a window with a stall the pace falls:
 * by an eighth until a pace without stalls is found, later in proportion to the stall. After a
 * window without a stall, in which the pace held back a write, it rises, and faster the longer
 * there were no stalls. The two balance where stalls take 1/1024 of the time: a real-time write
 * rarely finds the device stalled.
 *
 * If the lowest pace does not halve the frequency of stalls, they are the device's own (a flash
 * card's pauses). Then there is no pace for a time, which doubles after each trial that does not
 * help.
 *
 * Real-time reads. A read waits for a die that programs data of the buffer. Hardly any pace
 * shortens the longest of these waits, but a pace shortens the median: it falls while almost half
 * of the reads wait longer than rt_block_us, and rises while fewer than two fifths do.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_PACE_H
#define K2_PACE_H

#include "k2_types.h"

struct k2_pace {
	u32 rate; /* 0: there is no pace */
	u32 done; /* the rate that the device can sustain, bytes per ms */
	u64 due_ns; /* when all dispatched writes are drained at this rate */
	/* When a real-time write last came, and a real-time read alongside writes; 0: never. */
	u64 rt_write_ns, rt_read_ns;
	u64 off_until_ns; /* there is no pace until then, as one did not help */
	u64 off_ns; /* the length of the next such time */
	/* Since the device was last judged: bytes written, bytes allowed, time. */
	u64 paced_bytes, allowed_bytes, paced_ns;
	u32 calm; /* windows without a stall, in a row */
	bool is_found; /* a rate without stalls is known */
	/* In a trial, without a pace or at the lowest pace: */
	u32 windows;
	u32 stalled;
	u32 windows_free; /* windows of the trial without a pace */
	/* In this window: */
	u64 window_ns; /* its start; 0: there is no window */
	u64 bytes; /* written */
	u64 busy_ns; /* the time that the device had writes */
	u64 stalled_ns;
	u32 reads, late_reads; /* real-time reads alongside writes */
	bool has_held;
	/* Now: */
	u32 inflight; /* writes */
	u64 since_ns; /* busy_ns is counted up to here */
	u64 stall_ns; /* the end of the last stall that was counted */
};

/* A real-time write arrives. */
void k2_pace_rt_write(struct k2_pace *pace, u64 now_ns);

/* A real-time read has ended. @is_late: it took longer than rt_block_us allows. */
void k2_pace_rt_read(struct k2_pace *pace, bool is_late, u64 now_ns);

/* When the next background write may go; 0: now. */
u64 k2_pace_until_ns(struct k2_pace *pace, u64 now_ns);

/*
 * Do writes of @bytes that take @needs_ns each reach the pace one at a time? Then more of them at
 * once would only delay a real-time write.
 */
bool k2_pace_one_is_enough(struct k2_pace *pace, u32 bytes, u64 needs_ns, u64 now_ns);

/* A write goes to the device. */
void k2_pace_begin(struct k2_pace *pace, u32 bytes, u64 now_ns);
/* It has ended. @stalled_ns: how long it has stalled, or 0. */
void k2_pace_end(struct k2_pace *pace, u32 bytes, u64 stalled_ns, u64 now_ns);
/* The driver returned it undone. */
void k2_pace_cancel(struct k2_pace *pace);
/* Background goes to the device unmeasured: nothing is learned from this window. */
static inline void k2_pace_untold(struct k2_pace *pace)
{
	pace->window_ns = 0;
}

#endif /* K2_PACE_H */
