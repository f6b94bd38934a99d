// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_streams.h"

/* The first gaps are not learned: nobody guarded the stream then. */
#define ARRIVALS_UNGUARDED 8
/* Below so many arrivals a stream is new. */
#define ARRIVALS_MIN 24
/* An epoch lasts for at least this long, so many arrivals, and so many of the longest gaps. */
#define EPOCH_NS       16000000000ULL
#define EPOCH_ARRIVALS 64
#define EPOCH_GAPS     4
/* A stream that came too early is distrusted for so many arrivals, doubling each time. */
#define DISTRUST_MIN 16
#define DISTRUST_MAX 1024

static u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

static u64 since_ns(u64 now_ns, u64 then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* Streams. */

static bool is_predictable(const struct k2_stream *stream)
{
	return stream->arrivals >= ARRIVALS_MIN && !stream->distrust;
}

/* When the gap began that is to be known. */
static u64 gap_since_ns(const struct k2_stream *stream, u64 now_ns)
{
	if (!stream->thinks)
		return stream->arrival_ns;
	/* While a request is outstanding, it may end at once. */
	return stream->outstanding ? now_ns : stream->end_ns;
}

static struct k2_window next_gap(const struct k2_stream *stream, u32 gap)
{
	return k2_gaps_next(stream->thinks ? &stream->think : &stream->arrival, gap);
}

/* Does not look at distrust. */
static u64 expected_ns(const struct k2_stream *stream, u64 now_ns)
{
	u64 then_ns = gap_since_ns(stream, now_ns), earliest_ns;

	if (stream->arrivals < ARRIVALS_MIN)
		return now_ns;
	earliest_ns =
		then_ns + next_gap(stream, k2_gap(since_ns(now_ns, then_ns))).earliest * K2_GAP_NS;
	earliest_ns = max_u64(earliest_ns, k2_grid_earliest_ns(&stream->grid));
	return max_u64(earliest_ns, now_ns);
}

static void turn_epoch(struct k2_stream *stream, u64 now_ns)
{
	u64 age_ns = since_ns(now_ns, stream->epoch_ns);

	if (stream->epoch_arrivals < EPOCH_ARRIVALS || age_ns < EPOCH_NS ||
	    age_ns < EPOCH_GAPS * K2_GAP_NS * k2_gaps_longest(&stream->arrival))
		return;
	k2_gaps_next_epoch(&stream->arrival);
	k2_gaps_next_epoch(&stream->think);
	k2_grid_next_epoch(&stream->grid);
	stream->epoch_ns = now_ns;
	stream->epoch_arrivals = 0;
}

/* It came too early by more than is harmless: it has no pattern for the next arrivals. */
static void judge(struct k2_streams *streams, struct k2_stream *stream, u64 now_ns,
		  u64 tolerance_ns)
{
	u64 early_ns;

	if (stream->arrivals < ARRIVALS_MIN)
		return;
	early_ns = since_ns(expected_ns(stream, now_ns), now_ns);
	if (early_ns > tolerance_ns) {
		streams->early_count++;
		stream->distrust = stream->distrust_next;
		stream->distrust_next = (u32)min_u64(2 * stream->distrust_next, DISTRUST_MAX);
	} else if (stream->distrust && --stream->distrust == 0) {
		stream->distrust_next = (u32)max_u64(stream->distrust_next / 2, DISTRUST_MIN);
	}
}

/*
 * Does its next request come a time after the last one ended, not after it arrived? Then the times
 * from an end to an arrival are the same, whatever a request took, and those between arrivals vary
 * by that. If neither is so, the latter count: what delays a request does not put off the next.
 */
static bool thinks(const struct k2_stream *stream)
{
	u32 spread = k2_gaps_spread(&stream->arrival);

	return !stream->is_concurrent && stream->think.kinds &&
	       k2_gaps_spread(&stream->think) < spread - (spread >> 2);
}

static void learn_gaps(struct k2_stream *stream, u64 now_ns)
{
	k2_gaps_add(&stream->arrival, k2_gap(since_ns(now_ns, stream->arrival_ns)));
	if (!stream->outstanding)
		k2_gaps_add(&stream->think, k2_gap(since_ns(now_ns, stream->end_ns)));
	k2_grid_add(&stream->grid, now_ns);
	stream->thinks = thinks(stream);
}

static u32 find(const struct k2_streams *streams, u64 key, u32 level)
{
	u32 i;

	for (i = 0; i < streams->used; i++)
		if (streams->stream[i].key == key && streams->stream[i].level == level)
			return i;
	return K2_STREAM_NONE;
}

/* A free place, or that of the stream that was silent longest and has nothing outstanding. */
static u32 make_room(struct k2_streams *streams)
{
	u32 i, oldest = 0;

	for (i = 0; i < streams->used; i++)
		if (!streams->stream[i].key)
			return i;
	if (streams->used < K2_STREAMS)
		return streams->used++;
	for (i = 1; i < K2_STREAMS; i++)
		if (streams->stream[i].arrival_ns < streams->stream[oldest].arrival_ns)
			oldest = i;
	return oldest;
}

u32 k2_streams_arrival(struct k2_streams *streams, u64 key, u32 level, u64 now_ns, u64 tolerance_ns)
{
	u32 number = find(streams, key, level);
	struct k2_stream *stream;

	if (number == K2_STREAM_NONE) {
		number = find(streams, K2_STREAM_KEY_UNKNOWN, level);
		if (number != K2_STREAM_NONE)
			streams->stream[number].key = key;
	}
	if (number == K2_STREAM_NONE) {
		number = make_room(streams);
		streams->stream[number] = (struct k2_stream){
			.key = key,
			.level = level,
			.outstanding = 1,
			.arrival_ns = now_ns,
			.end_ns = now_ns,
			.epoch_ns = now_ns,
			.distrust_next = DISTRUST_MIN,
		};
		k2_grid_init(&streams->stream[number].grid);
		return number;
	}
	stream = &streams->stream[number];
	judge(streams, stream, now_ns, tolerance_ns);
	turn_epoch(stream, now_ns);
	if (stream->outstanding)
		stream->is_concurrent = true;
	if (stream->arrivals >= ARRIVALS_UNGUARDED)
		learn_gaps(stream, now_ns);
	stream->arrivals += stream->arrivals < ARRIVALS_MIN;
	stream->epoch_arrivals++;
	stream->outstanding++;
	stream->arrival_ns = now_ns;
	stream->wait = 0;
	return number;
}

/* The stream of @level whose requests ended last, of those that have none outstanding. */
static u64 last_ended(const struct k2_streams *streams, u32 level)
{
	u32 last = K2_STREAM_NONE;
	bool is_known = false;
	u32 i;

	for (i = 0; i < streams->used; i++) {
		const struct k2_stream *stream = &streams->stream[i];

		if (!stream->key || stream->level != level)
			continue;
		is_known = true;
		if (!stream->outstanding &&
		    (last == K2_STREAM_NONE || stream->end_ns >= streams->stream[last].end_ns))
			last = i;
	}
	if (last != K2_STREAM_NONE)
		return streams->stream[last].key;
	return is_known ? 0 : K2_STREAM_KEY_UNKNOWN;
}

void k2_streams_bypassed(struct k2_streams *streams, u32 level, u64 since_ns, u64 now_ns,
			 u64 tolerance_ns)
{
	u64 key = last_ended(streams, level);
	u32 number;

	if (!key)
		return;
	number = k2_streams_arrival(streams, key, level, since_ns, tolerance_ns);
	streams->stream[number].bypasses = true;
	k2_streams_end(streams, number, now_ns);
}

void k2_streams_end(struct k2_streams *streams, u32 number, u64 now_ns)
{
	struct k2_stream *stream = &streams->stream[number];

	if (stream->outstanding)
		stream->outstanding--;
	stream->end_ns = now_ns;
}

void k2_streams_wait(struct k2_streams *streams, u32 number, u64 wait, u64 now_ns)
{
	struct k2_stream *stream = &streams->stream[number];

	if (wait != stream->wait)
		stream->waits_since_ns = now_ns;
	stream->wait = wait;
}

bool k2_streams_all_wait(const struct k2_streams *streams, u32 level)
{
	u32 i;

	for (i = 0; i < streams->used; i++) {
		const struct k2_stream *stream = &streams->stream[i];

		if (stream->key && stream->level < level && (!stream->wait || stream->bypasses))
			return false;
	}
	return true;
}

void k2_streams_forget(struct k2_streams *streams, u32 number)
{
	streams->stream[number].key = 0;
	while (streams->used && !streams->stream[streams->used - 1].key)
		streams->used--;
}

void k2_streams_expire(struct k2_streams *streams, u64 idle_ns, u64 now_ns)
{
	u32 i;

	/* Forgetting lowers `used`, never below what is still to be seen. */
	for (i = streams->used; i-- > 0;) {
		const struct k2_stream *stream = &streams->stream[i];
		u64 last_ns = max_u64(stream->arrival_ns, stream->end_ns);

		if (stream->key && !stream->outstanding && since_ns(now_ns, last_ns) >= idle_ns)
			k2_streams_forget(streams, i);
	}
}

bool k2_streams_alive(const struct k2_streams *streams, u32 level)
{
	u32 i;

	for (i = 0; i < streams->used; i++)
		if (streams->stream[i].key && streams->stream[i].level < level)
			return true;
	return false;
}

u64 k2_stream_next_ns(const struct k2_stream *stream, u64 now_ns)
{
	u64 next_ns = is_predictable(stream) ? expected_ns(stream, now_ns) : now_ns;
	u64 waited_ns = stream->wait ? since_ns(now_ns, stream->waits_since_ns) : 0;

	return max_u64(next_ns, now_ns + since_ns(waited_ns, K2_STREAM_PATIENCE_NS) / 2);
}

u32 k2_streams_next(const struct k2_streams *streams, u32 level, u64 now_ns, u64 *next_ns)
{
	u32 first = K2_STREAM_NONE, i;

	*next_ns = K2_NEVER;
	for (i = 0; i < streams->used; i++) {
		const struct k2_stream *stream = &streams->stream[i];
		u64 expected_ns;

		if (!stream->key || stream->level >= level)
			continue;
		expected_ns = k2_stream_next_ns(stream, now_ns);
		if (expected_ns >= *next_ns)
			continue;
		first = i;
		*next_ns = expected_ns;
	}
	return first;
}

struct k2_expected k2_stream_expected(const struct k2_stream *stream, u64 now_ns)
{
	static const struct k2_expected no_telling;
	u64 then_ns = gap_since_ns(stream, now_ns);
	u64 earliest_ns, latest_ns;
	struct k2_window next;

	if (!is_predictable(stream) || stream->wait || (stream->thinks && stream->outstanding))
		return no_telling;
	next = next_gap(stream, k2_gap(since_ns(now_ns, then_ns)));
	earliest_ns =
		max_u64(then_ns + next.earliest * K2_GAP_NS, k2_grid_earliest_ns(&stream->grid));
	latest_ns = min_u64(then_ns + next.latest * K2_GAP_NS, k2_grid_latest_ns(&stream->grid));
	if (latest_ns <= now_ns || latest_ns <= earliest_ns)
		return no_telling;
	return (struct k2_expected){then_ns, latest_ns, latest_ns - earliest_ns};
}
