/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * When may the next real-time request come?
 *
 * Problem: a background piece that is with the device when a real-time request arrives blocks it.
 * Where the next arrival is known to be far, the piece may be long.
 *
 * A stream is a thread that makes real-time requests at one level. For each arrival two gaps are
 * remembered: since the arrival before (a period), and since the last of its requests ended (a time
 * to think). Of the two, those count that vary less. The next request may come at any time at which
 * the gap would be of a kind that was seen (k2_gaps.h), less a margin.
 *
 * A stream that is new, late, or without a pattern may come at once. So may one that came earlier
 * than its kinds allowed: it is distrusted for some arrivals.
 *
 * A thread that waits for others (for a lock, the journal, dirty throttling) can make no request
 * before they have gone on, and what they wait for may be the background. So after
 * K2_STREAM_PATIENCE_NS its next request is no longer expected at once, but later by half of the
 * time it has waited beyond that.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls and passes the time,
 * which may stand still but is taken as not going back: an earlier time counts as the last one.
 */
#ifndef K2_STREAMS_H
#define K2_STREAMS_H

#include "k2_grid.h"

#define K2_STREAMS     64
#define K2_STREAM_NONE K2_STREAMS
#define K2_NEVER       (~0ULL)
/* The key of requests whose thread is not known. */
#define K2_STREAM_KEY_UNKNOWN (~0ULL)
/* Longer than a thread waits for a lock that nobody holds while waiting for the device. */
#define K2_STREAM_PATIENCE_NS 1000000ULL

struct k2_stream {
	u64 key; /* 0: free */
	u32 level;
	u32 outstanding;
	bool is_concurrent; /* has had several requests outstanding: it does not think */
	bool bypasses; /* it makes requests that are known only when they have ended */
	bool thinks; /* what is regular are the gaps from an end to an arrival */
	u64 arrival_ns; /* the last */
	u64 end_ns; /* the last request of it that ended */
	u64 wait; /* for others: a number for each wait; 0: it does not */
	u64 waits_since_ns;
	u64 epoch_ns; /* start of this epoch */
	u32 epoch_arrivals;
	u32 arrivals;
	u32 distrust; /* so many more arrivals count as unpredictable */
	u32 distrust_next;
	struct k2_gaps arrival, think;
	struct k2_grid grid;
};

struct k2_streams {
	struct k2_stream stream[K2_STREAMS];
	u32 used; /* all streams are below */
	u64 early_count; /* arrivals before their time */
};

/*
 * A request of stream (@key, @level) arrives; returns the stream's number, for
 * k2_streams_end(). @key: not 0. If there are too many, the one that was silent longest is
 * forgotten. @tolerance_ns: so much earlier than expected does no harm.
 */
u32 k2_streams_arrival(struct k2_streams *streams, u64 key, u32 level, u64 now_ns,
		       u64 tolerance_ns);
/*
 * A request is known only now, when it ends; it arrived at @since_ns. Its thread is not known: it
 * is taken for one of the stream of its level whose requests ended last, such as the flush of an
 * fsync, or of K2_STREAM_KEY_UNKNOWN if the level has none, which the first thread to be known
 * there takes over. While all streams of its level have requests outstanding it is not counted.
 */
void k2_streams_bypassed(struct k2_streams *streams, u32 level, u64 since_ns, u64 now_ns,
			 u64 tolerance_ns);
/* A request ended. */
void k2_streams_end(struct k2_streams *streams, u32 number, u64 now_ns);
/* Its thread waits for others; @wait: 0 if not, else a number that is different for each wait. */
void k2_streams_wait(struct k2_streams *streams, u32 number, u64 wait, u64 now_ns);
/* Do all streams of levels before @level, as far as is known? */
bool k2_streams_all_wait(const struct k2_streams *streams, u32 level);
/* Its thread has gone. */
void k2_streams_forget(struct k2_streams *streams, u32 number);
/* Forget the streams that have been silent for @idle_ns. */
void k2_streams_expire(struct k2_streams *streams, u64 idle_ns, u64 now_ns);

/* Is there a stream of a level before @level? */
bool k2_streams_alive(const struct k2_streams *streams, u32 level);

/* The earliest time at which the next request of @stream may come: @now_ns or later. */
u64 k2_stream_next_ns(const struct k2_stream *stream, u64 now_ns);

/*
 * Of the streams of levels before @level the one whose next request may come first, and when:
 * @now_ns or later. K2_STREAM_NONE and K2_NEVER if there is none.
 */
u32 k2_streams_next(const struct k2_streams *streams, u32 level, u64 now_ns, u64 *next_ns);

/* A request that is known to come, as all before it did. */
struct k2_expected {
	u64 since_ns; /* the gap before it began */
	u64 latest_ns; /* after now_ns; 0: there is no telling */
	u64 window_ns; /* from the earliest to that, also what of it is over */
};

struct k2_expected k2_stream_expected(const struct k2_stream *stream, u64 now_ns);

#endif /* K2_STREAMS_H */
