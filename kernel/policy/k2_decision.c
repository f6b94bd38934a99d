// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_decision.h"

#define OP_WRITE 1

static bool has_queue(const struct k2_policy *policy)
{
	return policy->inflight_max > 1;
}

/*
 * Is this background write rate-limited? Never metadata. Holding it delays the background behind it
 * by a few writes at most.
 */
static bool keeps_pace(const struct k2_policy *policy, const struct k2_offer *offer)
{
	/* With one request in flight, no tested device gained from a pace. */
	return offer->op == OP_WRITE && offer->queue > K2_QUEUE_METADATA && has_queue(policy);
}

/*
 * A thread in fsync waits for the journal's thread, which has another I/O class. While the last
 * request of each real-time process was a write, each may be in fsync. Then journal requests stay
 * whole: each piece would queue behind requests that bypass k2.
 */
static bool may_be_fsync(const struct k2_lookahead *ahead, const struct k2_offer *offer, u64 now_ns)
{
	return offer->queue == K2_QUEUE_METADATA && offer->bytes <= K2_MERGE_BYTES_MAX &&
	       k2_streams_may_sync(&ahead->streams, K2_RT_LEVELS, ahead->rt_idle_ns, now_ns);
}

/* Requests are split at multiples of this. */
static u32 block_bytes(const struct k2_offer *offer)
{
	return offer->block_bytes > K2_PIECE_MIN ? offer->block_bytes : K2_PIECE_MIN;
}

static struct k2_cut cut_of(const struct k2_policy *policy, const struct k2_offer *offer)
{
	return (struct k2_cut){
		.op = offer->op,
		.bytes = offer->bytes,
		.block_bytes = block_bytes(offer),
		.inflight = k2_policy_inflight(policy),
		.rt_inflight = policy->inflight[K2_CLASS_RT],
		.is_rt = offer->queue < K2_RT_LEVELS,
		/* No real-time request could be dispatched meanwhile. */
		.may_wait = offer->queue >= K2_RT_LEVELS && !(policy->queues_waiting & K2_RT_BITS),
		.is_paced = keeps_pace(policy, offer),
	};
}

static void decide_cut(struct k2_lookahead *ahead, const struct k2_policy *policy,
		       const struct k2_offer *offer, struct k2_decision *decision, u64 now_ns)
{
	struct k2_cut cut = cut_of(policy, offer);
	u64 paced_until_ns = cut.is_paced ? k2_pace_until_ns(&ahead->pace, now_ns) : 0;

	if (paced_until_ns) {
		decision->bytes = 0;
		decision->hold_until_ns = paced_until_ns;
		return;
	}
	k2_lookahead_make_room(ahead, &cut, k2_guarded_level(offer->queue), now_ns);
	decision->bytes = k2_lookahead_piece_bytes(ahead, &cut, now_ns);
	if (decision->bytes < cut.bytes && may_be_fsync(ahead, offer, now_ns)) {
		decision->bytes = cut.bytes;
		decision->is_unguarded = true;
	}
	decision->is_cut = true;
	decision->room_ns = cut.room_ns;
	decision->piece_ns = k2_device_time_ns(&ahead->device, cut.op, decision->bytes);
	if (!decision->bytes)
		decision->hold_until_ns = cut.inflight ? 0 : cut.wait_until_ns;
}

/* Decides by split_kib, or by look-ahead and the pace of writes. */
static void decide_undeclared(struct k2_lookahead *ahead, const struct k2_policy *policy,
			      const struct k2_offer *offer, struct k2_decision *decision,
			      u64 now_ns)
{
	if (!k2_looks_ahead(ahead, policy)) {
		if (offer->may_split)
			decision->bytes = k2_policy_piece_bytes(policy, offer->queue, offer->bytes,
								offer->block_bytes);
		return;
	}
	if (k2_guards_nobody(ahead, k2_guarded_level(offer->queue), now_ns)) {
		decision->is_watched = k2_decide_whole(ahead, offer->queue);
		decision->is_unguarded = true;
	} else {
		decision->is_watched = true;
		decision->is_unguarded = !offer->may_split;
		if (offer->may_split)
			decide_cut(ahead, policy, offer, decision, now_ns);
	}
	if (offer->queue < K2_RT_LEVELS)
		decision->is_unguarded = false;
}

/* Lowers the decision to a size that keeps the bounds of declared tasks of higher levels. */
static void decide_declared(struct k2_lookahead *ahead, const struct k2_policy *policy,
			    const struct k2_offer *offer, struct k2_decision *decision, u64 now_ns)
{
	struct k2_declared *declared = &ahead->declared;
	bool is_background = offer->queue >= K2_RT_LEVELS;
	u32 rt_queued = policy->queues_waiting & K2_RT_BITS;
	struct k2_declared_offer limited = {
		.level = k2_guarded_level(offer->queue),
		.op = offer->op,
		.bytes = decision->bytes,
		.block_bytes = block_bytes(offer),
		.may_split = offer->may_split,
		.is_timed = offer->is_timed,
		.may_wait = is_background && !rt_queued,
		.forced_past = is_background ? rt_queued : 0,
	};

	/* The device has commands whose times are not known. */
	if (k2_policy_inflight(policy) != declared->flight_count)
		decision->bytes = 0;
	else
		decision->bytes =
			k2_declared_fit(declared, &limited, now_ns, &decision->hold_until_ns);
}

/* Notes what is left of the request, to know whether the next command begins there. */
static void note_rest(struct k2_lookahead *ahead, const struct k2_offer *offer, u32 bytes)
{
	if (!bytes)
		return;
	ahead->left_queue = offer->queue;
	ahead->left_bytes = offer->bytes - bytes;
}

static struct k2_decision decide(struct k2_lookahead *ahead, const struct k2_policy *policy,
				 const struct k2_offer *offer, u64 now_ns)
{
	struct k2_decision decision = {.bytes = offer->bytes};

	decide_undeclared(ahead, policy, offer, &decision, now_ns);
	if (!ahead->declared.used)
		return decision;
	decision.is_watched = true;
	if (decision.bytes &&
	    k2_declared_guards(&ahead->declared, k2_guarded_level(offer->queue))) {
		decide_declared(ahead, policy, offer, &decision, now_ns);
		decision.is_unguarded = false;
	}
	return decision;
}

struct k2_decision k2_decide(struct k2_lookahead *ahead, const struct k2_policy *policy,
			     const struct k2_offer *offer, u64 now_ns)
{
	struct k2_decision decision;

	ahead->jumps = !ahead->left_bytes || offer->bytes != ahead->left_bytes ||
		       offer->queue != ahead->left_queue;
	decision = decide(ahead, policy, offer, now_ns);
	note_rest(ahead, offer, decision.bytes);
	return decision;
}
