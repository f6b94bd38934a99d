// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_pace.h"

#define NS_PER_MS 1000000ULL
#define WINDOW_NS (100 * NS_PER_MS)
/* Without a real-time request for this long, there is no pace. */
#define RT_IDLE_NS (10000 * NS_PER_MS)
/* Too many late reads count as a stall of this time. */
#define LATE_NS (WINDOW_NS / 64)
/* Reads then lower the pace by the first part; with fewer late ones it rises by the second. */
#define READ_LESS_SHIFT 3
#define READ_MORE_SHIFT 5
/* This much may go at once: one timer per 4 KiB would cost too much. */
#define BURST_NS (NS_PER_MS / 8)
/* A stall lowers the pace by this part before a pace is found; later, by at most this part. */
#define LESS_SHIFT 3
/* A pace is found after this many windows without a stall. */
#define FOUND_WINDOWS 16
/* After that, stalls should take this part of the time. */
#define STALLED_SHIFT 10
/* A stall of this length would take away the whole pace. */
#define GAIN_NS (200 * NS_PER_MS)
/* After this many windows without a stall, the pace rises twice as fast. */
#define CALM_WINDOWS 16
#define CALM_MAX     256
/* The lowest pace, as a part of the rate that the device can sustain. */
#define LOWEST_SHIFT	  1
#define LOWEST_READ_SHIFT 3
/* A trial ends after this many windows with a stall. */
#define TRIAL_STALLS 4
/* If writes stall for this much of a window, the buffer was full. */
#define FULL_NS	      (WINDOW_NS / 8)
#define OFF_NS_MIN    (8000 * NS_PER_MS)
#define OFF_NS_MAX    (1024000 * NS_PER_MS)
#define AVERAGE_SHIFT 2
/* The device is judged over this time. It has become slower if it does a quarter less. */
#define PACED_NS     (8 * WINDOW_NS)
#define SLOWER_SHIFT 2

void k2_pace_rt_write(struct k2_pace *pace, u64 now_ns)
{
	pace->rt_write_ns = now_ns;
}

void k2_pace_rt_read(struct k2_pace *pace, bool is_late, u64 now_ns)
{
	/* There are no writes that it could have waited for. */
	if (!pace->inflight && !pace->bytes)
		return;
	pace->rt_read_ns = now_ns;
	pace->reads++;
	pace->late_reads += is_late;
}

static bool is_recent(u64 then_ns, u64 now_ns)
{
	return then_ns && now_ns < then_ns + RT_IDLE_NS;
}

/* Is the median read late, or almost? */
static bool are_late(const struct k2_pace *pace)
{
	return pace->late_reads * 9 > pace->reads * 4;
}

static bool is_wanted(const struct k2_pace *pace, u64 now_ns)
{
	return (is_recent(pace->rt_write_ns, now_ns) || is_recent(pace->rt_read_ns, now_ns)) &&
	       now_ns >= pace->off_until_ns;
}

static void begin_trial(struct k2_pace *pace)
{
	pace->windows = 0;
	pace->stalled = 0;
}

/* Returns whether the trial is over. */
static bool try_window(struct k2_pace *pace)
{
	pace->windows++;
	pace->stalled += !!pace->stalled_ns;
	return pace->stalled >= TRIAL_STALLS;
}

static void leave_off(struct k2_pace *pace, u64 now_ns)
{
	if (!pace->off_ns)
		pace->off_ns = OFF_NS_MIN;
	pace->rate = 0;
	pace->off_until_ns = now_ns + pace->off_ns;
	if (pace->off_ns < OFF_NS_MAX)
		pace->off_ns *= 2;
}

static void try_free(struct k2_pace *pace)
{
	if ((!try_window(pace) && pace->stalled_ns < FULL_NS) || !pace->done)
		return;
	pace->windows_free = pace->windows > TRIAL_STALLS ? pace->windows : TRIAL_STALLS;
	begin_trial(pace);
	pace->is_found = false;
	pace->rate = pace->done - (pace->done >> LESS_SHIFT);
}

static void try_lowest(struct k2_pace *pace, u64 now_ns)
{
	if (!try_window(pace))
		return;
	/* The lowest pace must halve the frequency of stalls. */
	if (pace->windows < 2 * pace->windows_free)
		leave_off(pace, now_ns);
	begin_trial(pace);
}

static u32 share(const struct k2_pace *pace, u64 ns)
{
	return (u32)k2_div(pace->rate * ns, GAIN_NS);
}

static void slow_down(struct k2_pace *pace)
{
	if ((!pace->has_held || pace->stalled_ns >= FULL_NS) && pace->rate > pace->done)
		pace->rate = pace->done;
	if (pace->is_found && pace->stalled_ns < GAIN_NS >> LESS_SHIFT)
		pace->rate -= share(pace, pace->stalled_ns);
	else
		pace->rate -= pace->rate >> LESS_SHIFT;
	pace->calm = 0;
}

static void speed_up(struct k2_pace *pace)
{
	u64 more = CALM_WINDOWS * CALM_WINDOWS + pace->calm * pace->calm;

	pace->rate +=
		share(pace, (WINDOW_NS >> STALLED_SHIFT) * more / (CALM_WINDOWS * CALM_WINDOWS));
	pace->calm += pace->calm < CALM_MAX;
	if (pace->calm >= FOUND_WINDOWS)
		pace->is_found = true;
}

/* The steps are larger than for writes: each window shows the share of late reads. */
static void adapt_to_reads(struct k2_pace *pace)
{
	if (are_late(pace))
		pace->rate -= pace->rate >> READ_LESS_SHIFT;
	else if (pace->has_held && pace->late_reads * 5 < pace->reads * 2)
		pace->rate += pace->rate >> READ_MORE_SHIFT;
}

static void adapt_to_writes(struct k2_pace *pace)
{
	if (pace->stalled_ns)
		slow_down(pace);
	else if (pace->has_held)
		speed_up(pace);
}

static void adapt(struct k2_pace *pace, u64 now_ns)
{
	u32 lowest = pace->done >> LOWEST_SHIFT;

	if (is_recent(pace->rt_write_ns, now_ns)) {
		adapt_to_writes(pace);
	} else {
		adapt_to_reads(pace);
		lowest = pace->done >> LOWEST_READ_SHIFT;
	}
	if (pace->rate <= lowest) {
		pace->rate = lowest;
		try_lowest(pace, now_ns);
	}
}

static u32 per_ms(u64 bytes, u64 ns)
{
	return (u32)k2_div(bytes * (NS_PER_MS >> 10), (u32)(ns >> 10));
}

static void learn(struct k2_pace *pace, u32 done)
{
	if (pace->done)
		done = pace->done - (pace->done >> AVERAGE_SHIFT) + (done >> AVERAGE_SHIFT);
	pace->done = done;
}

/*
 * With a pace, one window proves nothing: a single stall lowers its throughput. The device has
 * become slower if it does much less than the pace allows over many windows.
 */
static void learn_paced(struct k2_pace *pace, u64 window_ns)
{
	pace->paced_bytes += pace->bytes;
	pace->paced_ns += window_ns;
	pace->allowed_bytes += k2_div(pace->rate * window_ns, (u32)NS_PER_MS);
	if (pace->paced_ns < PACED_NS)
		return;
	if (pace->paced_bytes < pace->allowed_bytes - (pace->allowed_bytes >> SLOWER_SHIFT))
		pace->done = per_ms(pace->paced_bytes, pace->paced_ns);
	pace->paced_bytes = 0;
	pace->paced_ns = 0;
	pace->allowed_bytes = 0;
}

static void learn_done(struct k2_pace *pace, u64 window_ns)
{
	bool is_full = pace->stalled_ns >= FULL_NS;

	if (window_ns > 2 * WINDOW_NS)
		return;
	if (pace->rate && (pace->has_held || is_full))
		learn_paced(pace, window_ns);
	else if (is_full || pace->busy_ns >= window_ns - (window_ns >> 3))
		learn(pace, per_ms(pace->bytes, window_ns));
}

static void begin_window(struct k2_pace *pace, u64 now_ns)
{
	pace->window_ns = now_ns;
	pace->since_ns = now_ns;
	pace->bytes = 0;
	pace->busy_ns = 0;
	pace->stalled_ns = 0;
	pace->reads = 0;
	pace->late_reads = 0;
	pace->has_held = false;
}

static void count_busy(struct k2_pace *pace, u64 now_ns)
{
	if (pace->inflight && now_ns > pace->since_ns)
		pace->busy_ns += now_ns - pace->since_ns;
	pace->since_ns = now_ns;
}

static void turn_window(struct k2_pace *pace, u64 now_ns)
{
	u64 window_ns = now_ns - pace->window_ns;

	if (window_ns < WINDOW_NS)
		return;
	/* Real-time reads do not wait for room in the buffer. */
	if (!is_recent(pace->rt_write_ns, now_ns))
		pace->stalled_ns = 0;
	if (are_late(pace))
		pace->stalled_ns += LATE_NS;
	if (pace->window_ns && is_wanted(pace, now_ns)) {
		learn_done(pace, window_ns);
		if (pace->rate)
			adapt(pace, now_ns);
		else
			try_free(pace);
	}
	begin_window(pace, now_ns);
}

u64 k2_pace_until_ns(struct k2_pace *pace, u64 now_ns)
{
	if (!pace->rate || !is_wanted(pace, now_ns) || pace->due_ns <= now_ns + BURST_NS)
		return 0;
	pace->has_held = true;
	/* A clock that goes back, or a rate that fell, must not hold a write for long. */
	if (pace->due_ns > now_ns + WINDOW_NS)
		pace->due_ns = now_ns + WINDOW_NS;
	return pace->due_ns;
}

bool k2_pace_one_is_enough(struct k2_pace *pace, u32 bytes, u64 needs_ns, u64 now_ns)
{
	if (!pace->rate || !is_wanted(pace, now_ns) ||
	    (u64)pace->rate * needs_ns > bytes * NS_PER_MS)
		return false;
	pace->has_held = true;
	return true;
}

void k2_pace_begin(struct k2_pace *pace, u32 bytes, u64 now_ns)
{
	count_busy(pace, now_ns);
	turn_window(pace, now_ns);
	pace->inflight++;
	if (!pace->rate)
		return;
	if (pace->due_ns < now_ns)
		pace->due_ns = now_ns;
	pace->due_ns += k2_div(bytes * NS_PER_MS, pace->rate);
}

/* Writes that wait at the same time wait for the same stall. */
static void count_stall(struct k2_pace *pace, u64 stalled_ns, u64 now_ns)
{
	u64 since_ns = now_ns - pace->stall_ns;

	pace->stalled_ns += stalled_ns < since_ns ? stalled_ns : since_ns;
	pace->stall_ns = now_ns;
}

void k2_pace_end(struct k2_pace *pace, u32 bytes, u64 stalled_ns, u64 now_ns)
{
	count_busy(pace, now_ns);
	pace->bytes += bytes;
	if (stalled_ns)
		count_stall(pace, stalled_ns, now_ns);
	pace->inflight--;
	turn_window(pace, now_ns);
}

void k2_pace_cancel(struct k2_pace *pace)
{
	pace->inflight--;
	k2_pace_untold(pace);
}
