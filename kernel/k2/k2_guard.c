// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ties look-ahead (k2_lookahead.h) to the block layer: which requests are arrivals of which
 * real-time stream, which commands tell how fast the device is, how much of a request goes next.
 *
 * A stream's key is the thread that inserts the request, if it is shown to k2 at all. That is the
 * thread that made it, except where a driver above submits from a worker of its own (dm-crypt,
 * io_uring with SQPOLL): there the worker is the stream.
 *
 * All but k2_guard_init() and k2_guard_exit() are called with the lock held.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>

#include "k2.h"
#include "k2_trace.h"

/* Without a stream, one command in so many is watched, so that the device is known to the first. */
#define K2_WATCHED_EVERY 16
/* How often to look for streams that have ended. */
#define K2_LOOK_EVERY_NS (100 * NSEC_PER_MSEC)

static unsigned int k2_op(struct request *rq)
{
	return op_is_write(req_op(rq));
}

struct k2_guard *k2_guard_init(struct request_queue *q)
{
	struct k2_guard *guard = kvzalloc_node(sizeof(*guard), GFP_KERNEL, q->node);

	if (!guard)
		return NULL;
	k2_lookahead_init(&guard->ahead);
	return guard;
}

/* False: out of range, nothing was changed. */
bool k2_guard_set_rt_block_us(struct k2_data *k2, u32 rt_block_us)
{
	if (!k2_lookahead_set_rt_block_us(&k2->guard->ahead, rt_block_us))
		return false;
	k2->policy.rt_blocked_ns_bound = k2->guard->ahead.rt_block_ns;
	return true;
}

void k2_guard_exit(struct k2_guard *guard)
{
	kvfree(guard);
}

/* @rq is an arrival of its thread. Called if it is real-time and k2 looks ahead. */
void k2_guard_arrival(struct k2_guard *guard, struct request *rq)
{
	struct k2_rq *k2r = k2_rq(rq);
	u64 now_ns = ktime_get_ns();

	k2r->stream =
		k2_lookahead_rt_arrival(&guard->ahead, task_pid_nr(current), k2r->queue, now_ns);
	if (k2_op(rq))
		k2_pace_rt_write(&guard->ahead.pace, now_ns);
}

/*
 * @rq, which k2 was not shown, has ended: on 6.1 a flush or FUA write, on 6.12 a flush. On 6.12 its
 * ioprio went with its bio, so it counts as background.
 */
void k2_guard_bypassed(struct k2_guard *guard, struct request *rq, u64 now_ns)
{
	unsigned int queue = k2_policy_queue(req_get_ioprio(rq), false);

	k2_lookahead_bypassed(&guard->ahead, now_ns);
	if (queue >= K2_RT_LEVELS || blk_rq_is_passthrough(rq))
		return;
	k2_lookahead_rt_bypassed(&guard->ahead, queue, rq->start_time_ns, now_ns);
	k2_pace_rt_write(&guard->ahead.pace, now_ns);
}

/* Forget streams whose thread has gone, or was silent for too long. */
static void k2_forget_streams(struct k2_guard *guard, u64 now_ns)
{
	struct k2_streams *streams = &guard->ahead.streams;
	unsigned int i;

	if (now_ns - guard->looked_ns < K2_LOOK_EVERY_NS)
		return;
	guard->looked_ns = now_ns;
	if (guard->ahead.rt_idle_ns)
		k2_streams_expire(streams, guard->ahead.rt_idle_ns, now_ns);
	rcu_read_lock();
	for (i = 0; i < streams->used; i++) {
		u64 pid = streams->stream[i].key;

		if (pid && pid != K2_STREAM_KEY_UNKNOWN &&
		    !pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_PID))
			k2_streams_forget(streams, i);
	}
	rcu_read_unlock();
}

/* Before which real-time level's requests must one of @queue be out of the way? */
static unsigned int k2_guarded_level(unsigned int queue)
{
	return min_t(unsigned int, queue, K2_RT_LEVELS);
}

static bool k2_is_learned(struct request *rq)
{
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;
}

/* @rq goes to the device with @bytes. @now_ns: 0 if the time has not been read. */
static void k2_watch(struct k2_data *k2, struct request *rq, unsigned int bytes, u64 now_ns)
{
	struct k2_lookahead *ahead = &k2->guard->ahead;

	if (!k2_is_learned(rq)) {
		k2_lookahead_unwatched(ahead);
		return;
	}
	now_ns = now_ns ?: ktime_get_ns();
	k2_rq(rq)->flight = k2_lookahead_watch(ahead, k2_op(rq), bytes,
					       k2_policy_inflight(&k2->policy), now_ns);
}

/* With one in flight no device was seen to gain from a pace of writes. */
static bool k2_is_paced(const struct k2_data *k2)
{
	return k2->policy.inflight_max > 1;
}

/* Nobody is guarded against @rq: it goes as a whole. */
static unsigned int k2_dispatch_whole(struct k2_data *k2, struct request *rq)
{
	struct k2_guard *guard = k2->guard;

	if (k2_rq(rq)->queue >= K2_RT_LEVELS)
		k2_pace_untold(&guard->ahead.pace);
	/* Whether real-time writes stall is what the pace is about. */
	else if (k2_op(rq) && k2_is_paced(k2))
		guard->unwatched = K2_WATCHED_EVERY - 1;
	if (++guard->unwatched % K2_WATCHED_EVERY)
		k2_lookahead_unwatched(&guard->ahead);
	else
		k2_watch(k2, rq, blk_rq_bytes(rq), 0);
	return blk_rq_bytes(rq);
}

/*
 * Is the thread of @stream asleep in the kernel, though none of its requests is on its way? Then it
 * waits for what others have to do: for the journal's thread, or for a lock whose holder waits for
 * the device. Returns a number for this sleep, or 0. One that has gone sleeps for good.
 */
static u64 k2_wait_for_others(const struct k2_stream *stream)
{
	struct task_struct *task;
	unsigned int state;

	if (stream->outstanding || stream->key == K2_STREAM_KEY_UNKNOWN)
		return 0;
	task = pid_task(find_pid_ns(stream->key, &init_pid_ns), PIDTYPE_PID);
	if (!task)
		return ~0ULL;
	state = READ_ONCE(task->__state);
	if ((state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) != TASK_UNINTERRUPTIBLE)
		return 0;
	return (u64)READ_ONCE(task->nvcsw) + 1;
}

static void k2_look_who_waits(struct k2_guard *guard, u64 now_ns)
{
	struct k2_streams *streams = &guard->ahead.streams;
	unsigned int i;

	guard->rt_waits = false;
	rcu_read_lock();
	for (i = 0; i < streams->used; i++) {
		u64 wait = streams->stream[i].key ? k2_wait_for_others(&streams->stream[i]) : 0;

		k2_streams_wait(streams, i, wait, now_ns);
		guard->rt_waits |= wait;
	}
	rcu_read_unlock();
}

/*
 * Metadata that real-time may wait for is not cut: whoever calls fsync waits for the journal, whose
 * thread is not of its class, and each piece would wait for its turn behind what goes past k2.
 */
static bool k2_rt_waits_for(const struct k2_streams *streams, struct request *rq)
{
	return k2_rq(rq)->queue == K2_QUEUE_METADATA && blk_rq_bytes(rq) <= K2_MERGE_BYTES_MAX &&
	       k2_streams_all_wait(streams, K2_RT_LEVELS);
}

/* The bound does not cover @rq; see k2_policy.h. */
static void k2_mark_unguarded(struct k2_guard *guard, struct request *rq)
{
	if (k2_rq(rq)->queue < K2_RT_LEVELS)
		return;
	k2_rq(rq)->flags |= K2_RQ_UNGUARDED;
	guard->unguarded_inflight++;
}

static unsigned int k2_fit(struct k2_guard *guard, struct request *rq, struct k2_cut *cut,
			   u64 now_ns)
{
	struct k2_lookahead *ahead = &guard->ahead;

	/* The thread that is expected may wait for this. */
	cut->may_wait = cut->may_wait && !guard->rt_waits;
	cut->is_paced = cut->is_paced && !guard->rt_waits;
	k2_lookahead_make_room(ahead, cut, k2_guarded_level(k2_rq(rq)->queue), now_ns);
	return k2_lookahead_piece_bytes(ahead, cut, now_ns);
}

/* As much of @rq, which may be cut, as may go now. */
static unsigned int k2_cut_bytes(struct k2_guard *guard, struct request *rq, struct k2_cut *cut,
				 u64 now_ns)
{
	struct k2_lookahead *ahead = &guard->ahead;
	bool looked = guard->rt_waits;
	unsigned int bytes;

	if (looked)
		k2_look_who_waits(guard, now_ns);
	bytes = k2_fit(guard, rq, cut, now_ns);
	/* It is worth a look before each cut. */
	if (bytes < cut->bytes && !looked) {
		k2_look_who_waits(guard, now_ns);
		if (guard->rt_waits)
			bytes = k2_fit(guard, rq, cut, now_ns);
	}
	if (bytes < cut->bytes && k2_rt_waits_for(&ahead->streams, rq))
		bytes = cut->bytes;
	return bytes;
}

static void k2_hold(struct k2_data *k2, u64 until_ns)
{
	k2->guard->is_held = true;
	k2->guard->held_until_ns = until_ns;
	k2_timer_set(k2, until_ns);
}

/* Ends holding back if it is time; otherwise returns when to look again, 0 for no need to. */
u64 k2_guard_look(struct k2_guard *guard, u64 now_ns)
{
	if (!guard->is_held || !guard->held_until_ns)
		return 0;
	if (now_ns < guard->held_until_ns)
		return guard->held_until_ns;
	guard->is_held = false;
	return 0;
}

/*
 * Is the background write @rq rate-limited? Never for metadata, nor while a real-time thread waits
 * for another thread's I/O, which may be this write. Holding @rq delays the background behind it by
 * a few writes at most.
 */
static bool k2_keeps_pace(const struct k2_data *k2, struct request *rq)
{
	return k2_op(rq) && k2_rq(rq)->queue > K2_QUEUE_METADATA && !k2->guard->rt_waits &&
	       k2_is_paced(k2);
}

/* As much of @rq, which may be cut, as may go now; 0: none, and k2_hold() was called. */
static unsigned int k2_dispatch_cut(struct k2_data *k2, struct request *rq, struct k2_cut *cut,
				    u64 now_ns)
{
	struct k2_lookahead *ahead = &k2->guard->ahead;
	u64 until_ns = cut->is_paced ? k2_pace_until_ns(&ahead->pace, now_ns) : 0, piece_ns;
	unsigned int bytes;

	if (until_ns) {
		k2_hold(k2, until_ns);
		return 0;
	}
	bytes = k2_cut_bytes(k2->guard, rq, cut, now_ns);
	piece_ns = k2_device_time_ns(&ahead->device, cut->op, bytes);
	trace_k2_look_ahead(rq, cut->room_ns, bytes, piece_ns);
	if (!bytes)
		k2_hold(k2, cut->inflight ? 0 : cut->wait_until_ns);
	else if (k2->guard->rt_waits && piece_ns > ahead->rt_block_ns)
		k2_mark_unguarded(k2->guard, rq);
	return bytes;
}

/* As much of @rq as may go now; 0: nothing before something in flight has ended, or a time. */
static unsigned int k2_dispatch_guarded(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	struct k2_cut cut = {
		.op = k2_op(rq),
		.bytes = blk_rq_bytes(rq),
		.block_bytes = max(queue_logical_block_size(k2->q), K2_PIECE_MIN),
		.inflight = k2_policy_inflight(&k2->policy),
		.rt_inflight = k2->policy.inflight[K2_CLASS_RT],
		/* Nothing real-time would be dispatched meanwhile. */
		.may_wait = k2_rq(rq)->queue >= K2_RT_LEVELS &&
			    !(k2->policy.queues_waiting & K2_RT_BITS),
		.is_paced = k2_keeps_pace(k2, rq),
	};
	unsigned int bytes = cut.bytes;

	now_ns = now_ns ?: ktime_get_ns();
	k2_forget_streams(k2->guard, now_ns);
	if (k2_may_split(rq))
		bytes = k2_dispatch_cut(k2, rq, &cut, now_ns);
	if (bytes)
		k2_watch(k2, rq, bytes, now_ns);
	return bytes;
}

/*
 * How much of @rq, the head of its queue, goes to the driver now. 0: nothing before a command has
 * ended or the timer has fired, and nothing was changed but what says so. @now_ns: 0 if the time
 * has not been read.
 */
unsigned int k2_guard_dispatch(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	struct k2_lookahead *ahead = &k2->guard->ahead;
	struct k2_rq *k2r = k2_rq(rq);
	bool is_guarded;
	unsigned int bytes;

	if (!k2_looks_ahead(k2))
		return !k2_may_split(rq)
			       ? blk_rq_bytes(rq)
			       : k2_policy_piece_bytes(&k2->policy, k2r->queue, blk_rq_bytes(rq),
						       queue_logical_block_size(k2->q));
	is_guarded = ahead->streams.used &&
		     k2_lookahead_guards(ahead, k2_guarded_level(k2r->queue));
	bytes = is_guarded ? k2_dispatch_guarded(k2, rq, now_ns) : k2_dispatch_whole(k2, rq);
	if (bytes && (!is_guarded || !k2_may_split(rq)))
		k2_mark_unguarded(k2->guard, rq);
	return bytes;
}

/* The device is done with @rq, or with a piece of it. */
void k2_guard_completed(struct k2_guard *guard, struct request *rq, u64 now_ns)
{
	struct k2_rq *k2r = k2_rq(rq);

	if (k2r->flight != K2_FLIGHT_NONE)
		k2_lookahead_done(&guard->ahead, k2r->flight, now_ns);
	k2r->flight = K2_FLIGHT_NONE;
	if (k2r->stream != K2_STREAM_NONE && !(k2r->flags & K2_RQ_PIECE)) {
		k2_lookahead_rt_end(&guard->ahead, k2r->stream, now_ns);
		k2r->stream = K2_STREAM_NONE;
	}
	guard->is_held = false;
}
