// SPDX-License-Identifier: MIT OR Apache-2.0
/* The bounds of the histograms of latencies. */
#include "expect.h"
#include "k2_latency.h"

static void each_bound_is_in_its_bucket_and_what_is_above_in_the_next(void)
{
	for (u32 bucket = 0; bucket < K2_LATENCY_LAST; bucket++) {
		EXPECT(k2_latency_bucket(k2_latency_bound_ns(bucket)), bucket);
		EXPECT(k2_latency_bucket(k2_latency_bound_ns(bucket) + 1), bucket + 1);
	}
}

static void no_bucket_is_wider_than_a_quarter_of_what_it_holds(void)
{
	for (u32 bucket = 1; bucket < K2_LATENCY_LAST; bucket++) {
		u64 below_ns = k2_latency_bound_ns(bucket - 1);

		EXPECT((k2_latency_bound_ns(bucket) - below_ns) * 4 <= below_ns, true);
	}
}

static void the_ends_hold_all_that_is_beyond(void)
{
	EXPECT(k2_latency_bucket(1), 0);
	EXPECT(k2_latency_bound_ns(0), 4096);
	EXPECT(k2_latency_bound_ns(K2_LATENCY_LAST - 1), 1ULL << 34);
	EXPECT(k2_latency_bucket(~0ULL), K2_LATENCY_LAST);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(each_bound_is_in_its_bucket_and_what_is_above_in_the_next),
		TEST(no_bucket_is_wider_than_a_quarter_of_what_it_holds),
		TEST(the_ends_hold_all_that_is_beyond),
	};

	return run_tests("latency: ", tests, sizeof(tests) / sizeof(tests[0]));
}
