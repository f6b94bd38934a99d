/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Anticipation: is the device left idle for a real-time request that is about to come?
 *
 * Problem: pieces that are cut to rt_block_us shortly before a request block it all the same, and
 * they are so short that the device spends its time on commands, not on data. Where the request's
 * time is well known, the background loses little if it stops before that.
 *
 * It does if what the background loses, at the pace of such short pieces, is at most
 * 1/K2_LOSS_PARTS of what it gets between two requests; if it is over within K2_IDLE_NS_MAX; and
 * if all streams together cost it no more than 1/K2_LOSS_PARTS_TOTAL of the time. Decided once for
 * each request, when the first piece has to be cut for it. A request that does not come by the time
 * that those before it allow is waited for no longer.
 *
 * A part of k2_lookahead.h, which calls this.
 */
#ifndef K2_ANTICIPATION_H
#define K2_ANTICIPATION_H

#include "k2_device.h"
#include "k2_streams.h"

#define K2_LOSS_PARTS	    24
#define K2_LOSS_PARTS_TOTAL 16
#define K2_IDLE_NS_MAX	    4000000ULL

struct k2_anticipation {
	u64 decided_since_ns; /* for the request whose gap began then */
	bool waits;
	u32 bytes; /* of the largest request since then */
	/* What may be lost now, and since when. */
	u64 credit_ns;
	u64 credit_since_ns;
	u64 count; /* of requests that the device was, or was to be, left idle for */
};

/* Background has a request of @bytes to dispatch. */
static inline void k2_anticipation_note(struct k2_anticipation *anticipation, u32 bytes)
{
	if (bytes > anticipation->bytes)
		anticipation->bytes = bytes;
}

/*
 * May the background, whose next request is of operation @op, wait for @expected? @bound_ns: what a
 * piece may take otherwise.
 */
bool k2_anticipates(struct k2_anticipation *anticipation, const struct k2_device *device, u32 op,
		    u64 bound_ns, const struct k2_expected *expected, u64 now_ns);

#endif /* K2_ANTICIPATION_H */
