// SPDX-License-Identifier: MIT OR Apache-2.0
/* The rules by which a device is learned, one per function. */
#include "expect.h"
#include "k2_device.h"

#define US   1000ULL
#define MS   1000000ULL
#define S    1000000000ULL
#define KIB  1024U
#define READ 0

static struct k2_device device;
static u64 now_ns;

static void begin(void)
{
	device = (struct k2_device){.op[READ].has_seen_epoch = true};
	now_ns = S;
}

/* 100 us and 10 us per KiB, and @more_ns; every 10 ms. */
static void command_with(u32 kib, u64 more_ns, bool was_joined)
{
	u64 took_ns = 100 * US + kib * 10 * US + more_ns;

	now_ns += 10 * MS;
	k2_device_learn(&device, READ, kib * KIB, took_ns, was_joined, false, now_ns);
}

static void command(u32 kib, u64 more_ns)
{
	command_with(kib, more_ns, false);
}

static u64 time_us(u32 kib)
{
	return k2_device_time_ns(&device, READ, kib * KIB) / US;
}

static u32 fit_kib(u32 kib, u64 room_us)
{
	return k2_device_fit(&device, READ, kib * KIB, room_us * US,
			     k2_device_reserve_ns(&device, READ)) /
	       KIB;
}

static void what_is_given_by_hand_is_believed_until_it_is_learned_better(void)
{
	begin();
	k2_device_believe(&device, READ, 4 * KIB, 200 * US, 300 * US);
	k2_device_believe(&device, READ, 512 * KIB, 6000 * US, 300 * US);
	EXPECT(time_us(4), 500);
	EXPECT(time_us(512), 6300);
	command(4, 0);
	EXPECT(time_us(4), 440);
}

static void an_unknown_device_gets_the_smallest_piece(void)
{
	begin();
	EXPECT(fit_kib(512, 1000000), 4);
	EXPECT(time_us(512), 0);
	EXPECT(k2_device_lacks(&device, READ, 4 * KIB), true);
}

static void a_larger_command_is_believed_to_take_in_proportion(void)
{
	begin();
	command(4, 0);
	EXPECT(time_us(4), 140);
	EXPECT(time_us(64), 16 * 140);
	EXPECT(k2_device_lacks(&device, READ, 4 * KIB), false);
	EXPECT(k2_device_lacks(&device, READ, 64 * KIB), true);
}

static void a_smaller_one_is_believed_to_take_no_less(void)
{
	begin();
	command(64, 0);
	EXPECT(time_us(4), 740);
	EXPECT(time_us(64), 740);
}

static void between_two_sizes_time_rises_in_a_line(void)
{
	begin();
	command(4, 0);
	command(512, 0);
	EXPECT_WITHIN(time_us(16), 259, 261);
	EXPECT_WITHIN(time_us(256), 2659, 2661);
	EXPECT_WITHIN(time_us(200), 2099, 2101);
}

static void a_piece_fills_the_room(void)
{
	begin();
	command(4, 0);
	command(512, 0);
	EXPECT(fit_kib(512, 6000), 512);
	EXPECT_WITHIN(fit_kib(512, 2101), 196, 200);
	EXPECT_WITHIN(fit_kib(512, 261), 12, 16);
	EXPECT(fit_kib(512, 10), 4);
	EXPECT(fit_kib(512, 0), 4);
}

/* The device may not have been slow yet: anything less than a stall is expected of it. */
static void before_an_epoch_is_over_the_reserve_is_the_most_it_can_be(void)
{
	begin();
	device = (struct k2_device){0};
	command(4, 0);
	EXPECT(time_us(4), 3 * 140);
	for (u32 i = 0; i < 399; i++)
		command(4, 0);
	EXPECT(time_us(4), 3 * 140);
	command(4, 0);
	EXPECT(time_us(4), 140);
}

/* A fast device need not take 4 s to show how slow it is. */
static void many_commands_are_as_good_as_an_epoch(void)
{
	device = (struct k2_device){0};
	now_ns = S;
	for (u32 i = 0; i < 8193; i++) {
		EXPECT(time_us(4), i ? 3 * 140 : 0);
		now_ns += MS / 10;
		k2_device_learn(&device, READ, 4 * KIB, 140 * US, false, false, now_ns);
	}
	EXPECT(time_us(4), 140);
}

static void what_is_slow_now_and_then_is_kept_in_reserve(void)
{
	begin();
	command(4, 0);
	command(512, 0);
	command(64, 200 * US);
	EXPECT_WITHIN(time_us(4), 339, 341);
	EXPECT_WITHIN(time_us(512), 5419, 5421);
	EXPECT(k2_device_reserve_ns(&device, READ) / US, 200);
}

static void reads_and_writes_are_learned_apart(void)
{
	begin();
	command(4, 0);
	EXPECT(k2_device_time_ns(&device, 1, 4 * KIB), 0);
}

static void a_stall_is_counted_and_not_learned(void)
{
	begin();
	command(4, 0);
	command(512, 0);
	command(64, 2 * MS);
	EXPECT(device.op[READ].stalls, 1);
	EXPECT(device.op[READ].stall_ns_max, 2 * MS);
	EXPECT_WITHIN(time_us(512), 5219, 5221);
}

/* What joined it may have delayed it by any time, but made it no faster. */
static void of_one_that_was_joined_little_is_learned(void)
{
	begin();
	command_with(4, 5 * MS, true);
	EXPECT(time_us(4), 5140);
	command(4, 0);
	EXPECT(time_us(4), 140);
	command_with(4, 100 * US, true);
	EXPECT(time_us(4), 240);
	command_with(4, 200 * US, true);
	command_with(4, 5 * MS, true);
	EXPECT(time_us(4), 240);
	EXPECT(device.op[READ].stalls, 0);
	command_with(16, 0, true);
	EXPECT(time_us(16), 360);
	/* The most that it can be is better than nothing. */
	command_with(64, 1 * MS, true);
	EXPECT(k2_device_lacks(&device, READ, 64 * KIB), false);
}

static void a_device_that_became_slower_is_learned_anew(void)
{
	begin();
	command(4, 0);
	for (u32 i = 0; i < 8; i++)
		command(4, 1260 * US);
	/* And it may sometimes be slower still, which was not seen yet. */
	EXPECT(time_us(4), 3 * 1400);
}

static void what_no_longer_happens_is_forgotten(void)
{
	begin();
	command(4, 0);
	command(4, 200 * US);
	EXPECT(time_us(4), 340);
	for (u32 i = 0; i < 900; i++)
		command(4, 0);
	EXPECT(time_us(4), 140);
}

/* A device that answers at once, never, or at random: sizes stay in range, times finite. */
static void absurd_times_do_no_harm(void)
{
	uint64_t state = 88172645463325252ULL;

	begin();
	for (u32 i = 0; i < 300000; i++) {
		u32 bytes, op, fits;
		u64 took_ns;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		op = state >> 63;
		bytes = 512U * (1 + ((state >> 40) & 0xffff));
		took_ns = state >> (state >> 58);
		k2_device_learn(&device, op, bytes, took_ns, i & 64, i & 128, state >> (i & 31));
		fits = k2_device_fit(&device, op, bytes, took_ns,
				     k2_device_reserve_ns(&device, op));
		EXPECT(fits && fits <= bytes + K2_PIECE_MIN, true);
		EXPECT(k2_device_time_ns(&device, op, bytes) <= 1ULL << 36, true);
		if (failed)
			return;
	}
}

/* It may have been slow for them, so what was slow before counts for as long as it takes. */
static void those_that_were_joined_forget_nothing(void)
{
	begin();
	command(4, 0);
	command(4, 200 * US);
	for (u32 i = 0; i < 2000; i++)
		command_with(4, 0, true);
	EXPECT(k2_device_reserve_ns(&device, READ) / US, 200);
}

/* 16 KiB takes 260 us; from elsewhere 80 more, and in a slow episode 200 more. */
static void a_command_that_reads_on_takes_no_jump(void)
{
	u32 i;

	begin();
	for (i = 0; i < 200; i++) {
		bool jumps = i % 10 == 0;

		now_ns += 10 * MS;
		k2_device_learn(&device, READ, 16 * KIB, (jumps ? 340 : 260) * US, false, jumps,
				now_ns);
	}
	EXPECT(k2_device_recent_ns(&device, READ, false), 0);
	EXPECT(k2_device_recent_ns(&device, READ, true), 80 * US);
	k2_device_learn(&device, READ, 16 * KIB, 540 * US, false, true, now_ns);
	EXPECT(k2_device_last_ns(&device, READ), 200 * US);
	EXPECT(k2_device_recent_ns(&device, READ, false), 200 * US);
	EXPECT(k2_device_recent_ns(&device, READ, true), 280 * US);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(what_is_given_by_hand_is_believed_until_it_is_learned_better),
		TEST(an_unknown_device_gets_the_smallest_piece),
		TEST(a_larger_command_is_believed_to_take_in_proportion),
		TEST(a_smaller_one_is_believed_to_take_no_less),
		TEST(between_two_sizes_time_rises_in_a_line),
		TEST(a_piece_fills_the_room),
		TEST(before_an_epoch_is_over_the_reserve_is_the_most_it_can_be),
		TEST(many_commands_are_as_good_as_an_epoch),
		TEST(what_is_slow_now_and_then_is_kept_in_reserve),
		TEST(reads_and_writes_are_learned_apart),
		TEST(a_stall_is_counted_and_not_learned),
		TEST(of_one_that_was_joined_little_is_learned),
		TEST(those_that_were_joined_forget_nothing),
		TEST(a_device_that_became_slower_is_learned_anew),
		TEST(what_no_longer_happens_is_forgotten),
		TEST(absurd_times_do_no_harm),
		TEST(a_command_that_reads_on_takes_no_jump),
	};

	return run_tests("device: ", tests, sizeof(tests) / sizeof(tests[0]));
}
