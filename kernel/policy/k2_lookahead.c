// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_lookahead.h"

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
/*
 * A sixteenth of rt_block_us is reserved: software runs between the end of a command and the
 * dispatch of the next, and learned times are not exact.
 */
#define SOFTWARE_SHIFT 4
/* For a short piece half as much is enough: the last few commands show its time. */
#define SHORT_SHIFT 5
/* A part of the time until the next request is reserved, too: predictions have errors. */
#define AHEAD_SHIFT 6
/* If the device waits for real-time, a piece may end late by this part of rt_block_us. */
#define LATE_SHIFT 2
/* Requests with gaps of at most this are frequent. */
#define FREQUENT_US 4000U
/* In a slow episode the device rests after a short piece, for this many times the bound at most. */
#define REST_TIMES 2
/* A piece that takes this many times the time of a command is not short. */
#define SHORT_TIMES 4
/* The longest time that the device is left idle for real-time without background between. */
#define HOLD_NS_MAX (100 * NS_PER_MS)
#define OP_WRITE    1

void k2_lookahead_init(struct k2_lookahead *ahead)
{
	*ahead = (struct k2_lookahead){
		.rt_idle_ns = K2_RT_IDLE_MS_DEFAULT * NS_PER_MS,
		.first = K2_FLIGHT_NONE,
		.probe = K2_FLIGHT_NONE,
	};
}

bool k2_lookahead_set_rt_block_us(struct k2_lookahead *ahead, u32 rt_block_us)
{
	if (rt_block_us > K2_RT_BLOCK_US_LIMIT)
		return false;
	ahead->rt_block_ns = rt_block_us * NS_PER_US;
	return true;
}

bool k2_lookahead_set_rt_idle_ms(struct k2_lookahead *ahead, u32 rt_idle_ms)
{
	if (rt_idle_ms > K2_RT_IDLE_MS_LIMIT)
		return false;
	ahead->rt_idle_ns = rt_idle_ms * NS_PER_MS;
	return true;
}

bool k2_lookahead_guards(const struct k2_lookahead *ahead, u32 level, u64 now_ns)
{
	return ahead->rt_block_ns &&
	       k2_streams_alive(&ahead->streams, level, ahead->rt_idle_ns, now_ns);
}

u32 k2_lookahead_rt_arrival(struct k2_lookahead *ahead, const struct k2_thread *thread, u64 now_ns)
{
	bool meets_background = ahead->needs_ns > ahead->rt_needs_ns;

	return k2_streams_arrival(&ahead->streams, thread, now_ns,
				  meets_background ? ahead->rt_block_ns : K2_NEVER);
}

void k2_lookahead_rt_end(struct k2_lookahead *ahead, u32 stream, u64 now_ns)
{
	k2_streams_end(&ahead->streams, stream, now_ns);
}

/* The commands in flight may have waited for that request: their times are not learned. */
void k2_lookahead_bypassed(struct k2_lookahead *ahead, u32 level, u64 since_ns, u64 now_ns)
{
	u32 i;

	ahead->first = K2_FLIGHT_NONE;
	ahead->is_alone = false;
	ahead->busy_ns = now_ns;
	for (i = 0; i < K2_FLIGHTS; i++)
		ahead->flight[i].others = 0;
	k2_declared_bypassed(&ahead->declared, level, since_ns, now_ns);
}

void k2_lookahead_rt_bypassed(struct k2_lookahead *ahead, u32 level, u64 since_ns, u64 now_ns)
{
	k2_streams_bypassed(&ahead->streams, level, since_ns, now_ns, ahead->rt_block_ns);
}

/* Rounds down to whole blocks, but to at least one. */
static u32 whole_blocks(const struct k2_cut *cut, u32 piece_bytes)
{
	if (piece_bytes >= cut->bytes)
		return cut->bytes;
	if (piece_bytes < cut->block_bytes)
		return cut->block_bytes < cut->bytes ? cut->block_bytes : cut->bytes;
	return piece_bytes - piece_bytes % cut->block_bytes;
}

/* How long the device may go on working after a real-time request has come. */
static u64 bound_ns(const struct k2_lookahead *ahead)
{
	return ahead->rt_block_ns - (ahead->rt_block_ns >> SOFTWARE_SHIFT);
}

/* The time of a command before it moves data, without the reserve. */
static u64 command_ns(const struct k2_lookahead *ahead, u32 op)
{
	return k2_device_time_ns(&ahead->device, op, K2_PIECE_MIN) -
	       k2_device_reserve_ns(&ahead->device, op);
}

/*
 * How long a piece may take at the device's present speed. A piece of a lower real-time level may
 * take at least twice as long as a command without data: smaller pieces would multiply the time of
 * its request.
 */
static u64 short_piece_ns(const struct k2_lookahead *ahead, const struct k2_cut *cut)
{
	u64 recent_ns = k2_device_recent_ns(&ahead->device, cut->op, true);
	u64 least_ns = cut->is_rt ? 2 * (command_ns(ahead, cut->op) + recent_ns) : 0;

	return k2_max(ahead->rt_block_ns - (ahead->rt_block_ns >> SHORT_SHIFT), least_ns);
}

/*
 * If not even the smallest piece fits, returns the largest that takes at most a quarter longer:
 * smaller pieces would only be more numerous.
 */
static u32 least_useful(const struct k2_lookahead *ahead, const struct k2_cut *cut)
{
	const struct k2_device *device = &ahead->device;
	u64 least_ns = command_ns(ahead, cut->op);
	u32 useful;

	/* The model takes an unknown size to be as slow as the next larger one, */
	if (k2_device_lacks(device, cut->op, K2_PIECE_MIN))
		return K2_PIECE_MIN;
	useful = k2_device_fit(device, cut->op, cut->bytes, least_ns + (least_ns >> 2), 0);
	/* or extrapolates in proportion from the next smaller one. */
	if (k2_device_lacks(device, cut->op, 2 * useful))
		useful *= 2;
	return useful < cut->bytes ? useful : cut->bytes;
}

/*
 * Returns the larger of two sizes: one fits into @room_ns even if a slow episode begins, the other
 * into rt_block_us at the present speed. The second is larger only if a request may come at any
 * time. It breaks the bound if an episode and a request both begin during the piece.
 */
static u32 fit(const struct k2_lookahead *ahead, const struct k2_cut *cut, u64 room_ns)
{
	const struct k2_device *device = &ahead->device;
	u32 piece_bytes = k2_device_fit(device, cut->op, cut->bytes, room_ns,
					k2_device_reserve_ns(device, cut->op));

	/* Alongside other commands, the present speed of a single one says little. */
	if (!ahead->is_strict && !cut->inflight) {
		u64 short_ns = cut->wait_until_ns ? k2_min(room_ns, short_piece_ns(ahead, cut))
						  : short_piece_ns(ahead, cut);
		u32 now_bytes = k2_device_fit(device, cut->op, cut->bytes, short_ns,
					      k2_device_recent_ns(device, cut->op, ahead->jumps));

		if (now_bytes > piece_bytes)
			piece_bytes = now_bytes;
	}
	if (!cut->inflight && command_ns(ahead, cut->op) > room_ns)
		piece_bytes = (u32)k2_max(piece_bytes, least_useful(ahead, cut));
	return whole_blocks(cut, piece_bytes);
}

/*
 * How long a piece may take alone, so that it and the background in flight delay a request by at
 * most @room_ns. That background adds at most its time alone, and at most the rest of the time of
 * all commands. A piece like those in flight adds only a part of its time; a longer piece adds all
 * of it, because large commands overlap less than small ones.
 */
static u64 needs_beside_ns(const struct k2_lookahead *ahead, const struct k2_cut *cut, u64 room_ns,
			   u64 now_ns)
{
	u32 parts = k2_delay_parts(&ahead->delay, cut->inflight + 1);
	u64 all_ns = ahead->needs_ns * parts / K2_DELAY_WHOLE;
	u64 left_ns = k2_minus(all_ns, k2_minus(now_ns, ahead->busy_ns));
	u64 others_ns = k2_min(ahead->needs_ns - ahead->rt_needs_ns, left_ns);

	if (room_ns <= others_ns)
		return 0;
	room_ns -= others_ns;
	/* Is there room for the full time of a command like them? */
	if (room_ns > ahead->needs_ns || room_ns * cut->inflight >= ahead->needs_ns)
		return room_ns;
	return ahead->rt_needs_ns ? room_ns
				  : k2_min(k2_div(ahead->needs_ns, cut->inflight),
					   k2_div(room_ns * K2_DELAY_WHOLE, parts));
}

static u32 fit_beside(struct k2_lookahead *ahead, const struct k2_cut *cut, u64 room_ns, u64 now_ns)
{
	u64 needs_ns = needs_beside_ns(ahead, cut, room_ns, now_ns);
	u32 piece_bytes = fit(ahead, cut, needs_ns);

	if (k2_device_time_ns(&ahead->device, cut->op, piece_bytes) > needs_ns)
		return 0;
	if (k2_device_lacks(&ahead->device, cut->op, piece_bytes)) {
		/* Measure this size first, with a piece that no other background accompanies. */
		if (cut->rt_inflight < cut->inflight)
			return 0;
		ahead->is_probing = true;
	}
	return piece_bytes;
}

/*
 * How late a piece may end if the device waits for a request: few requests come at the earliest
 * time, and few commands need the reserve. Frequent requests allow more: idling costs more there.
 */
static u64 late_ns(const struct k2_lookahead *ahead, u32 op)
{
	u64 reserve_ns = k2_device_reserve_ns(&ahead->device, op);
	u32 gap_us = (u32)k2_min(k2_div(ahead->anticipation.gap_ns, NS_PER_US), ~0U);
	u64 late_ns = bound_ns(ahead) >> LATE_SHIFT;

	late_ns += gap_us > FREQUENT_US ? k2_div(reserve_ns * FREQUENT_US, gap_us) : reserve_ns;
	return k2_min(late_ns, bound_ns(ahead));
}

/* In a piece of rt_block_us, does the device spend much of the time on the command itself? */
static bool are_pieces_short(const struct k2_lookahead *ahead, u32 op)
{
	return bound_ns(ahead) < SHORT_TIMES * command_ns(ahead, op);
}

/* Perhaps no piece fits between any two requests. */
static bool has_held_long(const struct k2_lookahead *ahead, u64 now_ns)
{
	return ahead->held_since_ns && now_ns - ahead->held_since_ns > HOLD_NS_MAX;
}

/* Would a piece as slow as the last command move less than half of what fits otherwise? */
static bool is_slow(const struct k2_lookahead *ahead, const struct k2_cut *cut)
{
	const struct k2_device *device = &ahead->device;
	u64 last_ns = k2_device_last_ns(device, cut->op), room_ns = bound_ns(ahead);

	return 2 * k2_device_fit(device, cut->op, cut->bytes, room_ns, last_ns) <
	       k2_device_fit(device, cut->op, cut->bytes, room_ns, 0);
}

/*
 * While a request can come at any time, the device rests after a slow command: in a slow episode,
 * short pieces delay real-time and hardly help the background. Returns until when, or 0.
 */
static u64 rests_until_ns(const struct k2_lookahead *ahead, const struct k2_cut *cut, u64 now_ns)
{
	u64 rest_ns = k2_min(REST_TIMES * bound_ns(ahead), K2_IDLE_NS_MAX);

	if (ahead->is_strict || !cut->may_wait || cut->inflight ||
	    now_ns - ahead->busy_ns >= rest_ns)
		return 0;
	return is_slow(ahead, cut) ? ahead->busy_ns + rest_ns : 0;
}

void k2_lookahead_make_room(struct k2_lookahead *ahead, struct k2_cut *cut, u32 level, u64 now_ns)
{
	struct k2_window next = k2_streams_next(&ahead->streams, level, ahead->rt_idle_ns, now_ns);
	u64 ahead_ns = next.earliest_ns - now_ns;

	cut->room_ns = ahead_ns - (ahead_ns >> AHEAD_SHIFT) + bound_ns(ahead);
	cut->wait_until_ns = ahead_ns ? 0 : rests_until_ns(ahead, cut, now_ns);
	if (cut->wait_until_ns) {
		cut->room_ns = 0;
		return;
	}
	if (!cut->may_wait || cut->inflight || !next.latest_ns || has_held_long(ahead, now_ns) ||
	    k2_device_time_ns(&ahead->device, cut->op, cut->bytes) <= ahead_ns ||
	    !are_pieces_short(ahead, cut->op))
		return;
	if (!k2_anticipates(&ahead->anticipation, &next, bound_ns(ahead), now_ns))
		return;
	cut->room_ns = ahead_ns + late_ns(ahead, cut->op);
	cut->wait_until_ns = next.latest_ns;
}

/* Would this write only add to the commands before a real-time write? */
static bool is_one_too_many(struct k2_lookahead *ahead, const struct k2_cut *cut, u64 now_ns)
{
	u64 reserve_ns, needs_ns;

	if (cut->op != OP_WRITE || !cut->is_paced || cut->inflight <= cut->rt_inflight)
		return false;
	reserve_ns = k2_device_reserve_ns(&ahead->device, cut->op);
	needs_ns = k2_device_time_ns(&ahead->device, cut->op, cut->bytes);
	if (needs_ns <= reserve_ns)
		return false;
	return k2_pace_one_is_enough(&ahead->pace, cut->bytes, needs_ns - reserve_ns, now_ns);
}

static u32 piece_alone(struct k2_lookahead *ahead, const struct k2_cut *cut)
{
	u32 piece_bytes = fit(ahead, cut, cut->room_ns);

	if (cut->wait_until_ns &&
	    k2_device_time_ns(&ahead->device, cut->op, piece_bytes) > cut->room_ns)
		return 0;
	ahead->is_probing = k2_device_lacks(&ahead->device, cut->op, piece_bytes);
	return piece_bytes;
}

static u32 piece_beside(struct k2_lookahead *ahead, const struct k2_cut *cut, u64 now_ns)
{
	u64 reserve_ns = 0;

	if (is_one_too_many(ahead, cut, now_ns))
		return 0;
	/* The times of unmeasured commands are not known. */
	if (ahead->is_probing || ahead->watched_count < cut->inflight)
		return 0;
	/* The device may show a first slow episode when it first has this many commands. */
	if (!k2_delay_knows(&ahead->delay, cut->inflight + 1))
		reserve_ns = k2_device_reserve_ns(&ahead->device, cut->op);
	if (cut->room_ns > reserve_ns)
		return fit_beside(ahead, cut, cut->room_ns - reserve_ns, now_ns);
	return 0;
}

u32 k2_lookahead_piece_bytes(struct k2_lookahead *ahead, const struct k2_cut *cut, u64 now_ns)
{
	u32 piece_bytes = cut->inflight ? piece_beside(ahead, cut, now_ns)
					: piece_alone(ahead, cut);

	if (!piece_bytes && has_held_long(ahead, now_ns))
		piece_bytes = whole_blocks(cut, K2_PIECE_MIN);
	if (piece_bytes)
		ahead->held_since_ns = 0;
	else if (!ahead->held_since_ns)
		ahead->held_since_ns = now_ns;
	return piece_bytes;
}

u32 k2_lookahead_watch(struct k2_lookahead *ahead, u32 level, u32 op, u32 bytes, u32 inflight,
		       u64 now_ns)
{
	u32 number;

	if (~ahead->watched == 0)
		return k2_lookahead_unwatched(ahead, level, now_ns);
	number = (u32)__builtin_ctz(~ahead->watched);
	ahead->is_alone = !inflight;
	if (ahead->is_probing && ahead->probe == K2_FLIGHT_NONE)
		ahead->probe = number;
	if (!inflight) {
		ahead->first = number;
		ahead->busy_ns = now_ns;
	}
	ahead->flight[number] = (struct k2_flight){
		.op = op,
		.bytes = bytes,
		.level = level,
		/* Real-time always jumps: the line of its size contains that. */
		.jumps = ahead->jumps && level == K2_RT_LEVELS,
		.since_ns = now_ns,
		.needs_ns = k2_device_time_ns(&ahead->device, op, bytes),
		.others = ahead->watched_count == inflight ? inflight : 0,
		.others_ns = ahead->needs_ns,
		.worked_ns = k2_minus(now_ns, ahead->busy_ns),
	};
	ahead->watched |= 1U << number;
	ahead->watched_count++;
	ahead->needs_ns += ahead->flight[number].needs_ns;
	if (level < K2_RT_LEVELS) {
		ahead->rt_needs_ns += ahead->flight[number].needs_ns;
		ahead->level_watched[level]++;
		ahead->levels_watched |= 1U << level;
	}
	k2_declared_dispatch(&ahead->declared, number, level, op, bytes, now_ns);
	if (op == OP_WRITE)
		k2_pace_begin(&ahead->pace, bytes, now_ns);
	return number;
}

/* The time of most such commands alone. */
static u64 alone_ns(const struct k2_lookahead *ahead, const struct k2_flight *flight)
{
	return k2_minus(flight->needs_ns, k2_device_reserve_ns(&ahead->device, flight->op));
}

/* @flight took @took_ns, and found other commands with the device. */
static void learn_delay(struct k2_lookahead *ahead, const struct k2_flight *flight, u64 needs_ns,
			u64 took_ns, u64 now_ns)
{
	u64 delay_ns = k2_minus(took_ns, needs_ns) + flight->worked_ns;

	k2_delay_learn(&ahead->delay, flight->others, delay_ns, flight->others_ns, now_ns);
}

static void forget_flight(struct k2_lookahead *ahead, u32 number, u64 now_ns)
{
	const struct k2_flight *flight = &ahead->flight[number];

	k2_declared_done(&ahead->declared, number, now_ns);
	ahead->needs_ns -= flight->needs_ns;
	if (flight->level < K2_RT_LEVELS) {
		ahead->rt_needs_ns -= flight->needs_ns;
		if (!--ahead->level_watched[flight->level])
			ahead->levels_watched &= ~(1U << flight->level);
	}
	ahead->watched &= ~(1U << number);
	ahead->watched_count--;
	if (ahead->first == number)
		ahead->first = K2_FLIGHT_NONE;
	if (ahead->probe == number) {
		ahead->probe = K2_FLIGHT_NONE;
		ahead->is_probing = false;
	}
}

void k2_lookahead_cancel(struct k2_lookahead *ahead, u32 number, u64 now_ns)
{
	if (number == K2_FLIGHT_UNTIMED) {
		k2_declared_untimed_done(&ahead->declared, now_ns);
		return;
	}
	if (ahead->flight[number].op == OP_WRITE)
		k2_pace_cancel(&ahead->pace);
	forget_flight(ahead, number, now_ns);
}

/* The time beyond its own, that of the commands before it, and rt_block_us. */
static u64 stalled_ns(const struct k2_lookahead *ahead, const struct k2_flight *flight, u64 took_ns)
{
	return k2_minus(took_ns, flight->needs_ns + flight->others_ns + ahead->rt_block_ns);
}

/* Learns about the device and the pace of writes from a command. */
static void learn(struct k2_lookahead *ahead, u32 number, u64 now_ns)
{
	const struct k2_flight *flight = &ahead->flight[number];
	u64 took_ns = k2_minus(now_ns, flight->since_ns);
	u64 needs_ns = alone_ns(ahead, flight);

	if (flight->level < K2_RT_LEVELS && flight->op != OP_WRITE)
		k2_pace_rt_read(&ahead->pace, took_ns > needs_ns + ahead->rt_block_ns, now_ns);
	if (flight->op == OP_WRITE)
		k2_pace_end(&ahead->pace, flight->bytes, stalled_ns(ahead, flight, took_ns),
			    now_ns);
	/* Alone, a command takes no longer than alongside others. */
	if (ahead->first == number || ahead->probe == number || took_ns < needs_ns)
		k2_device_learn(&ahead->device, flight->op, flight->bytes, took_ns,
				ahead->first != number || !ahead->is_alone, flight->jumps, now_ns);
	if (flight->others && needs_ns)
		learn_delay(ahead, flight, needs_ns, took_ns, now_ns);
}

void k2_lookahead_done(struct k2_lookahead *ahead, u32 number, u64 now_ns)
{
	if (number == K2_FLIGHT_UNTIMED) {
		k2_declared_untimed_done(&ahead->declared, now_ns);
		return;
	}
	learn(ahead, number, now_ns);
	forget_flight(ahead, number, now_ns);
	ahead->busy_ns = now_ns;
}
