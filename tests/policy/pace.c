// SPDX-License-Identifier: MIT OR Apache-2.0
/* The pace of background writes: one rule per function. */
#include "expect.h"
#include "k2_pace.h"

#define MS	      1000000ULL
#define S	      (1000 * MS)
#define WRITE_BYTES   4096U
#define WRITE_NS      10000ULL
#define STALL_NS      200000ULL
#define BUFFER_BYTES  (1U << 20)
#define DRAIN_NS      (2 * MS)
#define RT_EVERY_NS   (10 * MS)
#define BYTES_PER_MIB (1U << 20)
/* When the buffer is always full, there is one in each portion's time. */
#define STALLS_FULL (60 * S / DRAIN_NS)

/* A device with a buffer, which it drains in portions. */
static struct device {
	u64 drained_ns; /* when last */
	u32 drain_bytes; /* per portion; 0: at once */
	u32 buffered;
	u32 pause_every; /* so many writes it pauses by itself for a portion's time; 0: never */
} device;

static struct k2_pace pace;
static u64 now_ns, rt_ns, written, writes, stalled_ns, held;

static void begin(u32 drain_mib_s)
{
	pace = (struct k2_pace){0};
	device = (struct device){.drain_bytes = drain_mib_s * (BYTES_PER_MIB / 500)};
	now_ns = S;
	rt_ns = 0;
	device.drained_ns = now_ns;
}

static void drain(void)
{
	while (now_ns - device.drained_ns >= DRAIN_NS) {
		u32 bytes = device.drain_bytes;

		device.drained_ns += DRAIN_NS;
		device.buffered -= bytes < device.buffered ? bytes : device.buffered;
	}
}

static void write_one(void)
{
	u64 began_ns = now_ns, over_ns;

	k2_pace_begin(&pace, WRITE_BYTES, now_ns);
	if (device.pause_every && ++writes % device.pause_every == 0)
		now_ns += DRAIN_NS;
	now_ns += WRITE_NS;
	drain();
	while (device.drain_bytes && device.buffered + WRITE_BYTES > BUFFER_BYTES) {
		now_ns = device.drained_ns + DRAIN_NS;
		drain();
	}
	device.buffered += WRITE_BYTES;
	over_ns = now_ns - began_ns > STALL_NS ? now_ns - began_ns - STALL_NS : 0;
	stalled_ns += over_ns;
	k2_pace_end(&pace, WRITE_BYTES, over_ns, now_ns);
}

/* The background writes all it may for this many seconds, with real-time writes or without. */
static void writes_for(u32 seconds, bool rt_writes)
{
	u64 until_ns = now_ns + seconds * S, next_ns;

	written = 0;
	stalled_ns = 0;
	held = 0;
	while (now_ns < until_ns) {
		if (rt_writes && now_ns >= rt_ns) {
			rt_ns = now_ns + RT_EVERY_NS;
			k2_pace_rt_write(&pace, now_ns);
		}
		next_ns = k2_pace_until_ns(&pace, now_ns);
		if (next_ns) {
			held++;
			now_ns = next_ns;
			continue;
		}
		write_one();
		written += WRITE_BYTES;
	}
	written /= seconds * BYTES_PER_MIB;
}

static void without_real_time_writes_nothing_is_held(void)
{
	begin(100);
	writes_for(60, false);
	EXPECT(held, 0);
	EXPECT_WITHIN(stalled_ns, 60 * S / 2, 60 * S);
	EXPECT_WITHIN(written, 99, 101);
}

static void a_buffer_keeps_room_at_a_small_part_of_the_throughput(void)
{
	begin(100);
	writes_for(20, true);
	writes_for(60, true);
	EXPECT_WITHIN(written, 92, 100);
	EXPECT_WITHIN(stalled_ns, 0, 60 * S / 1000);
}

/* 4 KiB in 10 us are 390 MiB/s. */
static void one_write_at_a_time_is_enough_below_what_it_transfers(void)
{
	begin(100);
	k2_pace_rt_write(&pace, now_ns);
	EXPECT(k2_pace_one_is_enough(&pace, WRITE_BYTES, WRITE_NS, now_ns), false);
	pace.rate = 409 * 1024;
	EXPECT(k2_pace_one_is_enough(&pace, WRITE_BYTES, WRITE_NS, now_ns), false);
	EXPECT(pace.has_held, false);
	pace.rate = 399 * 1024;
	EXPECT(k2_pace_one_is_enough(&pace, WRITE_BYTES, WRITE_NS, now_ns), true);
	EXPECT(pace.has_held, true);
	/* No real-time process writes any more. */
	EXPECT(k2_pace_one_is_enough(&pace, WRITE_BYTES, WRITE_NS, now_ns + 60 * S), false);
}

/* A read every 2 ms is late if more than 1 MiB was written in the 10 ms before. */
static void reads_pace_writes_until_most_are_in_time(void)
{
	u64 until_ns, read_ns, since_ns;
	u64 bytes = 0, before = 0;

	begin(0);
	written = 0;
	until_ns = now_ns + 30 * S;
	read_ns = now_ns;
	since_ns = now_ns;
	while (now_ns < until_ns) {
		u64 next_ns = k2_pace_until_ns(&pace, now_ns);

		if (now_ns >= read_ns) {
			k2_pace_rt_read(&pace, before > BYTES_PER_MIB, now_ns);
			read_ns += 2 * MS;
		}
		if (now_ns >= since_ns + 10 * MS) {
			before = bytes;
			bytes = 0;
			since_ns = now_ns;
		}
		if (next_ns) {
			now_ns = next_ns;
			continue;
		}
		write_one();
		bytes += WRITE_BYTES;
		if (until_ns - now_ns < 20 * S)
			written += WRITE_BYTES;
	}
	EXPECT_WITHIN(written / BYTES_PER_MIB / 20, 85, 105);
}

static void a_device_that_becomes_slower_is_followed(void)
{
	begin(200);
	writes_for(20, true);
	device.drain_bytes /= 4;
	writes_for(10, true);
	writes_for(60, true);
	EXPECT_WITHIN(written, 45, 50);
	EXPECT_WITHIN(stalled_ns, 0, 60 * S / 1000);
}

static void a_device_that_becomes_faster_is_followed(void)
{
	begin(50);
	writes_for(20, true);
	device.drain_bytes *= 4;
	writes_for(30, true);
	writes_for(60, true);
	EXPECT_WITHIN(written, 180, 200);
}

static void a_device_without_stalls_is_not_paced(void)
{
	begin(0);
	writes_for(20, true);
	EXPECT(held, 0);
}

/* A card that prepares a block stalls as often at any pace. */
static void pauses_of_its_own_cost_little(void)
{
	u64 alone;

	begin(0);
	device.pause_every = 2000;
	writes_for(600, false);
	alone = written;
	begin(0);
	device.pause_every = 2000;
	writes_for(600, true);
	EXPECT_WITHIN(written, alone * 97 / 100, alone);
	EXPECT(held > 0, true);
}

static void rare_writes_are_not_held_for_a_stall(void)
{
	begin(100);
	for (u32 i = 0; i < 2000; i++) {
		k2_pace_rt_write(&pace, now_ns);
		EXPECT(k2_pace_until_ns(&pace, now_ns), 0);
		k2_pace_begin(&pace, WRITE_BYTES, now_ns);
		now_ns += i % 50 ? WRITE_NS : 5 * MS;
		k2_pace_end(&pace, WRITE_BYTES, i % 50 ? 0 : 5 * MS, now_ns);
		now_ns += 20 * MS;
	}
}

static void what_is_not_told_is_not_taken_for_slow(void)
{
	begin(100);
	for (u32 i = 0; i < 200; i++) {
		k2_pace_rt_write(&pace, now_ns);
		for (u32 k = 0; k < 500; k++)
			write_one();
		k2_pace_untold(&pace);
	}
	EXPECT(pace.done, 0);
	EXPECT(pace.rate, 0);
}

static void a_write_that_came_back_ends_the_window(void)
{
	begin(100);
	k2_pace_begin(&pace, WRITE_BYTES, now_ns);
	k2_pace_cancel(&pace);
	EXPECT(pace.inflight, 0);
	EXPECT(pace.window_ns, 0);
}

static void absurd_times_hold_nothing_for_long(void)
{
	uint64_t state = 88172645463325252ULL;
	u32 inflight = 0;

	begin(100);
	for (u32 i = 0; i < 300000; i++) {
		u64 until_ns;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		now_ns = i % 1000 ? now_ns + (state >> 40) : state >> (state >> 59);
		if (i % 7 == 0)
			k2_pace_rt_write(&pace, now_ns);
		if (inflight && state >> 63) {
			k2_pace_end(&pace, (u32)(state >> 20), state >> 62 & 1 ? state : 0, now_ns);
			inflight--;
		} else {
			k2_pace_begin(&pace, (u32)(state >> 24), now_ns);
			inflight++;
		}
		until_ns = k2_pace_until_ns(&pace, now_ns);
		EXPECT(until_ns == 0 || until_ns - now_ns <= 100 * MS, true);
		if (failed)
			return;
	}
	EXPECT(pace.inflight, inflight);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(without_real_time_writes_nothing_is_held),
		TEST(a_buffer_keeps_room_at_a_small_part_of_the_throughput),
		TEST(one_write_at_a_time_is_enough_below_what_it_transfers),
		TEST(reads_pace_writes_until_most_are_in_time),
		TEST(a_device_that_becomes_slower_is_followed),
		TEST(a_device_that_becomes_faster_is_followed),
		TEST(a_device_without_stalls_is_not_paced),
		TEST(pauses_of_its_own_cost_little),
		TEST(rare_writes_are_not_held_for_a_stall),
		TEST(what_is_not_told_is_not_taken_for_slow),
		TEST(a_write_that_came_back_ends_the_window),
		TEST(absurd_times_hold_nothing_for_long),
	};

	return run_tests("pace: ", tests, sizeof(tests) / sizeof(tests[0]));
}
