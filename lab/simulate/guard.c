// SPDX-License-Identifier: MIT OR Apache-2.0
#include "guard.h"

#include "k2_lookahead.h"

#define BACKGROUND_LEVEL 8

static struct k2_lookahead ahead;
static u32 stream, rt_inflight;
static u64 wait_until_ns;
static unsigned int fixed_kb_s;

void guard_begin(unsigned int rt_block_us, unsigned int pace_kb_s)
{
	fixed_kb_s = pace_kb_s;
	k2_lookahead_init(&ahead);
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
	if (write)
		k2_pace_rt_write(&ahead.pace, now_ns);
	rt_inflight++;
	stream = k2_lookahead_rt_arrival(&ahead, 1, 0, now_ns);
}

void guard_rt_end(unsigned long long now_ns)
{
	rt_inflight--;
	k2_lookahead_rt_end(&ahead, stream, now_ns);
}

bool guard_allows(bool write, unsigned int bytes, unsigned int inflight, unsigned long long now_ns)
{
	struct k2_cut cut = {
		.op = write,
		.bytes = bytes,
		.block_bytes = K2_PIECE_MIN,
		.inflight = inflight,
		.rt_inflight = rt_inflight,
		.may_wait = true,
		.is_paced = true,
	};

	wait_until_ns = GUARD_NEVER;
	if (!k2_lookahead_guards(&ahead, BACKGROUND_LEVEL))
		return true;
	if (write) {
		fix_pace();
		wait_until_ns = k2_pace_until_ns(&ahead.pace, now_ns);
		if (wait_until_ns)
			return false;
		wait_until_ns = GUARD_NEVER;
	}
	k2_lookahead_make_room(&ahead, &cut, BACKGROUND_LEVEL, now_ns);
	if (k2_lookahead_piece_bytes(&ahead, &cut, now_ns))
		return true;
	if (!inflight)
		wait_until_ns = cut.wait_until_ns;
	return false;
}

unsigned long long guard_wait_until_ns(void)
{
	return wait_until_ns;
}

unsigned int guard_watch(bool write, unsigned int bytes, unsigned int inflight,
			 unsigned long long now_ns)
{
	return k2_lookahead_watch(&ahead, write, bytes, inflight, now_ns);
}

void guard_done(unsigned int flight, unsigned long long now_ns)
{
	if (flight != K2_FLIGHT_NONE)
		k2_lookahead_done(&ahead, flight, now_ns);
}
