/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a request came: start_time_ns. 6.1 and 6.12 set it for each request that a scheduler sees.
 * 6.17 only for those that are counted as I/O: with queue/iostats off it is of an earlier request
 * with the same tag.
 */
#ifndef K2_COMPAT_START_TIME_H
#define K2_COMPAT_START_TIME_H

#include <linux/blk-mq.h>

#include "blk.h"
#include "linux_6_17.h"

/* Called when @rq is allocated; since 6.17 before the block layer sets it, if it does. */
static inline void k2_start_time_set(struct request *rq)
{
#ifdef COMPAT_LINUX_6_17
	rq->start_time_ns = blk_time_get_ns();
#endif
}

#endif /* K2_COMPAT_START_TIME_H */
