// SPDX-License-Identifier: MIT OR Apache-2.0
/* When a slow device rests between pieces, one property per function. */
#include "expect.h"
#include "k2_decision.h"

#define US	   1000ULL
#define MS	   1000000ULL
#define KIB	   1024U
#define READ	   0
#define RT_LEVEL   0
#define BACKGROUND K2_QUEUE_BEST_EFFORT
#define WHOLE	   (512U * KIB)
/* In a slow episode a command takes so much longer. */
#define SLOW_NS (200 * US)
/* Twice a bound of 440 us, less a sixteenth. */
#define REST_NS (825 * US)

static struct k2_lookahead ahead;
static struct k2_policy policy;
static struct k2_stream streams[K2_STREAMS];
static u64 now_ns;
static u32 left_bytes;

static struct k2_decision decide(void)
{
	struct k2_offer offer = {
		.queue = BACKGROUND,
		.op = READ,
		.bytes = left_bytes,
		.block_bytes = K2_PIECE_MIN,
		.may_split = true,
		.is_timed = true,
	};

	return k2_decide(&ahead, &policy, &offer, now_ns);
}

/* The device does what is decided: 100 us and 10 us per KiB, and @more_ns. */
static void piece(u64 more_ns)
{
	struct k2_decision decision = decide();
	u32 flight;

	EXPECT(decision.bytes > 0, true);
	flight = k2_lookahead_watch(&ahead, K2_RT_LEVELS, READ, decision.bytes, 0, now_ns);
	now_ns += 100 * US + decision.bytes / KIB * 10 * US + more_ns;
	k2_lookahead_done(&ahead, flight, now_ns);
	left_bytes = left_bytes > decision.bytes ? left_bytes - decision.bytes : WHOLE;
}

static void real_time_request(void)
{
	struct k2_thread thread = {.process = 1, .thread = 1, .level = RT_LEVEL};
	u32 stream = k2_lookahead_rt_arrival(&ahead, &thread, now_ns);

	k2_lookahead_rt_end(&ahead, stream, now_ns);
}

/* The device is known, and so are slow commands. A process without a pattern is guarded. */
static void begin(void)
{
	now_ns = MS;
	left_bytes = WHOLE;
	k2_policy_init(&policy, 1);
	k2_lookahead_init(&ahead);
	ahead.streams.stream = streams;
	k2_lookahead_set_rt_block_us(&ahead, 440);
	real_time_request();
	for (u32 i = 0; i < 400; i++) {
		piece(i % 20 ? 0 : SLOW_NS);
		now_ns += 20 * MS;
	}
	piece(0);
}

static void a_fast_device_goes_on_at_once(void)
{
	begin();
	EXPECT(decide().bytes > 0, true);
}

static void a_slow_device_rests_for_twice_the_bound(void)
{
	struct k2_decision decision;

	begin();
	piece(SLOW_NS);
	decision = decide();
	EXPECT(decision.bytes, 0);
	EXPECT(decision.hold_until_ns, now_ns + REST_NS);
	now_ns += REST_NS;
	EXPECT(decide().bytes > 0, true);
}

static void a_device_that_is_fast_again_does_not_rest(void)
{
	begin();
	piece(SLOW_NS);
	now_ns += REST_NS;
	piece(0);
	EXPECT(decide().bytes > 0, true);
}

/* Strict pieces are short enough for a slow device. */
static void strict_pieces_need_no_rest(void)
{
	begin();
	piece(SLOW_NS);
	ahead.is_strict = true;
	EXPECT(decide().bytes > 0, true);
}

static void nothing_rests_while_no_process_is_guarded(void)
{
	begin();
	now_ns += 3600 * 1000 * MS;
	piece(SLOW_NS);
	EXPECT(decide().bytes, WHOLE);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(a_fast_device_goes_on_at_once),
		TEST(a_slow_device_rests_for_twice_the_bound),
		TEST(a_device_that_is_fast_again_does_not_rest),
		TEST(strict_pieces_need_no_rest),
		TEST(nothing_rests_while_no_process_is_guarded),
	};

	return run_tests("rests: ", tests, sizeof(tests) / sizeof(tests[0]));
}
