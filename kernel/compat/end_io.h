/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the end_io of a request is called with: since 7.0 also with the batch of completions that
 * it is part of, which k2 does not need.
 */
#ifndef K2_COMPAT_END_IO_H
#define K2_COMPAT_END_IO_H

#include <linux/blk-mq.h>

#ifdef COMPAT_HAS_END_IO_BATCH
#define K2_END_IO(name)                                                                            \
	enum rq_end_io_ret name(struct request *rq, blk_status_t error,                            \
				const struct io_comp_batch *batch)
#else
#define K2_END_IO(name) enum rq_end_io_ret name(struct request *rq, blk_status_t error)
#endif

#endif /* K2_COMPAT_END_IO_H */
