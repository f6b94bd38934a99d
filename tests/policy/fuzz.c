// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Look-ahead with streams and a device that behave as badly as can be. Times are nothing, or
 * hours. A device becomes ten times slower and fast again, or lies. A driver returns
 * commands undone. Clocks stop or jump. Three rules must hold. A dispatched piece fits by
 * look-ahead's own prediction. A held request has an event to wait for. All counters are
 * right.
 *
 * A run is random steps from one seed; the first rule that is broken ends it and names the command
 * that repeats it. The sanitizers find what is out of bounds or divided by zero.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "k2_lookahead.h"

#define US		 1000ULL
#define MS		 1000000ULL
#define S		 1000000000ULL
#define STEPS_DEFAULT	 4000
#define SEEDS_DEFAULT	 100
#define INFLIGHT_MAX	 40 /* more than are watched */
#define KEYS		 90 /* more than there are streams */
#define PROCESSES	 9
#define BACKGROUND_LEVEL 8

struct command {
	u32 flight;
	u32 op, bytes;
};

struct arrival {
	u32 stream;
};

static struct k2_stream streams_memory[K2_STREAMS];
static struct k2_lookahead ahead;
static struct command commands[INFLIGHT_MAX];
static struct arrival arrivals[INFLIGHT_MAX];
static u32 inflight, arrived;
static u64 now_ns, random_state, seed, step;
static u32 mood; /* of the device */

static u64 random_below(u64 bound)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return ((random_state * 0x2545f4914f6cdd1dULL) >> 8) % bound;
}

static void must(bool holds, const char *rule)
{
	if (holds)
		return;
	printf("FAIL policy: fuzz: %s (fuzz %" PRIu64 " %" PRIu64 ")\n", rule, seed, step + 1);
	exit(EXIT_FAILURE);
}

/* Which a command takes in the device's mood. */
static u64 takes_ns(u32 bytes)
{
	u64 ns = 100 * US + bytes * 10ULL + random_below(20 * US);

	switch (mood) {
	case 0:
		return ns;
	case 1:
		return 10 * ns;
	case 2: /* now and then it stalls */
		return random_below(20) ? ns : ns + random_below(20 * MS);
	case 3: /* larger is faster */
		return 10 * S / bytes;
	case 4:
		return 0;
	default:
		return random_below(1ULL << random_below(60));
	}
}

static void pass_time(void)
{
	switch (random_below(40)) {
	case 0:
		now_ns += random_below(30 * S);
		break;
	case 1: /* what another CPU had read a moment before */
		now_ns -= now_ns > US ? random_below(US) : 0;
		break;
	case 2:
		break;
	default:
		now_ns += random_below(MS);
	}
}

static void arrive(void)
{
	u32 level = (u32)random_below(BACKGROUND_LEVEL);
	struct k2_thread thread;
	u32 stream;

	if (arrived == INFLIGHT_MAX)
		return;
	thread = (struct k2_thread){1 + random_below(PROCESSES), 1 + random_below(KEYS), level,
				    random_below(2)};
	stream = k2_lookahead_rt_arrival(&ahead, &thread, now_ns);
	if (stream == K2_STREAM_NONE)
		return;
	must(stream < K2_STREAMS, "a stream has a number");
	arrivals[arrived++].stream = stream;
}

static void end_arrival(void)
{
	u32 i;

	if (!arrived)
		return;
	i = (u32)random_below(arrived);
	k2_lookahead_rt_end(&ahead, arrivals[i].stream, now_ns);
	arrivals[i] = arrivals[--arrived];
}

static void bypass(void)
{
	u64 since_ns = now_ns - random_below(2) * random_below(now_ns);

	k2_lookahead_bypassed(&ahead, BACKGROUND_LEVEL, since_ns, now_ns);
	if (random_below(2))
		k2_lookahead_rt_bypassed(&ahead, (u32)random_below(BACKGROUND_LEVEL), since_ns,
					 now_ns);
}

/* Does a piece keep the bound if no slow episode begins? */
static bool is_short_now(u32 op, u32 bytes)
{
	u64 line_ns = k2_device_time_ns(&ahead.device, op, bytes) -
		      k2_device_reserve_ns(&ahead.device, op);

	return !ahead.is_strict &&
	       line_ns + k2_device_recent_ns(&ahead.device, op, ahead.jumps) <= ahead.rt_block_ns;
}

/* Then the piece is the largest that takes hardly longer than the smallest. */
static bool does_nothing_fit(u32 op, u64 room_ns)
{
	return k2_device_time_ns(&ahead.device, op, K2_PIECE_MIN) >
	       room_ns + k2_device_reserve_ns(&ahead.device, op);
}

/* Returns the dispatched bytes, or 0. */
static u32 ask(u32 op, u32 bytes)
{
	u32 block_bytes = K2_PIECE_MIN << random_below(3), level = BACKGROUND_LEVEL, piece;
	struct k2_cut cut = {
		op,    bytes,		block_bytes,	 inflight, (u32)random_below(inflight + 1),
		false, random_below(2), random_below(2), 0,	   0};
	u64 least_ns = ahead.rt_block_ns - (ahead.rt_block_ns >> 4);

	if (!k2_lookahead_guards(&ahead, level, now_ns))
		return bytes;
	k2_lookahead_make_room(&ahead, &cut, level, now_ns);
	must(cut.may_wait || !cut.wait_until_ns, "what may not wait does not");
	must(!cut.wait_until_ns || (cut.wait_until_ns > now_ns &&
				    cut.wait_until_ns - now_ns <= cut.room_ns + K2_IDLE_NS_MAX),
	     "no wait is long");
	must(cut.wait_until_ns || cut.room_ns >= least_ns,
	     "there is always room for the bound, but for software");
	piece = k2_lookahead_piece_bytes(&ahead, &cut, now_ns);
	must(piece <= bytes, "a piece is no larger than the request");
	must(piece == bytes || piece % block_bytes == 0, "pieces are whole blocks");
	must(piece || inflight || cut.wait_until_ns,
	     "what is held back waits for something in flight, or until a time");
	must(inflight || !piece || (piece <= block_bytes && !cut.wait_until_ns) ||
		     !ahead.device.op[op].is_known ||
		     k2_device_time_ns(&ahead.device, op, piece) <= cut.room_ns ||
		     is_short_now(op, piece) || does_nothing_fit(op, cut.room_ns),
	     "no piece takes longer than there is room for");
	return piece;
}

static void dispatch(void)
{
	u32 op = (u32)random_below(K2_DEVICE_OPS);
	u32 bytes = 512U << random_below(15);
	struct command *command = &commands[inflight];

	if (inflight == INFLIGHT_MAX)
		return;
	bytes = ask(op, bytes);
	if (!bytes)
		return;
	*command = (struct command){K2_FLIGHT_NONE, op, bytes};
	if (random_below(10))
		command->flight =
			k2_lookahead_watch(&ahead, BACKGROUND_LEVEL, op, bytes, inflight, now_ns);
	else
		command->flight = k2_lookahead_unwatched(&ahead, BACKGROUND_LEVEL, now_ns);
	inflight++;
}

static void end_command(bool given_back)
{
	struct command *command;

	if (!inflight)
		return;
	command = &commands[random_below(inflight)];
	now_ns += given_back ? 0 : takes_ns(command->bytes);
	if (command->flight != K2_FLIGHT_NONE && given_back)
		k2_lookahead_cancel(&ahead, command->flight, now_ns);
	else if (command->flight != K2_FLIGHT_NONE)
		k2_lookahead_done(&ahead, command->flight, now_ns);
	*command = commands[--inflight];
}

static void check_edge(const struct k2_edge *edge)
{
	must(edge->earliest <= k2_edge_shortest(edge), "no limit is inside what was seen");
	must(k2_edge_count(edge) < K2_EDGE_KEPT || edge->latest >= edge->earliest,
	     "limits are in order");
}

/* Each thread has a process, and requests outstanding are counted in both. */
static void check_streams(void)
{
	const struct k2_streams *streams = &ahead.streams;

	for (u32 i = 0; i < streams->used; i++) {
		const struct k2_stream *stream = &streams->stream[i];
		const struct k2_stream *process = &streams->stream[stream->process];

		if (!stream->key)
			continue;
		check_edge(&stream->pattern.gap);
		check_edge(&stream->pattern.pause);
		if (stream->process == K2_STREAM_NONE)
			continue;
		must(stream->process < streams->used &&
			     k2_stream_is_of(streams, stream->process, K2_STREAM_NONE) &&
			     process->level == stream->level,
		     "a thread has a process");
		must(stream->pattern.outstanding <= process->pattern.outstanding,
		     "a request of a thread is one of its process");
	}
}

static void check_books(void)
{
	u64 backlog_ns = 0;
	struct k2_window next;
	u32 watched = 0, i;

	for (i = 0; i < inflight; i++) {
		if (commands[i].flight == K2_FLIGHT_NONE)
			continue;
		watched++;
		backlog_ns += ahead.flight[commands[i].flight].needs_ns;
	}
	must(ahead.watched_count == watched, "the watched are counted");
	must((u32)__builtin_popcount(ahead.watched) == watched, "each of the watched has a place");
	must(ahead.needs_ns == backlog_ns, "the backlog is the sum of what is in flight");
	must(ahead.probe == K2_FLIGHT_NONE ||
		     (ahead.is_probing && ahead.watched >> ahead.probe & 1),
	     "a probe is in flight");
	must(ahead.streams.used <= K2_STREAMS, "there are not too many streams");
	next = k2_streams_next(&ahead.streams, BACKGROUND_LEVEL, ahead.rt_idle_ns, now_ns);
	must(next.earliest_ns >= now_ns, "what is expected is not in the past");
	must(!next.latest_ns || next.latest_ns > now_ns, "and may be late, not too late");
	check_streams();
	for (u32 op = 0; op < K2_DEVICE_OPS; op++) {
		u64 last_ns = 0;

		for (i = 0; ahead.device.op[op].is_known && i < K2_SIZES; i++) {
			u64 ns = k2_device_time_ns(&ahead.device, op, K2_PIECE_MIN << i);

			must(ns && ns >= last_ns, "more bytes take no less, and none no time");
			last_ns = ns;
		}
	}
}

static void forget(void)
{
	u32 i = (u32)random_below(K2_STREAMS);

	if (i < ahead.streams.used && ahead.streams.stream[i].key)
		k2_streams_forget(&ahead.streams, i);
}

static void take_step(void)
{
	switch (random_below(12)) {
	case 0:
	case 1:
		arrive();
		break;
	case 2:
	case 3:
		end_arrival();
		break;
	case 4:
		end_command(true);
		break;
	case 5:
		if (!random_below(20))
			forget();
		if (!random_below(20))
			k2_lookahead_set_rt_block_us(&ahead, 1 + (u32)random_below(3000));
		if (!random_below(20))
			ahead.is_strict = random_below(2);
		break;
	case 6:
		if (!random_below(4))
			bypass();
		if (!random_below(100))
			k2_device_believe(&ahead.device, (u32)random_below(K2_DEVICE_OPS),
					  (u32)random_below(1U << 24), random_below(1ULL << 40),
					  random_below(1ULL << 40));
		break;
	case 7:
	case 8:
	case 9:
		end_command(false);
		break;
	default:
		dispatch();
	}
}

static void run(u64 steps)
{
	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	now_ns = random_below(S);
	inflight = arrived = 0;
	k2_lookahead_init(&ahead);
	ahead.streams.stream = streams_memory;
	k2_lookahead_set_rt_block_us(&ahead, 440);
	for (step = 0; step < steps; step++) {
		if (!random_below(300))
			mood = (u32)random_below(6);
		pass_time();
		take_step();
		check_books();
	}
}

/* fuzz: as in `make test`; fuzz SEEDS: longer; fuzz SEED STEPS: one again. */
int main(int argc, char **argv)
{
	u64 seeds = SEEDS_DEFAULT;

	if (argc == 3) {
		seed = strtoull(argv[1], NULL, 10);
		run(strtoull(argv[2], NULL, 10));
		printf("ok   policy: fuzz: seed %" PRIu64 "\n", seed);
		return EXIT_SUCCESS;
	}
	if (argc == 2)
		seeds = strtoull(argv[1], NULL, 10);
	for (seed = 1; seed <= seeds; seed++)
		run(STEPS_DEFAULT);
	printf("ok   policy: keeps_its_rules_whatever_it_learns (seeds 1 to %" PRIu64
	       ", %d steps each)\n",
	       seeds, STEPS_DEFAULT);
	return EXIT_SUCCESS;
}
