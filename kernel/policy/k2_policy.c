// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_policy.h"

#define NS_PER_MS 1000000ULL

/* Each group of queues leaves one tag in this many to the groups before it. */
#define TAGS_KEPT_METADATA    8
#define TAGS_KEPT_BEST_EFFORT 4
#define TAGS_KEPT_IDLE	      2

u32 k2_policy_flow(const struct k2_policy *policy, u32 key)
{
	return k2_background_flow(&policy->background, policy->queues_waiting, key);
}

u32 k2_policy_inflight_default(u32 tags, bool is_mmc)
{
	/* For a card without a queue, the MMC driver takes 64 requests and serves one at a time. */
	if (is_mmc && tags > K2_MMC_SLOTS_MAX)
		return 1;
	if (tags < K2_INFLIGHT_MIN)
		return K2_INFLIGHT_MIN;
	return tags < K2_INFLIGHT_QUEUED ? tags : K2_INFLIGHT_QUEUED;
}

u32 k2_policy_tags(u32 tags, u32 group)
{
	u32 kept;

	switch (group) {
	case K2_GROUP_METADATA:
		kept = tags / TAGS_KEPT_METADATA;
		break;
	case K2_GROUP_BEST_EFFORT:
		kept = tags / TAGS_KEPT_BEST_EFFORT;
		break;
	case K2_GROUP_IDLE:
		kept = tags / TAGS_KEPT_IDLE;
		break;
	default:
		return tags;
	}
	if (kept == 0)
		kept = 1;
	/* A single tag cannot be shared, and background must not starve forever. */
	return tags > kept ? tags - kept : 1;
}

void k2_policy_init(struct k2_policy *policy, u32 inflight_max)
{
	*policy = (struct k2_policy){.inflight_max = inflight_max};
}

bool k2_policy_set_inflight_max(struct k2_policy *policy, u32 inflight_max)
{
	if (inflight_max < K2_INFLIGHT_MIN || inflight_max > K2_INFLIGHT_LIMIT)
		return false;
	policy->inflight_max = inflight_max;
	return true;
}

bool k2_policy_set_split_kib(struct k2_policy *policy, u32 split_kib, u32 block_bytes)
{
	u32 split_bytes;

	if (split_kib > K2_SPLIT_KIB_LIMIT)
		return false;
	split_bytes = split_kib << 10;
	if (split_bytes % block_bytes)
		return false;
	policy->split_bytes = split_bytes;
	return true;
}

bool k2_policy_set_background_wait_ms_max(struct k2_policy *policy, u32 wait_ms)
{
	if (wait_ms > K2_BACKGROUND_WAIT_MS_LIMIT)
		return false;
	policy->background_wait_ms_max = wait_ms;
	return true;
}

static bool background_queued(const struct k2_policy *policy)
{
	return policy->queues_waiting & ~K2_RT_BITS;
}

static bool is_waiting(const struct k2_policy *policy, u32 queue)
{
	return policy->queues_waiting & K2_QUEUE_BIT(queue);
}

bool k2_policy_background_is_due(const struct k2_policy *policy, u64 now_ns)
{
	u64 wait_ns_max = policy->background_wait_ms_max * NS_PER_MS;

	return k2_policy_next_needs_time(policy) &&
	       now_ns - policy->background_waits_since_ns >= wait_ns_max;
}

u32 k2_policy_next(const struct k2_policy *policy, u64 now_ns)
{
	u32 queue = K2_QUEUE_NONE;

	if (!k2_policy_has_work(policy))
		return K2_QUEUE_NONE;
	if (!k2_policy_rt_queued(policy) || k2_policy_background_is_due(policy, now_ns))
		queue = k2_background_next(&policy->background, policy->queues_waiting);
	/* When background is due despite real-time, idle may still give way to other background. */
	if (queue != K2_QUEUE_NONE || !k2_policy_rt_queued(policy))
		return queue;
	for (queue = 0; !is_waiting(policy, queue);)
		queue++;
	return queue;
}

u32 k2_policy_piece_bytes(const struct k2_policy *policy, u32 queue, u32 bytes, u32 block_bytes)
{
	u32 split_bytes = policy->split_bytes;

	if (k2_policy_class(queue) == K2_CLASS_RT || split_bytes == 0)
		return bytes;
	/* The device's block size may have grown since split_kib was set. */
	split_bytes -= split_bytes % block_bytes;
	if (split_bytes == 0)
		split_bytes = block_bytes;
	return bytes < split_bytes ? bytes : split_bytes;
}

bool k2_policy_may_merge(const struct k2_policy *policy, u32 queue, u64 bytes)
{
	if (k2_policy_class(queue) == K2_CLASS_RT)
		return false;
	return policy->split_bytes || bytes <= K2_MERGE_BYTES_MAX;
}

void k2_policy_merge(struct k2_policy *policy, u32 queue)
{
	k2_policy_dequeue(policy, queue);
	policy->counts[k2_policy_class(queue)].merged++;
}

void k2_policy_give_back(struct k2_policy *policy, u32 queue, enum k2_back why)
{
	enum k2_class cls = k2_policy_class(queue);

	k2_policy_leave_device(policy, queue);
	k2_policy_enqueue(policy, queue);
	policy->counts[cls].back[why]++;
}

/* Do background requests in flight keep real-time from being dispatched? */
static bool rt_is_blocked(const struct k2_policy *policy)
{
	return policy->inflight[K2_CLASS_BACKGROUND] && !k2_policy_has_room(policy) &&
	       k2_policy_rt_queued(policy);
}

static bool background_is_waiting(const struct k2_policy *policy)
{
	if (!background_queued(policy) || policy->inflight[K2_CLASS_BACKGROUND])
		return false;
	/* A short pause of real-time does not end a wait. */
	return policy->background_waits || policy->inflight[K2_CLASS_RT] ||
	       k2_policy_rt_queued(policy) || policy->lane_is_rt;
}

bool k2_policy_some_wait_changed(const struct k2_policy *policy)
{
	return rt_is_blocked(policy) != policy->rt_blocked ||
	       background_is_waiting(policy) != policy->background_waits ||
	       k2_background_changed(&policy->background, policy->queues_waiting);
}

static void note_rt_waited(struct k2_policy *policy, u64 waited_ns)
{
	policy->rt_blocked_ns_sum += waited_ns;
	if (policy->rt_blocked_unguarded) {
		policy->rt_unguarded_count++;
		if (waited_ns > policy->rt_unguarded_ns_max)
			policy->rt_unguarded_ns_max = waited_ns;
		return;
	}
	if (waited_ns > policy->rt_blocked_ns_max)
		policy->rt_blocked_ns_max = waited_ns;
	if (policy->rt_blocked_ns_bound && !policy->split_bytes &&
	    waited_ns > policy->rt_blocked_ns_bound)
		policy->rt_blocked_over_count++;
}

static void note_rt_blocked(struct k2_policy *policy, u64 now_ns)
{
	bool blocked = rt_is_blocked(policy);

	if (blocked == policy->rt_blocked)
		return;
	policy->rt_blocked = blocked;
	if (blocked) {
		policy->rt_blocked_since_ns = now_ns;
		policy->rt_blocked_count++;
		policy->rt_blocked_unguarded = policy->is_unguarded;
	} else {
		note_rt_waited(policy, now_ns - policy->rt_blocked_since_ns);
	}
}

static void note_background_waits(struct k2_policy *policy, u64 now_ns)
{
	bool waits = background_is_waiting(policy);

	if (waits == policy->background_waits)
		return;
	if (waits)
		policy->background_waits_since_ns = now_ns;
	else
		policy->background_wait_ns_longest = k2_policy_background_wait_ns(policy, now_ns);
	policy->background_waits = waits;
}

void k2_policy_note_waits(struct k2_policy *policy, u64 now_ns)
{
	note_rt_blocked(policy, now_ns);
	note_background_waits(policy, now_ns);
	k2_background_note(&policy->background, policy->queues_waiting, now_ns);
	policy->some_wait = policy->rt_blocked || policy->background_waits ||
			    policy->background.gives_way;
}

u64 k2_policy_look(struct k2_policy *policy, u64 now_ns)
{
	return k2_background_look(&policy->background, now_ns);
}

u64 k2_policy_background_wait_ns(const struct k2_policy *policy, u64 now_ns)
{
	u64 wait_ns = policy->background_waits ? now_ns - policy->background_waits_since_ns : 0;
	u64 longest_ns = policy->background_wait_ns_longest;

	return wait_ns > longest_ns ? wait_ns : longest_ns;
}

static u64 backs_total(const struct k2_counts *counts)
{
	return counts->back[K2_BACK_REST] + counts->back[K2_BACK_RETRY] +
	       counts->back[K2_BACK_DEFERRED];
}

bool k2_policy_balanced(const struct k2_policy *policy)
{
	u64 queued[K2_CLASSES] = {0};
	u32 queue, cls;

	for (queue = 0; queue < K2_QUEUES; queue++)
		queued[k2_policy_class(queue)] += policy->queued[queue];

	for (cls = 0; cls < K2_CLASSES; cls++) {
		const struct k2_counts *counts = &policy->counts[cls];
		u32 inflight = policy->inflight[cls];

		if (counts->inserted != counts->merged + counts->completed + queued[cls] + inflight)
			return false;
		if (counts->dispatched != counts->completed + backs_total(counts) + inflight)
			return false;
	}
	return true;
}

bool k2_policy_idle(const struct k2_policy *policy)
{
	u32 queue;

	for (queue = 0; queue < K2_QUEUES; queue++) {
		if (policy->queued[queue])
			return false;
	}
	return k2_policy_inflight(policy) == 0;
}
