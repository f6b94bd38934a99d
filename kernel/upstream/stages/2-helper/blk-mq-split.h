/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scheduler dispatches a request in pieces, one after the other, under one tag.
 *
 *   blk_mq_split()          is called from dispatch_request. It cuts the bio chain after the piece.
 *                           If the cut is inside a bio, a clone of its front replaces it and is
 *                           chained to it. The original bio ends when the clone and the remaining
 *                           part have ended. The driver sees a request of the piece's size.
 *   blk-mq, driver          handle it like any request. If the driver retries a piece, it returns
 *                           to the scheduler and is dispatched again unchanged.
 *   end_io                  is the scheduler's function. It runs when the driver has finished the
 *                           piece and its bios have ended. It calls the next two functions.
 *   blk_mq_split_restore()  makes the rest the request again.
 *   blk_mq_split_end()      requeues it for the next piece, which also frees the driver's tag. An
 *                           error ends the whole request with that error, as if it were not split.
 *
 * The last piece is an ordinary dispatch: it has no end_io and no state of earlier pieces.
 *
 * completed_request and finish_request are called for each piece. The scheduler knows from its own
 * state of the request that the request goes on.
 *
 * While a piece is in flight, rq->end_io and rq->end_io_data belong to this file, which keeps the
 * first bio of the rest in end_io_data, and so does rq->elv.priv[1], which has nr_phys_segments of
 * the whole. That is a maximum for each piece and rest: cutting a segment gives neither side more
 * segments. Each also has the phys_gap_bit of the whole, the smallest gap between segments. The
 * bios of a read or write are contiguous, so the size of the rest needs no storage.
 *
 * Rejected alternatives. Lowering __data_len alone: drivers map the bio chain, not the length.
 * Shrinking the original bio in place: code that takes bios out of a request, such as NVMe
 * failover, would lose the rest. One request per piece: it cannot be allocated while the queue is
 * being frozen, and dispatch would have to wait for a tag.
 */
#ifndef BLK_MQ_SPLIT_H
#define BLK_MQ_SPLIT_H

#include <linux/blk-mq.h>

bool blk_mq_may_split(struct request *rq);

/*
 * Leaves the first @bytes of @rq, fewer than it has and whole blocks, in @rq and sets the rest
 * aside. @clones: a clone lives while its piece is in flight. False: no memory is free, and @rq is
 * unchanged. @rq is on no list, so only the caller uses it.
 */
bool blk_mq_split(struct request *rq, unsigned int bytes, struct bio_set *clones,
		  rq_end_io_fn *end_io);

void blk_mq_split_restore(struct request *rq);
void blk_mq_split_end(struct request *rq, blk_status_t error);

#endif /* BLK_MQ_SPLIT_H */
