/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The request flag that says "the elevator's private fields are valid, call finish_request".
 * 6.1: RQF_ELVPRIV. 6.12: RQF_USE_SCHED. Either way blk_mq_finish_request() clears it after
 * each call of finish_request, so a scheduler that keeps the request must set it again.
 */
#ifndef K2_COMPAT_REQUEST_PRIVATE_H
#define K2_COMPAT_REQUEST_PRIVATE_H

#include <linux/blk-mq.h>

#ifdef RQF_USE_SCHED
#define K2_RQF_PRIVATE RQF_USE_SCHED
#else
#define K2_RQF_PRIVATE RQF_ELVPRIV
#endif

/*
 * Are the private fields kept after finish_request, and in a flush? On 6.1 the state of flushes
 * uses the same memory.
 */
static inline bool k2_rq_keeps_private(void)
{
#ifdef RQF_USE_SCHED
	return true;
#else
	return false;
#endif
}

static inline bool k2_rq_has_private(const struct request *rq)
{
	return rq->rq_flags & K2_RQF_PRIVATE;
}

static inline void k2_rq_claim_private(struct request *rq)
{
	rq->rq_flags |= K2_RQF_PRIVATE;
}

#endif /* K2_COMPAT_REQUEST_PRIVATE_H */
