// SPDX-License-Identifier: MIT OR Apache-2.0
/* One property of k2's policy per function, in terms a reader can check by hand. */
#include "clocked.h"

#define BACKGROUND	     K2_QUEUE_BEST_EFFORT
#define METADATA	     K2_QUEUE_METADATA
#define MS		     1000000ULL
#define IOPRIO(class, level) ((u16)((class) << 13 | (level)))

static u64 now_ns;

static u64 clock_ns(void)
{
	return now_ns;
}

static struct k2_policy policy_with(u32 inflight_max)
{
	struct k2_policy policy;

	now_ns = 0;
	k2_policy_init(&policy, inflight_max);
	return policy;
}

static void rt_class_has_a_queue_per_level(void)
{
	for (u16 level = 0; level < K2_RT_LEVELS; level++)
		EXPECT(k2_policy_queue(IOPRIO(1, level), false), level);
}

static void all_other_classes_are_background(void)
{
	EXPECT(k2_policy_queue(IOPRIO(0, 0), false), BACKGROUND);
	EXPECT(k2_policy_queue(IOPRIO(2, 0), false), BACKGROUND);
	EXPECT(k2_policy_queue(IOPRIO(2, 7), false), BACKGROUND);
	EXPECT(k2_policy_queue(IOPRIO(3, 0), false), K2_QUEUE_IDLE);
	EXPECT(k2_policy_queue(IOPRIO(7, 7), false), BACKGROUND);
	for (u32 queue = K2_RT_LEVELS; queue < K2_QUEUES; queue++)
		EXPECT(k2_policy_class(queue), K2_CLASS_BACKGROUND);
}

/* Newer kernels keep hints between the level and the class. */
static void hints_do_not_change_the_level(void)
{
	EXPECT(k2_policy_queue(IOPRIO(1, 5 | 3 << 3), false), 5);
}

static void metadata_has_a_queue_unless_it_is_rt(void)
{
	EXPECT(k2_policy_queue(IOPRIO(0, 0), true), METADATA);
	EXPECT(k2_policy_queue(IOPRIO(2, 7), true), METADATA);
	EXPECT(k2_policy_queue(IOPRIO(3, 0), true), METADATA);
	EXPECT(k2_policy_queue(IOPRIO(1, 6), true), 6);
	EXPECT(k2_policy_class(METADATA), K2_CLASS_BACKGROUND);
}

static void metadata_goes_between_rt_and_the_rest(void)
{
	struct k2_policy policy = policy_with(8);

	insert(&policy, BACKGROUND);
	insert(&policy, METADATA);
	insert(&policy, 7);
	EXPECT(dispatch_next(&policy), 7);
	EXPECT(dispatch_next(&policy), METADATA);
	EXPECT(dispatch_next(&policy), BACKGROUND);
}

/* Any process can have metadata read, as fast as it likes. */
static void metadata_does_not_starve_the_rest(void)
{
	struct k2_policy policy = policy_with(1);

	for (int round = 0; round < 3; round++) {
		insert(&policy, BACKGROUND);
		for (int i = 0; i < K2_METADATA_STREAK_MAX; i++) {
			insert(&policy, METADATA);
			insert(&policy, METADATA);
			EXPECT(dispatch_next(&policy), METADATA);
			complete(&policy, METADATA);
		}
		EXPECT(dispatch_next(&policy), BACKGROUND);
		complete(&policy, BACKGROUND);
	}
}

/* Nobody waited while it was alone. */
static void metadata_alone_uses_up_no_turns(void)
{
	struct k2_policy policy = policy_with(1);

	for (int i = 0; i < 2 * K2_METADATA_STREAK_MAX; i++) {
		insert(&policy, METADATA);
		EXPECT(dispatch_next(&policy), METADATA);
		complete(&policy, METADATA);
	}
	insert(&policy, BACKGROUND);
	insert(&policy, METADATA);
	EXPECT(dispatch_next(&policy), METADATA);
}

static void serves_levels_strictly_in_order(void)
{
	struct k2_policy policy = policy_with(8);

	insert(&policy, BACKGROUND);
	insert(&policy, 7);
	insert(&policy, 0);
	insert(&policy, 3);
	EXPECT(dispatch_next(&policy), 0);
	EXPECT(dispatch_next(&policy), 3);
	EXPECT(dispatch_next(&policy), 7);
	EXPECT(dispatch_next(&policy), BACKGROUND);
	EXPECT(dispatch_next(&policy), K2_QUEUE_NONE);
}

static void holds_back_at_inflight_max(void)
{
	struct k2_policy policy = policy_with(2);

	for (int i = 0; i < 3; i++)
		insert(&policy, BACKGROUND);
	EXPECT(dispatch_next(&policy), BACKGROUND);
	EXPECT(dispatch_next(&policy), BACKGROUND);
	EXPECT(next_queue(&policy), K2_QUEUE_NONE);
	complete(&policy, BACKGROUND);
	EXPECT(next_queue(&policy), BACKGROUND);
}

static void lowered_inflight_max_takes_nothing_back(void)
{
	struct k2_policy policy = policy_with(2);

	for (int i = 0; i < 3; i++)
		insert(&policy, 0);
	dispatch_next(&policy);
	dispatch_next(&policy);
	EXPECT(k2_policy_set_inflight_max(&policy, 1), true);
	complete(&policy, 0);
	EXPECT(next_queue(&policy), K2_QUEUE_NONE);
	complete(&policy, 0);
	EXPECT(next_queue(&policy), 0);
}

static void inflight_max_has_a_range(void)
{
	struct k2_policy policy = policy_with(5);

	EXPECT(k2_policy_set_inflight_max(&policy, 0), false);
	EXPECT(k2_policy_set_inflight_max(&policy, K2_INFLIGHT_LIMIT + 1), false);
	EXPECT(k2_policy_set_inflight_max(&policy, UINT32_MAX), false);
	EXPECT(policy.inflight_max, 5);
	EXPECT(k2_policy_set_inflight_max(&policy, K2_INFLIGHT_LIMIT), true);
	EXPECT(policy.inflight_max, K2_INFLIGHT_LIMIT);
}

static void inflight_default_is_one_without_a_device_queue(void)
{
	/* eMMC without command queue: the driver offers 64 tags; with one: 32 or 31. */
	EXPECT(k2_policy_inflight_default(64, true), 1);
	EXPECT(k2_policy_inflight_default(32, true), 32);
	EXPECT(k2_policy_inflight_default(31, true), 31);
	/* USB mass storage, then NVMe. */
	EXPECT(k2_policy_inflight_default(1, false), 1);
	EXPECT(k2_policy_inflight_default(1023, false), 32);
	EXPECT(k2_policy_inflight_default(0, false), 1);
}

static void split_kib_must_be_whole_blocks(void)
{
	struct k2_policy policy = policy_with(1);

	EXPECT(k2_policy_set_split_kib(&policy, 4, 512), true);
	EXPECT(k2_policy_set_split_kib(&policy, 6, 4096), false);
	EXPECT(k2_policy_set_split_kib(&policy, K2_SPLIT_KIB_LIMIT + 1, 512), false);
	EXPECT(k2_policy_set_split_kib(&policy, UINT32_MAX, 512), false);
	EXPECT(policy.split_bytes, 4096);
	EXPECT(k2_policy_set_split_kib(&policy, 0, 4096), true);
	EXPECT(policy.split_bytes, 0);
	EXPECT(k2_policy_set_split_kib(&policy, K2_SPLIT_KIB_LIMIT, 512), true);
	EXPECT(policy.split_bytes, 1U << 30);
}

static void cuts_background_only(void)
{
	struct k2_policy policy = policy_with(1);

	EXPECT(k2_policy_piece_bytes(&policy, BACKGROUND, 512 << 10, 512), 512 << 10);
	k2_policy_set_split_kib(&policy, 4, 512);
	EXPECT(k2_policy_piece_bytes(&policy, BACKGROUND, 512 << 10, 512), 4096);
	EXPECT(k2_policy_piece_bytes(&policy, BACKGROUND, 4096, 512), 4096);
	EXPECT(k2_policy_piece_bytes(&policy, BACKGROUND, 512, 512), 512);
	EXPECT(k2_policy_piece_bytes(&policy, METADATA, 512 << 10, 512), 4096);
	for (u32 level = 0; level < K2_RT_LEVELS; level++)
		EXPECT(k2_policy_piece_bytes(&policy, level, 512 << 10, 512), 512 << 10);
}

/* The knob was checked against 512-byte blocks; then the device was formatted again. */
static void pieces_are_whole_blocks_of_a_changed_device(void)
{
	struct k2_policy policy = policy_with(1);

	k2_policy_set_split_kib(&policy, 6, 512);
	EXPECT(k2_policy_piece_bytes(&policy, BACKGROUND, 64 << 10, 4096), 4096);
	k2_policy_set_split_kib(&policy, 1, 512);
	EXPECT(k2_policy_piece_bytes(&policy, BACKGROUND, 64 << 10, 4096), 4096);
}

static void unsplit_merges_are_bounded(void)
{
	struct k2_policy policy = policy_with(1);

	EXPECT(k2_policy_may_merge(&policy, BACKGROUND, K2_MERGE_BYTES_MAX), true);
	EXPECT(k2_policy_may_merge(&policy, BACKGROUND, K2_MERGE_BYTES_MAX + 512), false);
	EXPECT(k2_policy_may_merge(&policy, METADATA, K2_MERGE_BYTES_MAX), true);
	EXPECT(k2_policy_may_merge(&policy, METADATA, K2_MERGE_BYTES_MAX + 512), false);
	k2_policy_set_split_kib(&policy, 4, 512);
	EXPECT(k2_policy_may_merge(&policy, BACKGROUND, 1U << 30), true);
}

static void rt_is_never_merged(void)
{
	struct k2_policy policy = policy_with(1);

	k2_policy_set_split_kib(&policy, 4, 512);
	for (u32 level = 0; level < K2_RT_LEVELS; level++)
		EXPECT(k2_policy_may_merge(&policy, level, 1024), false);
}

static void a_quarter_of_the_tags_is_kept_for_rt(void)
{
	EXPECT(k2_policy_tags(256, BACKGROUND), 192);
	EXPECT(k2_policy_tags(16, BACKGROUND), 12);
	EXPECT(k2_policy_tags(4, BACKGROUND), 3);
	EXPECT(k2_policy_tags(2, BACKGROUND), 1);
}

static void an_eighth_of_the_tags_is_kept_from_metadata(void)
{
	EXPECT(k2_policy_tags(256, METADATA), 224);
	EXPECT(k2_policy_tags(8, METADATA), 7);
	EXPECT(k2_policy_tags(4, METADATA), 3);
	EXPECT(k2_policy_tags(1, METADATA), 1);
	EXPECT(k2_policy_tags(256, 7), 256);
}

static void background_never_starves_for_a_tag(void)
{
	/* Nothing can be kept of one. */
	EXPECT(k2_policy_tags(1, BACKGROUND), 1);
}

static void a_split_request_is_one_on_the_books(void)
{
	struct k2_policy policy = policy_with(1);

	insert(&policy, BACKGROUND);
	for (int piece = 0; piece < 3; piece++) {
		EXPECT(dispatch_next(&policy), BACKGROUND);
		EXPECT(k2_policy_balanced(&policy), true);
		give_back(&policy, BACKGROUND, K2_BACK_REST);
		EXPECT(k2_policy_balanced(&policy), true);
	}
	EXPECT(dispatch_next(&policy), BACKGROUND);
	complete(&policy, BACKGROUND);

	EXPECT(policy.counts[K2_CLASS_BACKGROUND].inserted, 1);
	EXPECT(policy.counts[K2_CLASS_BACKGROUND].completed, 1);
	EXPECT(policy.counts[K2_CLASS_BACKGROUND].dispatched, 4);
	EXPECT(policy.counts[K2_CLASS_BACKGROUND].back[K2_BACK_REST], 3);
	EXPECT(k2_policy_balanced(&policy), true);
	EXPECT(k2_policy_idle(&policy), true);
}

static void a_lost_request_shows_in_the_books(void)
{
	struct k2_policy policy = policy_with(4);

	insert(&policy, BACKGROUND);
	insert(&policy, 2);
	policy.queued[2] = 0;
	EXPECT(k2_policy_balanced(&policy), false);
	EXPECT(k2_policy_idle(&policy), false);
	policy.queued[2] = 1;
	EXPECT(k2_policy_balanced(&policy), true);
	dispatch_next(&policy);
	policy.inflight[K2_CLASS_RT] = 0;
	EXPECT(k2_policy_balanced(&policy), false);
}

static void measures_how_long_background_blocked_rt(void)
{
	struct k2_policy policy = policy_with(1);

	now_ns = 100;
	insert(&policy, BACKGROUND);
	dispatch(&policy, BACKGROUND);
	now_ns = 1000;
	insert(&policy, 0);
	EXPECT(policy.rt_blocked_count, 1);
	now_ns = 1200;
	insert(&policy, 4);
	now_ns = 1500;
	complete(&policy, BACKGROUND);
	EXPECT(policy.rt_blocked_ns_max, 500);
	/* Level 4 now waits for level 0: that is not background's doing. */
	dispatch(&policy, 0);
	now_ns = 9000;
	complete(&policy, 0);
	EXPECT(policy.rt_blocked_ns_max, 500);
	EXPECT(policy.rt_blocked_count, 1);
	insert(&policy, BACKGROUND);
	dispatch(&policy, BACKGROUND);
	now_ns = 9300;
	complete(&policy, BACKGROUND);
	EXPECT(policy.rt_blocked_ns_max, 500);
	EXPECT(policy.rt_blocked_ns_sum, 800);
}

static void background_waiting_for_rt_is_not_blocking(void)
{
	struct k2_policy policy = policy_with(1);

	insert(&policy, 0);
	dispatch(&policy, 0);
	now_ns = 10;
	insert(&policy, BACKGROUND);
	now_ns = 500;
	complete(&policy, 0);
	EXPECT(policy.rt_blocked_count, 0);
	EXPECT(policy.rt_blocked_ns_max, 0);
}

static void a_lane_goes_by_its_level_and_then_by_its_age(void)
{
	enum {
		OLDER = 10,
		YOUNGER = 20
	};

	for (u32 level = 0; level < K2_RT_LEVELS; level++) {
		for (u32 queue = 0; queue < K2_RT_LEVELS; queue++) {
			bool older = level <= queue, younger = level < queue;

			EXPECT(k2_policy_lane_is_before(level, OLDER, queue, YOUNGER), older);
			EXPECT(k2_policy_lane_is_before(level, YOUNGER, queue, OLDER), younger);
		}
		EXPECT(k2_policy_lane_is_before(level, YOUNGER, METADATA, OLDER), true);
		EXPECT(k2_policy_lane_is_before(level, YOUNGER, BACKGROUND, OLDER), true);
		EXPECT(k2_policy_lane_is_before(K2_RT_LEVELS, OLDER, level, YOUNGER), false);
	}
}

static void background_of_a_lane_takes_turns_with_that_of_the_queue(void)
{
	EXPECT(k2_policy_lane_is_before(K2_RT_LEVELS, 10, METADATA, 20), true);
	EXPECT(k2_policy_lane_is_before(K2_RT_LEVELS, 20, METADATA, 10), false);
	EXPECT(k2_policy_lane_is_before(K2_RT_LEVELS, 10, BACKGROUND, 20), true);
	EXPECT(k2_policy_lane_is_before(K2_RT_LEVELS, 20, BACKGROUND, 10), false);
	EXPECT(k2_policy_lane_is_before(K2_RT_LEVELS, 20, K2_QUEUE_IDLE, 10), true);
}

static void background_that_waits_for_a_lane_becomes_due(void)
{
	struct k2_policy policy = policy_with(1);
	u64 limit_ns = 5 * 1000000ULL;

	EXPECT(k2_policy_set_background_wait_ms_max(&policy, 5), true);
	policy.lane_is_rt = true;
	now_ns = 100;
	insert(&policy, BACKGROUND);
	EXPECT(k2_policy_background_is_due(&policy, now_ns + limit_ns - 1), false);
	EXPECT(k2_policy_background_is_due(&policy, now_ns + limit_ns), true);
}

int main(void)
{
	static const struct test tests[] = {
		TEST(rt_class_has_a_queue_per_level),
		TEST(all_other_classes_are_background),
		TEST(hints_do_not_change_the_level),
		TEST(metadata_has_a_queue_unless_it_is_rt),
		TEST(metadata_goes_between_rt_and_the_rest),
		TEST(metadata_does_not_starve_the_rest),
		TEST(metadata_alone_uses_up_no_turns),
		TEST(serves_levels_strictly_in_order),
		TEST(holds_back_at_inflight_max),
		TEST(lowered_inflight_max_takes_nothing_back),
		TEST(inflight_max_has_a_range),
		TEST(inflight_default_is_one_without_a_device_queue),
		TEST(split_kib_must_be_whole_blocks),
		TEST(cuts_background_only),
		TEST(pieces_are_whole_blocks_of_a_changed_device),
		TEST(unsplit_merges_are_bounded),
		TEST(rt_is_never_merged),
		TEST(a_quarter_of_the_tags_is_kept_for_rt),
		TEST(an_eighth_of_the_tags_is_kept_from_metadata),
		TEST(background_never_starves_for_a_tag),
		TEST(a_split_request_is_one_on_the_books),
		TEST(a_lost_request_shows_in_the_books),
		TEST(measures_how_long_background_blocked_rt),
		TEST(background_waiting_for_rt_is_not_blocking),
		TEST(a_lane_goes_by_its_level_and_then_by_its_age),
		TEST(background_of_a_lane_takes_turns_with_that_of_the_queue),
		TEST(background_that_waits_for_a_lane_becomes_due),
	};

	return run_tests("", tests, sizeof(tests) / sizeof(tests[0]));
}
