/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * depth_updated reports a change of the tags of one hardware queue on 6.1 and 6.12, and of all tags
 * of a device since 6.17. There, a larger nr_requests brings new tags instead of growing the old
 * ones, and loses the settings of the old ones.
 */
#ifndef K2_COMPAT_DEPTH_UPDATED_H
#define K2_COMPAT_DEPTH_UPDATED_H

#include "blk-mq.h"
#include "linux_6_17.h"

#ifdef COMPAT_LINUX_6_17

#define k2_depth_updated_t struct request_queue

static inline void k2_each_updated(k2_depth_updated_t *q, void (*update)(struct blk_mq_hw_ctx *))
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		update(hctx);
}

#else

#define k2_depth_updated_t struct blk_mq_hw_ctx

static inline void k2_each_updated(k2_depth_updated_t *hctx, void (*update)(struct blk_mq_hw_ctx *))
{
	update(hctx);
}

#endif

#endif /* K2_COMPAT_DEPTH_UPDATED_H */
