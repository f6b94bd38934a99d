/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arguments of a request's end_io. Since 7.0 they include the batch of completions that it
 * belongs to, which k2 does not need.
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
