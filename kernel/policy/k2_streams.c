// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_streams.h"

/* A gap belongs to a kind if it is not further from it than an eighth of itself, or this. */
#define KIND_DISTANCE_NS 40000ULL
/* Below so many arrivals a stream is new. */
#define ARRIVALS_MIN 16
/* An epoch lasts for at least this long, so many arrivals, and so many of the longest gaps. */
#define EPOCH_NS       16000000000ULL
#define EPOCH_ARRIVALS 64
#define EPOCH_GAPS     4
/* See kind_margin_ns(). */
#define MARGIN_MIN_NS	 20000ULL
#define MARGIN_DISTANCES 3
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

/* Kinds. */

static u64 kind_shortest(const struct k2_kind *kind)
{
	return min_u64(kind->shortest_ns[0][0], kind->shortest_ns[1][0]);
}

static u64 kind_longest(const struct k2_kind *kind)
{
	return max_u64(kind->longest_ns[0], kind->longest_ns[1]);
}

static u32 kind_count(const struct k2_kind *kind)
{
	return kind->count[0] + kind->count[1];
}

static void forget_epoch(struct k2_kind *kind, u32 epoch)
{
	u32 i;

	for (i = 0; i < K2_SHORTEST; i++)
		kind->shortest_ns[epoch][i] = K2_NEVER;
	kind->longest_ns[epoch] = 0;
	kind->count[epoch] = 0;
}

static void note_gap(struct k2_kind *kind, u32 epoch, u64 gap_ns)
{
	u64 *shortest = kind->shortest_ns[epoch];
	u32 i;

	kind->longest_ns[epoch] = max_u64(kind->longest_ns[epoch], gap_ns);
	for (i = 0; i < K2_SHORTEST; i++) {
		u64 other_ns = shortest[i];

		if (gap_ns >= other_ns)
			continue;
		shortest[i] = gap_ns;
		gap_ns = other_ns;
	}
}

static void kind_add(struct k2_kind *kind, u64 gap_ns)
{
	note_gap(kind, 0, gap_ns);
	kind->count[0]++;
}

/* @from becomes part of @to. */
static void kind_join(struct k2_kind *to, const struct k2_kind *from)
{
	u32 epoch, i;

	for (epoch = 0; epoch < 2; epoch++) {
		for (i = 0; i < K2_SHORTEST && from->shortest_ns[epoch][i] != K2_NEVER; i++)
			note_gap(to, epoch, from->shortest_ns[epoch][i]);
		to->longest_ns[epoch] = max_u64(to->longest_ns[epoch], from->longest_ns[epoch]);
		to->count[epoch] += from->count[epoch];
	}
}

/*
 * By how much the next gap may be shorter than all before: a multiple of the distance between the
 * shortest ones, which shows how sharp the edge is, and the more the fewer there are.
 */
static u64 kind_margin_ns(const struct k2_kind *kind)
{
	u64 shortest = kind_shortest(kind), distance = 0;
	u32 count = kind_count(kind), epoch, shift = 2;
	bool is_known = false;

	for (epoch = 0; epoch < 2; epoch++) {
		u64 last = kind->shortest_ns[epoch][K2_SHORTEST - 1];

		if (last == K2_NEVER)
			continue;
		is_known = true;
		distance = max_u64(distance, last - kind->shortest_ns[epoch][0]);
	}
	if (!is_known)
		return shortest >> 2;
	/* shortest / (4 * count), without a division */
	for (; count > 1; count >>= 1)
		shift++;
	return min_u64(MARGIN_DISTANCES * distance + (shortest >> shift) + MARGIN_MIN_NS,
		       shortest >> 2);
}

static u64 kind_earliest(const struct k2_kind *kind)
{
	return kind_shortest(kind) - kind_margin_ns(kind);
}

/* Later than this, a stream of this kind is late. */
static u64 kind_latest(const struct k2_kind *kind)
{
	u64 longest = kind_longest(kind);

	return longest + (longest >> 3) + KIND_DISTANCE_NS;
}

/* Gaps. */

static void remove_kind(struct k2_gaps *gaps, u32 i)
{
	gaps->kinds--;
	for (; i < gaps->kinds; i++)
		gaps->kind[i] = gaps->kind[i + 1];
}

static void join_with_next(struct k2_gaps *gaps, u32 i)
{
	kind_join(&gaps->kind[i], &gaps->kind[i + 1]);
	remove_kind(gaps, i + 1);
}

/* Are they so near that they are one kind? */
static bool touch(u64 low_ns, u64 high_ns)
{
	return high_ns <= low_ns || high_ns - low_ns <= (high_ns >> 3) + KIND_DISTANCE_NS;
}

static void join_nearest(struct k2_gaps *gaps)
{
	u64 nearest = K2_NEVER;
	u32 i, at = 0;

	for (i = 0; i + 1 < gaps->kinds; i++) {
		u64 distance =
			since_ns(kind_shortest(&gaps->kind[i + 1]), kind_longest(&gaps->kind[i]));

		if (distance < nearest) {
			nearest = distance;
			at = i;
		}
	}
	join_with_next(gaps, at);
}

static void insert_kind(struct k2_gaps *gaps, u32 at, u64 gap_ns)
{
	u32 i;

	for (i = gaps->kinds; i > at; i--)
		gaps->kind[i] = gaps->kind[i - 1];
	forget_epoch(&gaps->kind[at], 0);
	forget_epoch(&gaps->kind[at], 1);
	kind_add(&gaps->kind[at], gap_ns);
	gaps->kinds++;
}

static void gaps_add(struct k2_gaps *gaps, u64 gap_ns)
{
	u32 i = 0;

	while (i < gaps->kinds && !touch(kind_longest(&gaps->kind[i]), gap_ns))
		i++;
	/* The kinds before are all shorter. */
	if (i < gaps->kinds && touch(gap_ns, kind_shortest(&gaps->kind[i]))) {
		kind_add(&gaps->kind[i], gap_ns);
		if (i + 1 < gaps->kinds &&
		    touch(kind_longest(&gaps->kind[i]), kind_shortest(&gaps->kind[i + 1])))
			join_with_next(gaps, i);
		return;
	}
	if (gaps->kinds == K2_KINDS) {
		join_nearest(gaps);
		gaps_add(gaps, gap_ns);
		return;
	}
	insert_kind(gaps, i, gap_ns);
}

static void gaps_next_epoch(struct k2_gaps *gaps)
{
	u32 i = 0, j;

	while (i < gaps->kinds) {
		struct k2_kind *kind = &gaps->kind[i];

		if (!kind->count[0]) {
			remove_kind(gaps, i);
			continue;
		}
		for (j = 0; j < K2_SHORTEST; j++)
			kind->shortest_ns[1][j] = kind->shortest_ns[0][j];
		kind->longest_ns[1] = kind->longest_ns[0];
		kind->count[1] = kind->count[0];
		forget_epoch(kind, 0);
		i++;
	}
}

/*
 * The shortest gap from @gap_ns on that may be the next. Between two kinds there is none only if
 * they are far apart and the later one is no accident: a late request is then not taken for one
 * of the other kind.
 */
static u64 gaps_next(const struct k2_gaps *gaps, u64 gap_ns)
{
	u64 latest_ns = 0;
	u32 i;

	for (i = 0; i < gaps->kinds; i++) {
		const struct k2_kind *kind = &gaps->kind[i];
		u64 earliest_ns = kind_earliest(kind);

		if (gap_ns < earliest_ns) {
			if (i == 0 || (earliest_ns >= 2 * latest_ns && kind_count(kind) >= 2))
				return earliest_ns;
			return gap_ns;
		}
		latest_ns = kind_latest(kind);
		if (gap_ns <= latest_ns)
			return gap_ns;
	}
	return gap_ns;
}

static u64 gaps_longest(const struct k2_gaps *gaps)
{
	return gaps->kinds ? kind_longest(&gaps->kind[gaps->kinds - 1]) : 0;
}

/* Streams. */

static bool is_predictable(const struct k2_stream *stream)
{
	return stream->arrivals >= ARRIVALS_MIN && !stream->distrust;
}

/* Does not look at distrust. */
static u64 expected_ns(const struct k2_stream *stream, u64 now_ns)
{
	u64 gap_ns = since_ns(now_ns, stream->arrival_ns);
	bool thinks = !stream->is_concurrent && stream->think.kinds;
	/* While a request is outstanding, it may end at once. */
	u64 think_ns = stream->outstanding ? 0 : since_ns(now_ns, stream->end_ns);
	u64 ahead_ns = 0;
	u32 turns;

	if (stream->arrivals < ARRIVALS_MIN)
		return now_ns;
	for (turns = 0; turns < 2 * K2_KINDS; turns++) {
		u64 next_ns = gaps_next(&stream->arrival, gap_ns + ahead_ns) - gap_ns;

		if (thinks)
			next_ns = max_u64(next_ns,
					  gaps_next(&stream->think, think_ns + next_ns) - think_ns);
		if (next_ns == ahead_ns)
			break;
		ahead_ns = next_ns;
	}
	return now_ns + ahead_ns;
}

static void turn_epoch(struct k2_stream *stream, u64 now_ns)
{
	u64 age_ns = since_ns(now_ns, stream->epoch_ns);

	if (stream->epoch_arrivals < EPOCH_ARRIVALS || age_ns < EPOCH_NS ||
	    age_ns < EPOCH_GAPS * gaps_longest(&stream->arrival))
		return;
	gaps_next_epoch(&stream->arrival);
	gaps_next_epoch(&stream->think);
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
		return number;
	}
	stream = &streams->stream[number];
	judge(streams, stream, now_ns, tolerance_ns);
	turn_epoch(stream, now_ns);
	gaps_add(&stream->arrival, since_ns(now_ns, stream->arrival_ns));
	if (stream->outstanding)
		stream->is_concurrent = true;
	else
		gaps_add(&stream->think, since_ns(now_ns, stream->end_ns));
	stream->arrivals += stream->arrivals < ARRIVALS_MIN;
	stream->epoch_arrivals++;
	stream->outstanding++;
	stream->arrival_ns = now_ns;
	return number;
}

void k2_streams_end(struct k2_streams *streams, u32 number, u64 now_ns)
{
	struct k2_stream *stream = &streams->stream[number];

	if (stream->outstanding)
		stream->outstanding--;
	stream->end_ns = now_ns;
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
	return is_predictable(stream) ? expected_ns(stream, now_ns) : now_ns;
}

u64 k2_streams_next_ns(const struct k2_streams *streams, u32 level, u64 now_ns)
{
	u64 next_ns = K2_NEVER;
	u32 i;

	for (i = 0; i < streams->used; i++) {
		const struct k2_stream *stream = &streams->stream[i];

		if (!stream->key || stream->level >= level)
			continue;
		next_ns = min_u64(next_ns, k2_stream_next_ns(stream, now_ns));
	}
	return next_ns;
}
