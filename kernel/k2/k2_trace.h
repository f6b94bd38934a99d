/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM k2

#if !defined(K2_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define K2_TRACE_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

/* clang-format off */
/* clang-format does not know that these macros take statements. */

/* A dispatch: the request (or its piece) that goes to the driver, and how many are in flight. */
TRACE_EVENT(k2_dispatch,
	    TP_PROTO(struct request *rq, unsigned int queue, unsigned int inflight),
	    TP_ARGS(rq, queue, inflight),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(sector_t, sector)
			     __field(unsigned int, bytes)
			     __field(unsigned int, queue)
			     __field(unsigned int, inflight)
			     __field(bool, write)),
	    TP_fast_assign(__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
			   __entry->sector = blk_rq_pos(rq);
			   __entry->bytes = blk_rq_bytes(rq);
			   __entry->queue = k2_policy_group(queue);
			   __entry->inflight = inflight;
			   __entry->write = op_is_write(req_op(rq));),
	    TP_printk("%d,%d %s %llu + %u bytes queue %u (8 metadata, 9 best effort, 10 idle) inflight %u",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->write ? "W" : "R",
		      (unsigned long long)__entry->sector, __entry->bytes, __entry->queue,
		      __entry->inflight)
);

/* A split: the piece that is dispatched next, and the size of the rest. */
TRACE_EVENT(k2_split,
	    TP_PROTO(struct request *rq, unsigned int rest_bytes),
	    TP_ARGS(rq, rest_bytes),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(sector_t, sector)
			     __field(unsigned int, piece_bytes)
			     __field(unsigned int, rest_bytes)),
	    TP_fast_assign(__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
			   __entry->sector = blk_rq_pos(rq);
			   __entry->piece_bytes = blk_rq_bytes(rq);
			   __entry->rest_bytes = rest_bytes;),
	    TP_printk("%d,%d %llu piece %u bytes rest %u bytes",
		      MAJOR(__entry->dev), MINOR(__entry->dev),
		      (unsigned long long)__entry->sector, __entry->piece_bytes,
		      __entry->rest_bytes)
);

/* A real-time request missed its level's deadline; the sector is that of its last piece. */
TRACE_EVENT(k2_late,
	    TP_PROTO(struct request *rq, unsigned int level, u64 ns, u64 deadline_ns),
	    TP_ARGS(rq, level, ns, deadline_ns),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(sector_t, sector)
			     __field(unsigned int, level)
			     __field(u64, ns)
			     __field(u64, deadline_ns)),
	    TP_fast_assign(__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
			   __entry->sector = blk_rq_pos(rq);
			   __entry->level = level;
			   __entry->ns = ns;
			   __entry->deadline_ns = deadline_ns;),
	    TP_printk("%d,%d %llu level %u took %llu ns deadline %llu ns",
		      MAJOR(__entry->dev), MINOR(__entry->dev),
		      (unsigned long long)__entry->sector, __entry->level, __entry->ns,
		      __entry->deadline_ns)
);

/* A decision of look-ahead: the time until real-time may be blocked too long, and the piece. */
TRACE_EVENT(k2_look_ahead,
	    TP_PROTO(struct request *rq, u64 room_ns, unsigned int piece_bytes, u64 piece_ns),
	    TP_ARGS(rq, room_ns, piece_bytes, piece_ns),
	    TP_STRUCT__entry(__field(dev_t, dev)
			     __field(sector_t, sector)
			     __field(unsigned int, bytes)
			     __field(unsigned int, piece_bytes)
			     __field(u64, room_ns)
			     __field(u64, piece_ns)),
	    TP_fast_assign(__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
			   __entry->sector = blk_rq_pos(rq);
			   __entry->bytes = blk_rq_bytes(rq);
			   __entry->piece_bytes = piece_bytes;
			   __entry->room_ns = room_ns;
			   __entry->piece_ns = piece_ns;),
	    TP_printk("%d,%d %llu + %u bytes room %llu ns piece %u bytes takes %llu ns",
		      MAJOR(__entry->dev), MINOR(__entry->dev),
		      (unsigned long long)__entry->sector, __entry->bytes, __entry->room_ns,
		      __entry->piece_bytes, __entry->piece_ns)
);

/* clang-format on */

#endif /* K2_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE k2_trace
#include <trace/define_trace.h>
