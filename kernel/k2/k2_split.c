// SPDX-License-Identifier: GPL-2.0-only
/*
 * Splitting at dispatch: a large background request goes to the driver in pieces, so that
 * real-time never waits for more than one piece.
 *
 * Problem. A device without a queue cannot be interrupted: the next request waits until the one in
 * flight is done, milliseconds for 512 KiB. The size has to be right when a request is
 * dispatched, not when it is submitted: pieces made at submission are merged again, each needs a
 * tag, some never pass the hook that could cut them, and their size can no longer be changed.
 *
 * Model. One request, one tag, one life, several dispatches:
 *
 *   k2_split()          cuts the bio chain after the piece. Where the cut falls inside a bio, a
 *                       clone of its front takes its place and is chained to it: the original
 *                       ends once the clone and all that is left of it have ended. The rest is
 *                       kept in the request itself, which the driver now sees as one of the
 *                       piece's size, and which gets an end_io.
 *   blk-mq, driver      as for any request. A piece that the driver wants to retry comes back to
 *                       the queue and is dispatched again as it is.
 *   completed_request   -> k2_piece_mute_stats(): an I/O is counted when its last piece ends.
 *   finish_request      leaves a piece alone: the request is still in flight.
 *   k2_piece_end_io()   the driver is done with the piece and its bios have ended. An error ends
 *                       the whole request with that error, as it would have unsplit. Otherwise
 *                       the rest becomes the request and blk_mq_requeue_request() returns it to
 *                       the head of its queue, which also frees the driver's tag.
 *
 * The last piece is an ordinary dispatch: no end_io, and no state of the pieces before.
 *
 * Where the rest lives: rq->end_io_data has its first bio (end_io is ours, so is its data). Its
 * size needs no place: the bios of a read or write are contiguous. rq->elv.priv[1] has
 * nr_phys_segments of the whole, which bounds that of each piece and of each rest, since cutting a
 * segment in two leaves no side with more segments than there were. In the same way each has the
 * phys_gap_bit of the whole (7.3), which says of the gaps between segments how small they can be.
 *
 * Memory. A clone lives as long as its piece is in flight, and comes from a reserve of the device's
 * own. If the reserve is exhausted then pieces are in flight, so the request can wait at the head
 * of its queue for one of them to end: there is always progress, and no piece is ever larger than
 * the policy asked for.
 *
 * Rejected: lowering __data_len alone (drivers map the bio chain, not the length); shrinking the
 * original bio in place (code that takes bios out of a request, as NVMe failover does, would lose
 * the rest); a second request for each piece (cannot be allocated while the queue is being frozen,
 * and would wait for a tag in dispatch).
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
 * Requests whose parts cannot stand for themselves: those that carry something computed over the
 * whole (integrity, encryption), that are polled or driver-private (NVMe multipath takes bios out
 * of REQ_DRV requests), that the device executes as a whole or not at all (atomic writes), whose
 * order is fixed (zoned writes), or that already have an end_io (blk-flush.c's, for data that a
 * flush precedes or follows).
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
	/* Also true of a piece that the driver returned: its size is fixed. */
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

	/* Merged bios may differ in this; the request has the flags of its first. */
	if (rq->rq_flags & RQF_MIXED_MERGE) {
		rq->cmd_flags &= ~REQ_FAILFAST_MASK;
		rq->cmd_flags |= first->bi_opf & REQ_FAILFAST_MASK;
	}
	if (k2r->flags & K2_RQ_MUTED)
		rq->rq_flags |= RQF_IO_STAT;

	rq->end_io = NULL;
	rq->end_io_data = NULL;
	k2r->flags &= ~(K2_RQ_PIECE | K2_RQ_MUTED);
	/* finish_request was called for the piece and must be called again for the request. */
	k2_rq_claim_private(rq);
}

static K2_END_IO(k2_piece_end_io)
{
	k2_restore_rest(rq);

	if (error) {
		/* The device's time is in the statistics already, with the piece. */
		rq->rq_flags &= ~RQF_STATS;
		blk_mq_end_request(rq, error);
		return RQ_END_IO_NONE;
	}

	k2_rq(rq)->flags |= K2_RQ_REST;
	/*
	 * SCSI, NVMe and MMC set this when they prepare a command. Left on, the rest would bypass
	 * the scheduler, and SCSI would send the piece's command once more.
	 */
	rq->rq_flags &= ~RQF_DONTPREP;
	blk_mq_requeue_request(rq, true);
	return RQ_END_IO_NONE;
}

/*
 * Leave the first @piece_bytes, fewer than it has, in @rq and put the rest aside. False: no
 * memory for it now, and nothing was changed. Called from dispatch with no lock held: @rq is on no
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
