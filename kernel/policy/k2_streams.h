/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When may the next real-time request of any process come?
 *
 * A process is known from its first request at a level until it exits, and has a pattern
 * (k2_pattern.h). So has each of its threads, if there are several. While the patterns of all
 * threads are known, the first of their requests is the next of the process; otherwise the pattern
 * of the process counts, as for a pool of threads that take turns.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls and passes the time,
 * which may stand still but is taken as not going back: an earlier time counts as the last one.
 */
#ifndef K2_STREAMS_H
#define K2_STREAMS_H

#include "k2_excess.h"
#include "k2_pattern.h"

#define K2_STREAMS     32
#define K2_STREAM_NONE K2_STREAMS
/* The process of requests whose process is not known. */
#define K2_STREAM_KEY_UNKNOWN (~0ULL)

struct k2_stream {
	u64 key; /* of the process, or of the thread; 0: free */
	u64 thread; /* of a process: its only one; 0: it has several, or none now */
	u32 process; /* of a thread: the number of its process; K2_STREAM_NONE: it is a process */
	u32 level;
	bool wrote; /* of a process: with its last request */
	struct k2_pattern pattern;
	struct k2_met met;
};

struct k2_streams {
	struct k2_stream *stream; /* memory for K2_STREAMS, of the caller; NULL: none yet */
	u32 used; /* all streams are below */
	u64 early_count; /* requests before their time */
};

/* Is there a stream @number, of this process, or if that is K2_STREAM_NONE, of any? */
static inline bool k2_stream_is_of(const struct k2_streams *streams, u32 number, u32 process)
{
	return streams->stream[number].key && streams->stream[number].process == process;
}

struct k2_thread {
	u64 process, thread; /* not 0 */
	u32 level;
	bool is_write;
};

/*
 * A request of @thread arrives; returns the number of its stream, for k2_streams_end(), or
 * K2_STREAM_NONE if there is no memory or all streams have requests outstanding. If all are used,
 * the one that was silent longest is forgotten. @tolerance_ns: so much earlier than expected does
 * no harm; K2_NEVER: at no time it does.
 */
u32 k2_streams_arrival(struct k2_streams *streams, const struct k2_thread *thread, u64 now_ns,
		       u64 tolerance_ns);
/*
 * A request is known only now that it ends; it arrived at @since_ns. It is taken for one of the
 * process of its level whose requests ended last, such as the flush of an fsync, or of
 * K2_STREAM_KEY_UNKNOWN if the level has none, which the first process to be known there takes
 * over. While all processes of its level have requests outstanding it is not counted.
 */
void k2_streams_bypassed(struct k2_streams *streams, u32 level, u64 since_ns, u64 now_ns,
			 u64 tolerance_ns);
/* A request ended. */
void k2_streams_end(struct k2_streams *streams, u32 number, u64 now_ns);
/*
 * Its process or thread has exited. Nothing is changed while requests are outstanding: their end
 * must not be taken for that of another stream. The caller asks again.
 */
void k2_streams_forget(struct k2_streams *streams, u32 number);
/*
 * Of the processes of levels before @level, the one whose request may come first. Not of those that
 * have been silent for twice as long as ever before, and for @idle_ns, or for a second if all
 * threads have exited. @idle_ns 0: of all. earliest_ns is K2_NEVER if there is none.
 */
struct k2_window k2_streams_next(const struct k2_streams *streams, u32 level, u64 idle_ns,
				 u64 now_ns);
/* Is there any of these? */
bool k2_streams_alive(const struct k2_streams *streams, u32 level, u64 idle_ns, u64 now_ns);
/* Was the last request of all of these a write that has ended? They may be in fsync. */
bool k2_streams_may_sync(const struct k2_streams *streams, u32 level, u64 idle_ns, u64 now_ns);

#endif /* K2_STREAMS_H */
