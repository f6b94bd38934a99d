// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "k2_declared.h"

#define KIB 1024U
/* For a command from before the tasks, or that an unseen request may have delayed. */
#define NOT_DUE (~0ULL)

/* Tasks. */

u32 k2_declared_add(struct k2_declared *declared, const struct k2_declaration *stated)
{
	u32 number;

	for (number = 0; number < K2_DECLARED_MAX; number++)
		if (!declared->task[number].is_used && !declared->task[number].outstanding)
			break;
	if (number == K2_DECLARED_MAX)
		return K2_DECLARED_NONE;
	declared->task[number] = (struct k2_declared_task){.stated = *stated, .is_used = true};
	if (declared->used <= number)
		declared->used = number + 1;
	return number;
}

void k2_declared_remove(struct k2_declared *declared, u32 number)
{
	declared->task[number].is_used = false;
	while (declared->used && !declared->task[declared->used - 1].is_used)
		declared->used--;
}

bool k2_declared_guards(const struct k2_declared *declared, u32 level)
{
	u32 i;

	for (i = 0; i < declared->used; i++)
		if (declared->task[i].is_used && declared->task[i].stated.level < level)
			return true;
	return false;
}

/* The least time from the first request of a job to that of the next. */
static u64 least_ns(const struct k2_declaration *stated)
{
	return k2_minus(stated->period_ns, 2 * stated->jitter_ns);
}

static bool is_quiet(const struct k2_declared_task *task, u64 now_ns)
{
	if (task->outstanding)
		return false;
	if (task->stated.exact)
		return task->ended >= task->stated.exact;
	return k2_minus(now_ns, task->end_ns) > task->stated.think_ns;
}

static void begin_job(struct k2_declared *declared, struct k2_declared_task *task, u64 now_ns)
{
	const struct k2_declaration *stated = &task->stated;
	u64 gap_ns = k2_minus(now_ns, task->first_ns);

	task->is_trusted = true;
	if (task->has_job && gap_ns < least_ns(stated)) {
		task->early++;
		task->is_trusted = false;
		task->fault = K2_CAUSE_EARLY;
	} else if (task->has_job && !stated->is_sporadic &&
		   gap_ns > stated->period_ns + 2 * stated->jitter_ns) {
		task->late++;
		task->is_trusted = false;
		task->fault = K2_CAUSE_LATE;
	}
	declared->faults += !task->is_trusted;
	task->has_job = true;
	task->jobs++;
	task->ended = 0;
	task->first_ns = now_ns;
}

/* Waits. */

/* All commands of unknown time count as one command. */
#define UNTIMED K2_DECLARED_FLIGHTS

static u64 bit(u32 flight)
{
	return 1ULL << flight;
}

static u32 first_of(u64 flights)
{
	return (u32)flights ? (u32)__builtin_ctz((u32)flights) : UNTIMED;
}

static enum k2_cause cause_of(const struct k2_declared_task *task)
{
	if (task->has_bypass)
		return K2_CAUSE_BYPASS;
	if (task->has_forced)
		return K2_CAUSE_FORCED;
	if (task->has_overrun)
		return K2_CAUSE_DEVICE;
	if (task->has_late_start)
		return K2_CAUSE_DISPATCH;
	return task->is_trusted ? K2_CAUSE_POLICY : task->fault;
}

/* A request has waited for lower levels since @since_ns. Was that too long? */
static void judge(struct k2_declared *declared, struct k2_declared_task *task, u64 since_ns,
		  u64 now_ns)
{
	u64 waited_ns = k2_minus(now_ns, since_ns);

	if (waited_ns > task->waited_ns_max)
		task->waited_ns_max = waited_ns;
	if (waited_ns <= task->stated.block_ns || waited_ns <= k2_declared_least_ns(declared))
		return;
	task->waited_over[cause_of(task)]++;
	declared->faults++;
	/* Another wait of the same request is not counted again. */
	task->is_fresh = false;
	task->waits_for &= ~task->waits_past;
}

static void wait_for(const struct k2_declared *declared, struct k2_declared_task *task, u32 flight,
		     u64 now_ns)
{
	task->waits_for |= bit(flight);
	task->waits_past &= ~bit(flight);
	task->waits_since_ns[flight] = now_ns;
	if (flight == UNTIMED) {
		task->has_forced |= declared->untimed_is_forced;
		task->has_bypass |= !declared->untimed_is_forced;
		return;
	}
	task->has_forced |= !!(declared->forced_flights & bit(flight));
	task->has_bypass |= declared->flight[flight].due_ns == NOT_DUE;
}

/* A request of the task waits for the commands of lower levels with the device. */
static void begin_waits(const struct k2_declared *declared, struct k2_declared_task *task,
			u64 now_ns)
{
	u64 left;

	if (!task->waits_for) {
		task->has_overrun = false;
		task->has_late_start = false;
		task->has_bypass = false;
		task->has_forced = false;
	}
	for (left = declared->flights & ~task->waits_for; left; left &= left - 1) {
		u32 flight = first_of(left);

		if (declared->flight[flight].level > task->stated.level &&
		    declared->flight[flight].sent_ns <= now_ns)
			wait_for(declared, task, flight, now_ns);
	}
	if (declared->untimed && declared->untimed_level > task->stated.level &&
	    !(task->waits_for & bit(UNTIMED)))
		wait_for(declared, task, UNTIMED, now_ns);
}

/*
 * @flight has ended. A request waits for all commands that were with the device when it came. So
 * its wait goes on while one is left that it, or a request before it, waits for.
 */
static void end_wait(struct k2_declared *declared, struct k2_declared_task *task, u32 flight,
		     u64 now_ns)
{
	u64 since_ns = task->waits_since_ns[flight], left;

	task->waits_for &= ~bit(flight);
	for (left = task->waits_for; left; left &= left - 1)
		if (task->waits_since_ns[first_of(left)] <= since_ns)
			return;
	judge(declared, task, since_ns, now_ns);
}

/* Nothing of the task is outstanding: the device served it before the commands it waited for. */
static void end_waits(struct k2_declared *declared, struct k2_declared_task *task, u64 now_ns)
{
	u64 since_ns = now_ns, left;

	for (left = task->waits_for; left; left &= left - 1) {
		u32 flight = first_of(left);

		since_ns = k2_min(since_ns, task->waits_since_ns[flight]);
		if (flight != UNTIMED)
			task->has_overrun |= now_ns > declared->flight[flight].due_ns;
	}
	task->waits_for = 0;
	judge(declared, task, since_ns, now_ns);
}

void k2_declared_arrival(struct k2_declared *declared, u32 number, u64 now_ns)
{
	struct k2_declared_task *task = &declared->task[number];

	if (!task->has_job || is_quiet(task, now_ns))
		begin_job(declared, task, now_ns);
	task->outstanding++;
	if (!task->is_fresh) {
		task->is_fresh = true;
		task->fresh_ns = now_ns;
	}
	begin_waits(declared, task, now_ns);
}

void k2_declared_back(struct k2_declared *declared, u32 number, u64 now_ns)
{
	struct k2_declared_task *task = &declared->task[number];
	u64 waits_for = task->waits_for;

	if (!task->is_fresh)
		return;
	begin_waits(declared, task, now_ns);
	task->waits_past |= task->waits_for & ~waits_for;
}

void k2_declared_end(struct k2_declared *declared, u32 number, u64 now_ns)
{
	struct k2_declared_task *task = &declared->task[number];

	if (task->outstanding)
		task->outstanding--;
	task->ended++;
	task->end_ns = now_ns;
	/* Earlier waits of the task's other requests were waits for this one. */
	task->fresh_ns = now_ns;
	if (task->outstanding)
		return;
	if (task->waits_for)
		end_waits(declared, task, now_ns);
	task->is_fresh = false;
}

u64 k2_declared_away_ns(const struct k2_declared_task *task, u64 now_ns)
{
	if (!task->has_job || !task->is_trusted || !is_quiet(task, now_ns))
		return 0;
	return k2_minus(task->first_ns + least_ns(&task->stated), now_ns);
}

/*
 * The commands of k2 have waited for a request that k2 does not see, and so have the task's
 * requests behind them.
 */
static u64 bypassed_since_ns(const struct k2_declared *declared,
			     const struct k2_declared_task *task, u64 since_ns)
{
	u64 sent_ns = ~0ULL, left;

	for (left = declared->flights; left; left &= left - 1)
		sent_ns = k2_min(sent_ns, declared->flight[first_of(left)].sent_ns);
	return k2_max(k2_max(since_ns, sent_ns), task->fresh_ns);
}

void k2_declared_bypassed(struct k2_declared *declared, u32 level, u64 since_ns, u64 now_ns)
{
	u32 i;
	u64 left;

	for (i = 0; i < declared->used; i++) {
		struct k2_declared_task *task = &declared->task[i];

		task->has_bypass = true;
		/* Otherwise it still waits for commands of lower levels. */
		if (task->is_fresh && !task->waits_for && task->stated.level < level)
			judge(declared, task, bypassed_since_ns(declared, task, since_ns), now_ns);
	}
	/* The commands with the device may have waited for it. */
	for (left = declared->flights; left; left &= left - 1)
		declared->flight[first_of(left)].due_ns = NOT_DUE;
}

/* The device. */

bool k2_declared_set_limit(struct k2_declared *declared, u32 op, u32 base_ns, u32 per_kib_ns)
{
	if (op >= K2_DEVICE_OPS || !base_ns)
		return false;
	declared->limit[op] = (struct k2_limit){base_ns, per_kib_ns};
	return true;
}

u64 k2_declared_limit_ns(const struct k2_declared *declared, u32 op, u32 bytes)
{
	const struct k2_limit *limit = &declared->limit[op];

	return limit->base_ns + (u64)limit->per_kib_ns * ((bytes + KIB - 1) / KIB);
}

u64 k2_declared_least_ns(const struct k2_declared *declared)
{
	u32 bytes = declared->least_bytes ? declared->least_bytes : K2_PIECE_MIN, op;
	u64 least_ns = 0;

	for (op = 0; op < K2_DEVICE_OPS; op++) {
		u64 limit_ns = k2_declared_limit_ns(declared, op, bytes);

		if (least_ns < limit_ns)
			least_ns = limit_ns;
	}
	return least_ns;
}

/* The most work left. Which command runs first is unknown: assume the shortest. */
static u64 work_left_ns(const struct k2_declared *declared, u64 now_ns)
{
	u64 worked_ns = k2_minus(now_ns, declared->work_since_ns);
	u32 left;

	for (left = declared->flights; left; left &= left - 1)
		worked_ns = k2_min(worked_ns, declared->flight[__builtin_ctz(left)].limit_ns);
	return declared->flights ? declared->work_ns - worked_ns : 0;
}

/* How long the device may have work of a level, for all tasks of levels before it. */
struct room {
	u64 now_ns;
	u64 least_ns; /* the same at any time */
	u64 quiet_ns; /* when it grows, if thinking tasks alone limit it; else 0 */
};

/* When a task with nothing outstanding becomes quiet; 0: it is, or that gives no room. */
static u64 quiet_at_ns(const struct k2_declared_task *task, u64 now_ns)
{
	if (task->outstanding || !task->is_trusted || !task->has_job || is_quiet(task, now_ns))
		return 0;
	return task->end_ns + task->stated.think_ns + 1;
}

static struct room find_room(const struct k2_declared *declared, u32 level, u64 now_ns)
{
	struct room room = {~0ULL, ~0ULL, 0};
	bool will_grow = true;
	u32 i;

	for (i = 0; i < declared->used; i++) {
		const struct k2_declared_task *task = &declared->task[i];
		u64 away_ns, quiet_ns;

		if (!task->is_used || task->stated.level >= level)
			continue;
		away_ns = k2_declared_away_ns(task, now_ns);
		quiet_ns = away_ns ? 0 : quiet_at_ns(task, now_ns);
		room.now_ns = k2_min(room.now_ns, away_ns + task->stated.block_ns);
		room.least_ns = k2_min(room.least_ns, task->stated.block_ns);
		will_grow &= away_ns || quiet_ns;
		if (quiet_ns > room.quiet_ns)
			room.quiet_ns = quiet_ns;
	}
	if (!will_grow)
		room.quiet_ns = 0;
	return room;
}

/* The largest part, in whole blocks, that ends within @room_ns; 0: there is none. */
static u32 largest_bytes(const struct k2_declared *declared, const struct k2_declared_offer *offer,
			 u64 room_ns)
{
	const struct k2_limit *limit = &declared->limit[offer->op];
	u64 kib;

	if (!limit->base_ns || room_ns < limit->base_ns)
		return 0;
	if (k2_declared_limit_ns(declared, offer->op, offer->bytes) <= room_ns)
		return offer->bytes;
	/* The caller asks for no more than a request can have, so the quotient fits. */
	kib = k2_div(room_ns - limit->base_ns, limit->per_kib_ns);
	return (u32)(kib * KIB) - (u32)(kib * KIB) % offer->block_bytes;
}

/* Holds it until it fits, but not forever. @quiet_ns: when room grows; 0: unknown. */
static u32 fit_whole(struct k2_declared *declared, const struct k2_declared_offer *offer,
		     u64 room_ns, u64 quiet_ns, u64 now_ns, u64 *hold_until_ns)
{
	bool fits = offer->is_timed && declared->limit[offer->op].base_ns &&
		    k2_declared_limit_ns(declared, offer->op, offer->bytes) <= room_ns;
	bool has_waited = declared->held_since_ns &&
			  now_ns - declared->held_since_ns >= K2_DECLARED_HOLD_NS;
	u64 until_ns;

	if (!fits && !(has_waited && !declared->flights)) {
		if (!declared->held_since_ns)
			declared->held_since_ns = now_ns;
		until_ns = declared->held_since_ns + K2_DECLARED_HOLD_NS;
		if (quiet_ns && quiet_ns < until_ns)
			until_ns = quiet_ns;
		*hold_until_ns = declared->flights ? 0 : until_ns;
		return 0;
	}
	declared->is_forced = !fits;
	declared->forced += !fits;
	declared->held_since_ns = 0;
	return offer->bytes;
}

/* The smallest piece: the size that always fits, or a block. */
static u32 least_bytes(const struct k2_declared *declared, const struct k2_declared_offer *offer,
		       u64 least_room_ns)
{
	u32 bytes = largest_bytes(declared, offer, least_room_ns);

	if (!bytes)
		bytes = offer->block_bytes;
	return bytes < offer->bytes ? bytes : offer->bytes;
}

static u32 fit(struct k2_declared *declared, const struct k2_declared_offer *offer, u64 now_ns,
	       u64 *hold_until_ns)
{
	struct room room = find_room(declared, offer->level, now_ns);
	u64 room_ns = k2_minus(room.now_ns, work_left_ns(declared, now_ns));
	u32 bytes, least;

	if (!offer->may_split)
		return fit_whole(declared, offer, room_ns, room.quiet_ns, now_ns, hold_until_ns);
	bytes = largest_bytes(declared, offer, room_ns);
	least = least_bytes(declared, offer, room.least_ns);
	if (bytes < least) {
		if (declared->flights && !offer->forced_past)
			return 0;
		declared->is_forced = declared->flights;
		bytes = least;
	}
	/* Wait if there will be more room before this piece would end. */
	if (bytes < offer->bytes && !declared->flights && offer->may_wait && room.quiet_ns &&
	    room.quiet_ns - now_ns < k2_declared_limit_ns(declared, offer->op, bytes)) {
		*hold_until_ns = room.quiet_ns;
		return 0;
	}
	return bytes;
}

u32 k2_declared_fit(struct k2_declared *declared, const struct k2_declared_offer *offer, u64 now_ns,
		    u64 *hold_until_ns)
{
	u32 bytes;

	*hold_until_ns = 0;
	declared->is_forced = false;
	bytes = fit(declared, offer, now_ns, hold_until_ns);
	declared->forced_past = bytes ? offer->forced_past : 0;
	return bytes;
}

/* A command went to the device. Queued real-time that it went before now waits for it. */
static void went(struct k2_declared *declared, u64 now_ns)
{
	u32 i;

	for (i = 0; i < declared->used && declared->forced_past; i++)
		if (declared->forced_past & bit(declared->task[i].stated.level))
			k2_declared_back(declared, i, now_ns);
	declared->is_forced = false;
	declared->forced_past = 0;
}

void k2_declared_dispatch(struct k2_declared *declared, u32 flight, u32 level, u32 op, u32 bytes,
			  u64 now_ns)
{
	u64 limit_ns, due_ns = NOT_DUE;

	/* Limits are unknown. Tasks that are declared later wait until such commands have ended. */
	if (!declared->task)
		return;
	limit_ns = k2_declared_limit_ns(declared, op, bytes);
	/* due_ns only tells why a task waited. */
	if (declared->used)
		due_ns = now_ns + work_left_ns(declared, now_ns) + limit_ns;
	if (!declared->flights) {
		declared->work_since_ns = now_ns;
		declared->late_start_ns_max = 0;
	}
	declared->flight[flight] = (struct k2_declared_flight){level, limit_ns, now_ns, due_ns};
	declared->flights |= 1U << flight;
	declared->flight_count++;
	if (declared->is_forced)
		declared->forced_flights |= 1U << flight;
	declared->work_ns += limit_ns;
	went(declared, now_ns);
}

void k2_declared_untimed(struct k2_declared *declared, u32 level, u64 now_ns)
{
	if (!declared->untimed++)
		declared->untimed_level = 0;
	declared->untimed_level = k2_max(declared->untimed_level, level);
	declared->untimed_is_forced = declared->is_forced;
	went(declared, now_ns);
}

void k2_declared_untimed_done(struct k2_declared *declared, u64 now_ns)
{
	u32 i;

	if (--declared->untimed)
		return;
	for (i = 0; i < declared->used; i++)
		if (declared->task[i].waits_for & bit(UNTIMED))
			end_wait(declared, &declared->task[i], UNTIMED, now_ns);
}

void k2_declared_began(struct k2_declared *declared, u32 flight, u64 began_ns)
{
	u64 late_ns = k2_minus(began_ns, declared->flight[flight].sent_ns);

	if ((declared->flights & (1U << flight)) && late_ns > declared->late_start_ns_max)
		declared->late_start_ns_max = late_ns;
}

void k2_declared_done(struct k2_declared *declared, u32 flight, u64 now_ns)
{
	const struct k2_declared_flight *there;
	bool has_late_start;
	u64 overrun_ns;
	u32 i;

	if (!(declared->flights & (1U << flight)))
		return;
	there = &declared->flight[flight];
	overrun_ns = k2_minus(now_ns, there->due_ns);
	has_late_start = overrun_ns <= declared->late_start_ns_max;
	declared->flights &= ~(1U << flight);
	declared->flight_count--;
	declared->forced_flights &= ~(1U << flight);
	declared->work_ns -= there->limit_ns;
	declared->work_since_ns = now_ns;
	declared->overruns += overrun_ns > 0 && !has_late_start;
	if (overrun_ns > declared->overrun_ns_max && !has_late_start)
		declared->overrun_ns_max = overrun_ns;
	for (i = 0; i < declared->used; i++) {
		struct k2_declared_task *task = &declared->task[i];

		if (!(task->waits_for & bit(flight)))
			continue;
		task->has_overrun |= overrun_ns > 0 && !has_late_start;
		task->has_late_start |= overrun_ns > 0 && has_late_start;
		end_wait(declared, task, flight, now_ns);
	}
}
