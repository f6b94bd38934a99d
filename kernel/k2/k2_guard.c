// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connects look-ahead (k2_lookahead.h) to the block layer: finds the stream of a real-time request,
 * measures commands to learn the device, and applies the decision for the next request.
 *
 * A request is assumed to belong to the thread that inserts it. That thread made it, unless a
 * driver above, such as dm-crypt, submits from a kernel worker.
 *
 * All functions but k2_guard_init(), k2_guard_exit() and k2_guard_set_limits() need the lock.
 */
#include <linux/ioprio.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>

#include "k2.h"
#include "k2_trace.h"

/* kthreadd, the parent of all kernel threads. */
#define K2_KERNEL_PID 2
/* How often to look for processes and threads that have exited. */
#define K2_LOOK_EVERY_NS (100 * NSEC_PER_MSEC)

static unsigned int k2_op(struct request *rq)
{
	return op_is_write(req_op(rq));
}

struct k2_guard *k2_guard_init(struct request_queue *q)
{
	struct k2_guard *guard = kzalloc_node(sizeof(*guard), GFP_KERNEL, q->node);

	if (!guard)
		return NULL;
	k2_lookahead_init(&guard->ahead);
	guard->ahead.declared.least_bytes = max(queue_logical_block_size(q), K2_PIECE_MIN);
	return guard;
}

/* False: the value is out of range and not set. */
bool k2_guard_set_rt_block_us(struct k2_data *k2, u32 rt_block_us)
{
	if (!k2_lookahead_set_rt_block_us(&k2->guard->ahead, rt_block_us))
		return false;
	k2->policy.rt_blocked_ns_bound = k2->guard->ahead.rt_block_ns;
	return true;
}

void k2_guard_exit(struct k2_guard *guard)
{
	kfree(guard->ahead.streams.stream);
	kfree(guard->memory);
	kfree(guard);
}

/*
 * The first real-time request of a device arrives. Without memory now, the next request tries
 * again, and no stream is known until then.
 */
static noinline void k2_take_memory(struct k2_streams *streams)
{
	streams->stream =
		kmalloc_array(K2_STREAMS, sizeof(*streams->stream), GFP_ATOMIC | __GFP_NOWARN);
}

/* False: there is no memory for declared tasks, and the limits are not set. */
bool k2_guard_set_limits(struct k2_data *k2, const struct k2_limit *limit)
{
	struct k2_guard *guard = k2->guard;
	struct k2_declared *declared = &guard->ahead.declared;
	struct k2_declared_memory *memory;

	/* The caller holds a lock that the scheduler's exit waits for with the queue frozen. */
	memory = kzalloc(sizeof(*memory), GFP_NOIO);
	if (!memory)
		return false;
	spin_lock_irq(&k2->lock);
	if (!guard->memory) {
		swap(guard->memory, memory);
		k2_declared_begin(declared, guard->memory);
	}
	memcpy(declared->limit, limit, sizeof(declared->limit));
	spin_unlock_irq(&k2->lock);
	kfree(memory);
	return true;
}

/* Kernel workers take turns like the threads of a pool, so they count as one process. */
static struct k2_thread k2_current_thread(unsigned int level, bool is_write)
{
	return (struct k2_thread){
		.process = current->flags & PF_KTHREAD ? K2_KERNEL_PID : task_tgid_nr(current),
		.thread = task_pid_nr(current),
		.level = level,
		.is_write = is_write,
	};
}

static struct k2_scene k2_scene(const struct k2_data *k2, unsigned int level)
{
	const struct k2_lookahead *ahead = &k2->guard->ahead;
	const struct k2_counts *rt = &k2->policy.counts[K2_CLASS_RT];

	return (struct k2_scene){
		.stalls = ahead->device.op[0].stalls + ahead->device.op[1].stalls,
		.lane_waits = k2->lanes.blocked[level].count,
		.background_dispatched = k2->policy.counts[K2_CLASS_BACKGROUND].dispatched,
		.rt_inserted = rt->inserted,
		.has_background = k2->policy.inflight[K2_CLASS_BACKGROUND],
		.has_unguarded = k2->guard->unguarded_inflight,
		.has_lower = k2_lookahead_has_lower(ahead, level),
		.has_rt = rt->inserted - rt->completed > 1,
	};
}

/* The stream of @rq has counted it: note the requests that may delay it. */
static void k2_note_met(struct k2_data *k2, struct request *rq, bool is_early)
{
	struct k2_lookahead *ahead = &k2->guard->ahead;
	struct k2_stream *stream = &ahead->streams.stream[k2_rq(rq)->stream];
	struct k2_scene scene = k2_scene(k2, stream->level);

	scene.is_early = is_early;
	k2_excess_arrival(&stream->met, &scene, stream->pattern.outstanding == 1,
			  k2_device_time_ns(&ahead->device, k2_op(rq), blk_rq_bytes(rq)));
}

static void k2_arrives_in_stream(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	struct k2_thread thread = k2_current_thread(k2_rq(rq)->queue, k2_op(rq));
	struct k2_lookahead *ahead = &k2->guard->ahead;
	u64 early_count = ahead->streams.early_count;

	if (unlikely(!ahead->streams.stream))
		k2_take_memory(&ahead->streams);
	k2_rq(rq)->stream = k2_lookahead_rt_arrival(ahead, &thread, now_ns);
	if (k2_rq(rq)->stream != K2_STREAM_NONE)
		k2_note_met(k2, rq, early_count != ahead->streams.early_count);
}

/*
 * A real-time @rq arrives: in a job of the task that owns its level, or else in the stream of its
 * thread.
 */
void k2_guard_arrival(struct k2_data *k2, struct request *rq)
{
	struct k2_guard *guard = k2->guard;
	struct k2_rq *k2r = k2_rq(rq);
	struct k2_task *task = k2_tasks_current(k2, k2r->queue);
	u64 now_ns = ktime_get_ns();

	if (task) {
		k2_tasks_arrival(k2, rq, task, now_ns);
		k2_tasks_wake(k2);
	} else if (k2_is_looking_ahead(k2)) {
		k2_arrives_in_stream(k2, rq, now_ns);
	}
	if (k2_op(rq))
		k2_pace_rt_write(&guard->ahead.pace, now_ns);
}

/*
 * The current thread makes @rq, a flush or a write with one. k2 does not see the flush again before
 * it ends; until then it keeps its task busy. The flush has no ioprio yet, but will get that of its
 * thread.
 */
void k2_guard_flush(struct k2_data *k2, struct request *rq)
{
	unsigned int level = k2_policy_queue(get_current_ioprio(), false);
	struct k2_task *task;

	task = level < K2_RT_LEVELS ? k2_tasks_current(k2, level) : NULL;
	if (!task)
		return;
	k2_tasks_arrival(k2, rq, task, ktime_get_ns());
	k2_tasks_wake(k2);
}

/*
 * @rq bypassed k2 and has ended: on 6.1 a flush or FUA write, on 6.12 a flush. On 6.12 its bio took
 * the ioprio along, so it counts as background; @made_in is the queue of its thread.
 */
void k2_guard_bypassed(struct k2_data *k2, struct request *rq, unsigned int made_in, u64 now_ns)
{
	unsigned int queue = k2_policy_queue(req_get_ioprio(rq), false);
	struct k2_guard *guard = k2->guard;

	k2_lookahead_bypassed(&guard->ahead, k2_guarded_level(made_in), rq->start_time_ns, now_ns);
	if (queue >= K2_RT_LEVELS || blk_rq_is_passthrough(rq))
		return;
	if (!k2_tasks_bypassed(k2, rq, queue, now_ns) && k2_is_looking_ahead(k2)) {
		if (unlikely(!guard->ahead.streams.stream))
			k2_take_memory(&guard->ahead.streams);
		k2_lookahead_rt_bypassed(&guard->ahead, queue, rq->start_time_ns, now_ns);
	}
	k2_pace_rt_write(&guard->ahead.pace, now_ns);
}

static bool k2_has_exited(u64 pid, enum pid_type type)
{
	if (!pid || pid == K2_STREAM_KEY_UNKNOWN)
		return false;
	return !pid_task(find_pid_ns(pid, &init_pid_ns), type);
}

static void k2_forget_streams(struct k2_streams *streams)
{
	unsigned int i;

	rcu_read_lock();
	/* Forgetting lowers `used`, but never below a stream that is still to be checked. */
	for (i = streams->used; i-- > 0;) {
		struct k2_stream *stream = &streams->stream[i];
		bool is_process = stream->process == K2_STREAM_NONE;

		if (i < streams->used &&
		    k2_has_exited(stream->key, is_process ? PIDTYPE_TGID : PIDTYPE_PID))
			k2_streams_forget(streams, i);
		else if (is_process && k2_has_exited(stream->thread, PIDTYPE_PID))
			stream->thread = 0;
	}
	rcu_read_unlock();
}

/* Every K2_LOOK_EVERY_NS: forgets processes, threads and owners of tasks that have exited. */
static void k2_look_who_is_there(struct k2_data *k2, u64 now_ns)
{
	if (now_ns - k2->guard->looked_ns < K2_LOOK_EVERY_NS)
		return;
	k2->guard->looked_ns = now_ns;
	k2_forget_streams(&k2->guard->ahead.streams);
	k2_tasks_look(k2);
}

static bool k2_is_learned(struct request *rq)
{
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;
}

/* @bytes of @rq go to the device. @now_ns: 0 if the time was not read yet. */
static void k2_watch(struct k2_data *k2, struct request *rq, unsigned int bytes, u64 now_ns)
{
	struct k2_lookahead *ahead = &k2->guard->ahead;

	now_ns = now_ns ?: ktime_get_ns();
	k2_rq(rq)->flight = k2_lookahead_watch(ahead, k2_guarded_level(k2_rq(rq)->queue), k2_op(rq),
					       bytes, k2_policy_inflight(&k2->policy), now_ns);
}

static void k2_leave_unwatched(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	k2_rq(rq)->flight = k2_lookahead_unwatched(&k2->guard->ahead,
						   k2_guarded_level(k2_rq(rq)->queue), now_ns);
}

/* The bound does not cover @rq; see k2_policy.h. */
static void k2_mark_unguarded(struct k2_guard *guard, struct request *rq)
{
	if (k2_rq(rq)->queue < K2_RT_LEVELS)
		return;
	k2_rq(rq)->flags |= K2_RQ_UNGUARDED;
	guard->unguarded_inflight++;
}

static void k2_dispatch_whole(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	if (k2_decide_whole(&k2->guard->ahead, k2_rq(rq)->queue) && k2_is_learned(rq))
		k2_watch(k2, rq, blk_rq_bytes(rq), now_ns);
	else
		k2_leave_unwatched(k2, rq, now_ns);
	k2_mark_unguarded(k2->guard, rq);
}

static void k2_hold(struct k2_data *k2, u64 until_ns)
{
	k2->guard->is_held = true;
	k2->guard->held_until_ns = until_ns;
	k2_timer_set(k2, until_ns);
}

/* Releases held background if it is time. Else returns when to check again; 0: never. */
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
 * How many bytes of @rq, the head of its queue, go to the driver now. 0: it waits until a command
 * ends or the timer fires, and only the guard's hold state has changed. @now_ns: 0 if the time was
 * not read yet.
 */
unsigned int k2_guard_dispatch(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	struct k2_lookahead *ahead = &k2->guard->ahead;
	struct k2_decision decision;
	struct k2_offer offer;

	if (k2_decision_needs_time(ahead, &k2->policy)) {
		now_ns = now_ns ?: ktime_get_ns();
		k2_look_who_is_there(k2, now_ns);
	}
	/* k2_decide() would decide the same, but costs far more. */
	if (k2_looks_ahead(ahead, &k2->policy) && !ahead->declared.used &&
	    k2_guards_nobody(ahead, k2_guarded_level(k2_rq(rq)->queue), now_ns)) {
		k2_dispatch_whole(k2, rq, now_ns);
		return blk_rq_bytes(rq);
	}
	offer = (struct k2_offer){
		.queue = k2_rq(rq)->queue,
		.op = k2_op(rq),
		.bytes = blk_rq_bytes(rq),
		.block_bytes = queue_logical_block_size(k2->q),
		.may_split = k2_may_split(rq),
		.is_timed = k2_is_learned(rq),
	};
	decision = k2_decide(ahead, &k2->policy, &offer, now_ns);
	if (decision.is_cut)
		trace_k2_look_ahead(rq, decision.room_ns, decision.bytes, decision.piece_ns);
	if (!decision.bytes) {
		k2_hold(k2, decision.hold_until_ns);
		return 0;
	}
	if (decision.is_unguarded)
		k2_mark_unguarded(k2->guard, rq);
	if (decision.is_watched && k2_is_learned(rq))
		k2_watch(k2, rq, decision.bytes, now_ns);
	else
		k2_leave_unwatched(k2, rq, now_ns);
	return decision.bytes;
}

/* @rq of a stream has ended: did it exceed the bound? */
static void k2_note_excess(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	struct k2_lookahead *ahead = &k2->guard->ahead;
	const struct k2_stream *stream = &ahead->streams.stream[k2_rq(rq)->stream];
	u64 excess_ns = k2_excess_ns(&stream->met, now_ns - rq->start_time_ns, ahead->rt_block_ns);
	struct k2_scene scene;

	if (likely(!excess_ns))
		return;
	scene = k2_scene(k2, stream->level);
	k2_excess_end(&ahead->excess, &stream->met, &scene, excess_ns);
}

/* The device has completed @rq or a piece of it. */
void k2_guard_completed(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	struct k2_guard *guard = k2->guard;
	struct k2_rq *k2r = k2_rq(rq);

	if (k2r->flight != K2_FLIGHT_NONE) {
		if (guard->ahead.declared.used && rq->rq_flags & RQF_STATS &&
		    k2r->flight < K2_FLIGHTS)
			k2_declared_began(&guard->ahead.declared, k2r->flight,
					  rq->io_start_time_ns);
		k2_lookahead_done(&guard->ahead, k2r->flight, now_ns);
	}
	k2r->flight = K2_FLIGHT_NONE;
	guard->is_held = false;
	k2_tasks_wake(k2);
	if (k2r->stream == K2_STREAM_NONE || k2r->flags & K2_RQ_PIECE)
		return;
	if (k2r->flags & K2_RQ_DECLARED) {
		k2_tasks_ended(k2, rq, now_ns);
		return;
	}
	k2_note_excess(k2, rq, now_ns);
	k2_lookahead_rt_end(&guard->ahead, k2r->stream, now_ns);
	k2r->stream = K2_STREAM_NONE;
}
