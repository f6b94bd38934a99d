/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queue/async_depth: how many tags all but synchronous reads may use. Since 7.0 it is a knob of the
 * block layer, which calls depth_updated when it is written. It keeps the value of the previous
 * scheduler, and its ratio to nr_requests when that changes.
 */
#ifndef K2_COMPAT_ASYNC_DEPTH_H
#define K2_COMPAT_ASYNC_DEPTH_H

#include <linux/blkdev.h>
#include <linux/minmax.h>

#include "blk-mq-sched.h"

#ifdef COMPAT_HAS_ASYNC_DEPTH

/* Called when k2 is chosen, with the queue frozen. */
static inline void k2_async_depth_init(struct request_queue *q)
{
	q->async_depth = q->nr_requests;
}

static inline unsigned int k2_async_depth_limit(const struct request_queue *q, blk_opf_t opf,
						unsigned int depth)
{
	return blk_mq_is_sync_read(opf) ? depth : min(depth, READ_ONCE(q->async_depth));
}

#else

static inline void k2_async_depth_init(struct request_queue *q)
{
}

static inline unsigned int k2_async_depth_limit(const struct request_queue *q, blk_opf_t opf,
						unsigned int depth)
{
	return depth;
}

#endif

#endif /* K2_COMPAT_ASYNC_DEPTH_H */
