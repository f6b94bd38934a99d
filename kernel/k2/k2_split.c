// SPDX-License-Identifier: GPL-2.0-only
/*
 * Splitting at dispatch: a large background request goes to the driver in pieces, so that real-time
 * waits for at most one piece.
 *
 * Problem. A device without a queue cannot be interrupted: the next request waits for the one in
 * flight, milliseconds for 512 KiB. The right size is known at dispatch, not at submission. Pieces
 * made at submission are merged again, each needs a tag, and their size is fixed. Some never pass
 * the hook that could split them.
 *
 * Model. A request keeps one tag through several dispatches:
 *
 *   k2_split()          cuts the bio chain after the piece. If the cut is inside a bio, a clone of
 *                       its front replaces it and is chained to it. The original bio ends when
 *                       the clone and the remaining part have ended. The request keeps the rest.
 *                       The driver sees a request of the piece's size. The request gets an
 *                       end_io.
 *   blk-mq, driver      handle it like any request. If the driver retries a piece, it returns to
 *                       the queue and is dispatched again unchanged.
 *   completed_request   -> k2_piece_mute_stats(): an I/O counts when its last piece ends.
 *   finish_request      ignores a piece: the request is still in flight.
 *   k2_piece_end_io()   runs when the driver has finished the piece and its bios have ended. An
 *                       error ends the whole request with that error, as if it were not split.
 *                       Otherwise the rest becomes the request. blk_mq_requeue_request() returns
 *                       it to the head of its queue. This also frees the driver's tag.
 *
 * The last piece is an ordinary dispatch: it has no end_io and no state of earlier pieces.
 *
 * Storage of the rest: rq->end_io_data has its first bio; k2 owns it, as it owns end_io. The bios
 * of a read or write are contiguous, so the size needs no storage. rq->elv.priv[1] has
 * nr_phys_segments of the whole. That is a maximum for each piece and rest: cutting a segment gives
 * neither side more segments. Each also has the phys_gap_bit of the whole (7.3), the smallest gap
 * between segments.
 *
 * Memory. A clone lives while its piece is in flight, and comes from a reserve of the device.
 * If the reserve is empty, pieces are in flight, and the request waits at the head of its queue
 * until one ends. So there is always progress, and no piece is larger than the policy
 * requested.
 *
 * Rejected alternatives. Lowering __data_len alone: drivers map the bio chain, not the length.
 * Shrinking the original bio in place: code that takes bios out of a request, such as NVMe
 * failover, would lose the rest. One request per piece: it cannot be allocated while the queue is
 * being frozen, and dispatch would have to wait for a tag.
 */
#include <linux/blk-crypto.h>
#include <linux/blk-integrity.h>

#include "k2.h"
#include "k2_trace.h"

#include "../compat/bio_split.h"
#include "../compat/end_io.h"

int k2_split_init(struct k2_data *k2)
{
	return bioset_init(&k2->clones, K2_CLONES_RESERVED, 0, 0);
}

void k2_split_exit(struct k2_data *k2)
{
	bioset_exit(&k2->clones);
}

/*
 * Some requests must stay whole. Integrity and encryption data cover the whole request. NVMe
 * multipath takes bios out of REQ_DRV requests. Polled requests are not split either. A
 * device executes an atomic write entirely or not at all. Zoned writes have a fixed order. A
 * request may already have an end_io: that of blk-flush.c, for data with a flush before or
 * after it.
 */
bool k2_may_split(struct request *rq)
{
	if (req_op(rq) != REQ_OP_READ && req_op(rq) != REQ_OP_WRITE)
		return false;
	if (req_op(rq) == REQ_OP_WRITE && blk_queue_is_zoned(rq->q))
		return false;
	if (rq->cmd_flags & (REQ_POLLED | REQ_DRV | REQ_ATOMIC))
		return false;
	if (rq->rq_flags & RQF_SPECIAL_PAYLOAD)
		return false;
	if (blk_integrity_rq(rq) || bio_has_crypt_ctx(rq->bio))
		return false;
	/* A piece that the driver returned also has an end_io: its size is fixed. */
	return !rq->end_io;
}

/* The rest becomes the request again. */
static void k2_restore_rest(struct request *rq)
{
	struct bio *first = rq->end_io_data, *last = first;
	struct k2_rq *k2r = k2_rq(rq);

	while (last->bi_next)
		last = last->bi_next;
	rq->bio = first;
	rq->biotail = last;
	rq->__sector = first->bi_iter.bi_sector;
	rq->__data_len = (bio_end_sector(last) - rq->__sector) << SECTOR_SHIFT;
	rq->nr_phys_segments = (unsigned long)rq->elv.priv[1];

	/* Merged bios may differ in these flags; the request has those of its first bio. */
	if (rq->rq_flags & RQF_MIXED_MERGE) {
		rq->cmd_flags &= ~REQ_FAILFAST_MASK;
		rq->cmd_flags |= first->bi_opf & REQ_FAILFAST_MASK;
	}
	if (k2r->flags & K2_RQ_MUTED)
		rq->rq_flags |= RQF_IO_STAT;

	rq->end_io = NULL;
	rq->end_io_data = NULL;
	k2r->flags &= ~(K2_RQ_PIECE | K2_RQ_MUTED);
	/* finish_request was called for the piece, and must be called for the request again. */
	k2_rq_claim_private(rq);
}

static K2_END_IO(k2_piece_end_io)
{
	k2_restore_rest(rq);

	if (error) {
		/* The piece has already added the device's time to the statistics. */
		rq->rq_flags &= ~RQF_STATS;
		blk_mq_end_request(rq, error);
		return RQ_END_IO_NONE;
	}

	k2_rq(rq)->flags |= K2_RQ_REST;
	/*
	 * SCSI, NVMe and MMC set this flag when they prepare a command. With it, the rest would
	 * bypass the scheduler, and SCSI would send the piece's command again.
	 */
	rq->rq_flags &= ~RQF_DONTPREP;
	blk_mq_requeue_request(rq, true);
	return RQ_END_IO_NONE;
}

/*
 * Leaves the first @piece_bytes of @rq, fewer than it has, in @rq and sets the rest aside. False:
 * no memory is free, and @rq is unchanged. Called from dispatch without the lock: @rq is on no
 * list, so only the caller uses it.
 */
bool k2_split(struct k2_data *k2, struct request *rq, unsigned int piece_bytes)
{
	unsigned int rest_bytes = blk_rq_bytes(rq) - piece_bytes;
	unsigned int left_bytes = piece_bytes;
	struct bio *bio = rq->bio;
	struct bio *last = NULL;

	while (bio->bi_iter.bi_size <= left_bytes) {
		left_bytes -= bio->bi_iter.bi_size;
		last = bio;
		bio = bio->bi_next;
	}

	if (left_bytes) {
		struct bio *front = k2_bio_split(bio, left_bytes >> SECTOR_SHIFT, &k2->clones);

		if (!front)
			return false;
		bio_chain(front, bio);
		if (last)
			last->bi_next = front;
		else
			rq->bio = front;
		last = front;
	}
	last->bi_next = NULL;

	k2_rq(rq)->flags |= K2_RQ_PIECE;
	rq->elv.priv[1] = (void *)(unsigned long)rq->nr_phys_segments;
	rq->end_io_data = bio;
	rq->end_io = k2_piece_end_io;
	rq->biotail = last;
	rq->__data_len = piece_bytes;

	trace_k2_split(rq, rest_bytes);
	return true;
}
