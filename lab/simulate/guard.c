// SPDX-License-Identifier: MIT OR Apache-2.0
#include "guard.h"

#include "k2_decision.h"

#define RT_LEVEL 0

static struct k2_stream streams[K2_STREAMS];
static struct k2_lookahead ahead;
/* Only its count of requests in flight is used: the load has its own queues. */
static struct k2_policy policy;
static u32 stream;
static struct k2_decision decision; /* the last */
static unsigned int fixed_kb_s;

void guard_begin(unsigned int rt_block_us, unsigned int pace_kb_s, unsigned int inflight_max)
{
	fixed_kb_s = pace_kb_s;
	k2_policy_init(&policy, inflight_max);
	k2_lookahead_init(&ahead);
	ahead.streams.stream = streams;
	k2_lookahead_set_rt_block_us(&ahead, rt_block_us);
}

static void fix_pace(void)
{
	if (!fixed_kb_s)
		return;
	ahead.pace.rate = fixed_kb_s;
	ahead.pace.off_until_ns = 0;
}

void guard_rt_arrival(bool write, unsigned long long now_ns)
{
	struct k2_thread thread = {1, 1, RT_LEVEL, write};

	if (write)
		k2_pace_rt_write(&ahead.pace, now_ns);
	stream = k2_lookahead_rt_arrival(&ahead, &thread, now_ns);
}

void guard_rt_end(unsigned long long now_ns)
{
	policy.inflight[K2_CLASS_RT]--;
	k2_lookahead_rt_end(&ahead, stream, now_ns);
}

bool guard_allows(const struct guard_request *request, unsigned int inflight,
		  unsigned long long now_ns)
{
	u32 queue = request->is_rt ? RT_LEVEL : K2_QUEUE_BEST_EFFORT;
	struct k2_offer offer = {
		.queue = queue,
		.op = request->write,
		.bytes = request->bytes,
		.block_bytes = K2_PIECE_MIN,
		.may_split = true,
	};

	policy.inflight[K2_CLASS_BACKGROUND] = inflight - policy.inflight[K2_CLASS_RT];
	fix_pace();
	decision = k2_decide(&ahead, &policy, &offer, now_ns);
	return decision.bytes;
}

unsigned long long guard_wait_until_ns(void)
{
	return decision.hold_until_ns ? decision.hold_until_ns : GUARD_NEVER;
}

unsigned int guard_watch(const struct guard_request *request, unsigned int inflight,
			 unsigned long long now_ns)
{
	policy.inflight[K2_CLASS_RT] += request->is_rt;
	if (decision.is_watched)
		return k2_lookahead_watch(&ahead, request->is_rt ? RT_LEVEL : K2_RT_LEVELS,
					  request->write, request->bytes, inflight, now_ns);
	return k2_lookahead_unwatched(&ahead, request->is_rt ? RT_LEVEL : K2_RT_LEVELS, now_ns);
}

void guard_done(unsigned int flight, unsigned long long now_ns)
{
	if (flight != K2_FLIGHT_NONE)
		k2_lookahead_done(&ahead, flight, now_ns);
}
