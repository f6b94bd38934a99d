/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Predicts when the next real-time request of any process may come.
 *
 * A process is known from its first request at a level until it exits. It has a pattern
 * (k2_pattern.h), and so has each of its threads, if it has several. If the patterns of all threads
 * are known, the earliest of their requests is the next of the process. Otherwise the pattern of
 * the process counts, as for a pool of threads that take turns.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls and passes the time,
 * which need not advance. A time before that of the last call counts as that time.
 */
#ifndef K2_STREAMS_H
#define K2_STREAMS_H

#include "k2_excess.h"
#include "k2_pattern.h"

#define K2_STREAMS     32
#define K2_STREAM_NONE K2_STREAMS
/* The key of requests whose process is unknown. */
#define K2_STREAM_KEY_UNKNOWN (~0ULL)

struct k2_stream {
	u64 key; /* of the process or of the thread; 0: free */
	u64 thread; /* of a process: its only thread; 0: it has several, or none now */
	u32 process; /* of a thread: the stream of its process; K2_STREAM_NONE: it is a process */
	u32 level;
	bool wrote; /* of a process: its last request was a write */
	struct k2_pattern pattern;
	struct k2_met met;
};

struct k2_streams {
	struct k2_stream *stream; /* the caller's memory for K2_STREAMS; NULL: none yet */
	u32 used; /* the number of each stream is below */
	u64 early_count; /* requests that came earlier than predicted */
};

/* Is @number a stream of a thread of @process, or of a process if @process is K2_STREAM_NONE? */
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
 * A request of @thread arrives. Returns its stream for k2_streams_end(), or K2_STREAM_NONE without
 * memory or while all streams have requests outstanding. If all are used, the one with the oldest
 * request is forgotten. @tolerance_ns: a request may come this much earlier than predicted without
 * being counted; K2_NEVER: at any time.
 */
u32 k2_streams_arrival(struct k2_streams *streams, const struct k2_thread *thread, u64 now_ns,
		       u64 tolerance_ns);
/*
 * A request that arrived at @since_ns ends, and only now is it known. It is counted for the process
 * of its level whose requests ended last, as the flush of an fsync would be. If the level has no
 * process, it is counted for K2_STREAM_KEY_UNKNOWN, whose stream goes to the first process of the
 * level. While all processes of the level have requests outstanding, it is not counted.
 */
void k2_streams_bypassed(struct k2_streams *streams, u32 level, u64 since_ns, u64 now_ns,
			 u64 tolerance_ns);
/* A request ended. */
void k2_streams_end(struct k2_streams *streams, u32 number, u64 now_ns);
/*
 * The process or thread of a stream has exited. While requests are outstanding nothing changes, as
 * their ends would be counted for another stream. The caller tries again later.
 */
void k2_streams_forget(struct k2_streams *streams, u32 number);
/*
 * The earliest next request of the guarded processes of levels before @level. A process is guarded
 * until it is silent for twice its longest gap, and also for @idle_ns (0: forever), or for a second
 * if all its threads have exited. earliest_ns is K2_NEVER without such processes.
 */
struct k2_window k2_streams_next(const struct k2_streams *streams, u32 level, u64 idle_ns,
				 u64 now_ns);
/* Is there a guarded process? */
bool k2_streams_alive(const struct k2_streams *streams, u32 level, u64 idle_ns, u64 now_ns);
/* Was the last request of each guarded process a write, now ended? Each may be in fsync. */
bool k2_streams_may_sync(const struct k2_streams *streams, u32 level, u64 idle_ns, u64 now_ns);

#endif /* K2_STREAMS_H */
