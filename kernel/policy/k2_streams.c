// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_streams.h"

/* One of several threads is gone after this time, and this many times its longest gap. */
#define GONE_NS	   1000000000ULL
#define GONE_TIMES 8
/* A process without threads is guarded for this long. */
#define NO_THREAD_NS 1000000000ULL

static u64 silent_ns(const struct k2_pattern *pattern, u64 now_ns)
{
	u64 last_ns = k2_max(pattern->arrival_ns, pattern->end_ns);

	return pattern->outstanding ? 0 : k2_minus(now_ns, last_ns);
}

/* Finds a thread's stream of @process, or a process's stream if @process is K2_STREAM_NONE. */
static u32 find(const struct k2_streams *streams, u32 process, u64 key, u32 level)
{
	u32 i;

	for (i = 0; i < streams->used; i++) {
		const struct k2_stream *stream = &streams->stream[i];

		if (stream->key == key && stream->level == level && stream->process == process)
			return i;
	}
	return K2_STREAM_NONE;
}

void k2_streams_forget(struct k2_streams *streams, u32 number)
{
	u32 i;

	if (streams->stream[number].pattern.outstanding)
		return;
	for (i = 0; i < streams->used; i++)
		if (i == number || streams->stream[i].process == number)
			streams->stream[i].key = 0;
	while (streams->used && !streams->stream[streams->used - 1].key)
		streams->used--;
}

/* Returns K2_STREAM_NONE without memory, or if each stream has requests outstanding. */
static u32 add(struct k2_streams *streams, u32 process, u64 key, u32 level)
{
	u32 number = K2_STREAM_NONE, i;
	u64 oldest_ns = K2_NEVER;

	for (i = 0; i < streams->used && streams->stream[i].key; i++) {
		const struct k2_pattern *pattern = &streams->stream[i].pattern;

		if (i == process || pattern->outstanding || pattern->arrival_ns >= oldest_ns)
			continue;
		number = i;
		oldest_ns = pattern->arrival_ns;
	}
	if (i < K2_STREAMS && streams->stream)
		number = i;
	else if (number != K2_STREAM_NONE)
		k2_streams_forget(streams, number);
	else
		return K2_STREAM_NONE;
	if (streams->used <= number)
		streams->used = number + 1;
	streams->stream[number] =
		(struct k2_stream){.key = key, .level = level, .process = process};
	return number;
}

static u32 take_process(struct k2_streams *streams, const struct k2_thread *thread)
{
	u32 number = find(streams, K2_STREAM_NONE, thread->process, thread->level);

	if (number != K2_STREAM_NONE)
		return number;
	number = find(streams, K2_STREAM_NONE, K2_STREAM_KEY_UNKNOWN, thread->level);
	if (number == K2_STREAM_NONE)
		number = add(streams, K2_STREAM_NONE, thread->process, thread->level);
	if (number != K2_STREAM_NONE) {
		streams->stream[number].key = thread->process;
		streams->stream[number].thread = thread->thread;
	}
	return number;
}

/* The next request of the process, or of the first of its threads. */
static struct k2_window next_of(const struct k2_streams *streams, u32 process, u64 now_ns)
{
	const struct k2_stream *of = &streams->stream[process];
	struct k2_window together = k2_pattern_next(&of->pattern, now_ns);
	struct k2_window first = {.earliest_ns = K2_NEVER}, next;
	u32 i;

	for (i = 0; !of->thread && i < streams->used; i++) {
		const struct k2_pattern *pattern = &streams->stream[i].pattern;

		if (!k2_stream_is_of(streams, i, process) ||
		    silent_ns(pattern, now_ns) >
			    k2_max(GONE_NS, GONE_TIMES * K2_TIME_NS * pattern->gap.latest))
			continue;
		next = k2_pattern_next(pattern, now_ns);
		if (!next.is_known)
			return together;
		if (next.earliest_ns < first.earliest_ns)
			first = next;
	}
	return first.earliest_ns == K2_NEVER ? together : first;
}

u32 k2_streams_arrival(struct k2_streams *streams, const struct k2_thread *thread, u64 now_ns,
		       u64 tolerance_ns)
{
	u32 process = take_process(streams, thread), number;
	struct k2_stream *stream;

	if (process == K2_STREAM_NONE)
		return K2_STREAM_NONE;
	stream = &streams->stream[process];
	if (tolerance_ns != K2_NEVER && stream->pattern.arrival_ns &&
	    next_of(streams, process, now_ns).earliest_ns > now_ns + tolerance_ns)
		streams->early_count++;
	k2_pattern_arrival(&stream->pattern, now_ns);
	stream->wrote = thread->is_write;
	if (stream->thread == thread->thread)
		return process;
	stream->thread = 0;
	number = find(streams, process, thread->thread, thread->level);
	if (number == K2_STREAM_NONE)
		number = add(streams, process, thread->thread, thread->level);
	if (number == K2_STREAM_NONE)
		return process;
	k2_pattern_arrival(&streams->stream[number].pattern, now_ns);
	return number;
}

void k2_streams_bypassed(struct k2_streams *streams, u32 level, u64 since_ns, u64 now_ns,
			 u64 tolerance_ns)
{
	struct k2_thread thread = {K2_STREAM_KEY_UNKNOWN, K2_STREAM_KEY_UNKNOWN, level, true};
	u64 last_ns = 0;
	u32 i;

	for (i = 0; i < streams->used; i++) {
		const struct k2_stream *stream = &streams->stream[i];

		if (!k2_stream_is_of(streams, i, K2_STREAM_NONE) || stream->level != level)
			continue;
		if (thread.process == K2_STREAM_KEY_UNKNOWN)
			thread.process = 0;
		if (stream->pattern.outstanding || stream->pattern.end_ns < last_ns)
			continue;
		last_ns = stream->pattern.end_ns;
		thread.process = stream->key;
		thread.thread = stream->thread;
	}
	if (!thread.process)
		return;
	i = k2_streams_arrival(streams, &thread, since_ns, tolerance_ns);
	if (i != K2_STREAM_NONE)
		k2_streams_end(streams, i, now_ns);
}

void k2_streams_end(struct k2_streams *streams, u32 number, u64 now_ns)
{
	u32 process = streams->stream[number].process;

	k2_pattern_end(&streams->stream[number].pattern, now_ns);
	if (process != K2_STREAM_NONE)
		k2_pattern_end(&streams->stream[process].pattern, now_ns);
}

static bool has_thread(const struct k2_streams *streams, u32 process)
{
	u32 i;

	for (i = 0; i < streams->used; i++)
		if (k2_stream_is_of(streams, i, process))
			return true;
	return streams->stream[process].thread;
}

static bool is_guarded(const struct k2_streams *streams, u32 number, u32 level, u64 idle_ns,
		       u64 now_ns)
{
	const struct k2_pattern *pattern = &streams->stream[number].pattern;
	u64 quiet_ns, longest;

	if (streams->stream[number].level >= level ||
	    !k2_stream_is_of(streams, number, K2_STREAM_NONE))
		return false;
	quiet_ns = silent_ns(pattern, now_ns);
	longest = k2_max(k2_edge_longest(&pattern->gap), k2_edge_longest(&pattern->pause));
	if (!idle_ns || quiet_ns < 2 * K2_TIME_NS * longest)
		return true;
	return quiet_ns < idle_ns && (quiet_ns < NO_THREAD_NS || has_thread(streams, number));
}

bool k2_streams_alive(const struct k2_streams *streams, u32 level, u64 idle_ns, u64 now_ns)
{
	u32 i;

	for (i = 0; i < streams->used; i++)
		if (is_guarded(streams, i, level, idle_ns, now_ns))
			return true;
	return false;
}

bool k2_streams_may_sync(const struct k2_streams *streams, u32 level, u64 idle_ns, u64 now_ns)
{
	u32 i;

	for (i = 0; i < streams->used; i++)
		if (is_guarded(streams, i, level, idle_ns, now_ns) &&
		    (!streams->stream[i].wrote || streams->stream[i].pattern.outstanding))
			return false;
	return true;
}

struct k2_window k2_streams_next(const struct k2_streams *streams, u32 level, u64 idle_ns,
				 u64 now_ns)
{
	struct k2_window first = {.earliest_ns = K2_NEVER}, next;
	u32 i;

	for (i = 0; i < streams->used; i++) {
		if (!is_guarded(streams, i, level, idle_ns, now_ns))
			continue;
		next = next_of(streams, i, now_ns);
		if (next.earliest_ns < first.earliest_ns)
			first = next;
	}
	return first;
}
