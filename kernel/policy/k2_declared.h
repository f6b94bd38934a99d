/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declared tasks: the time of the next real-time request is stated, not learned, and so are limits
 * of the device's times. The wait for requests of lower levels then has a proved bound
 * (docs/reference/bound.md).
 *
 * A task begins jobs at least period - 2 jitter apart. A job begins with a request that finds
 * nothing of the task outstanding, more than think after the last end. The task is quiet again
 * think after all its requests have ended. Counting the requests of a job instead would not do: one
 * short job would shift all later ones.
 *
 * The rule. At each dispatch of a request below the task's level, the device may have work for no
 * longer than until the task's next job can begin, plus block. The next job can begin at once
 * unless the task is quiet, and after a job that came too early or too late.
 *
 * A request may have to wait for a smallest piece of 4 KiB, even if that takes longer than block.
 * Every request of a task that waits longer than both for lower levels has a cause, and exactly
 * one counter has it (enum k2_cause). Requests of a task that wait for the same command count once.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_DECLARED_H
#define K2_DECLARED_H

#include "k2_device.h"

#define K2_DECLARED_MAX	    32
#define K2_DECLARED_FLIGHTS 32
#define K2_DECLARED_NONE    K2_DECLARED_MAX
/* A request that may not be split waits no longer until it fits. */
#define K2_DECLARED_HOLD_NS 100000000ULL

/* What a task states. */
struct k2_declaration {
	u32 level;
	u64 period_ns; /* from one job to the next; if is_sporadic, at least */
	u64 jitter_ns; /* a job's first request comes up to so much before or after its place */
	u64 think_ns; /* the longest time without a request outstanding inside a job */
	u64 block_ns; /* lower levels may keep a request waiting for so long */
	u32 exact; /* each job has exactly so many requests; 0: not stated */
	bool is_sporadic;
};

/* Why a request waited longer than stated. */
enum k2_cause {
	K2_CAUSE_POLICY, /* it should not have: k2's fault */
	K2_CAUSE_DEVICE, /* a command took longer than the limit of its time */
	K2_CAUSE_DISPATCH, /* it did so only because the driver began it late */
	K2_CAUSE_EARLY, /* the job came before its time */
	K2_CAUSE_LATE, /* the job came after its time */
	/* A request that k2 is not shown was with the device, or one from before the task. */
	K2_CAUSE_BYPASS,
	/* One that did not fit: background after background_wait_ms_max, or what was held. */
	K2_CAUSE_FORCED,
	K2_CAUSES
};

struct k2_declared_task {
	struct k2_declaration stated;
	bool is_used;
	bool has_job; /* one has begun since it was declared */
	bool is_trusted; /* the last job came in its time */
	enum k2_cause fault; /* of the job, if it is not trusted */
	u32 outstanding;
	u32 ended; /* of this job */
	u64 first_ns; /* this job's first request came */
	u64 end_ns; /* its last request ended */
	/*
	 * Waits for the commands of lower levels that the device has: a bit each, the last for all
	 * that are not timed; and when the first request came that waits for it.
	 */
	u64 waits_for;
	u64 waits_past; /* of these, the ones that went before a request that was queued */
	u64 waits_since_ns[K2_DECLARED_FLIGHTS + 1];
	bool has_overrun; /* one of them took longer than its limit */
	bool has_late_start; /* one of them did so because the driver began it late */
	bool has_bypass; /* a request that k2 was not shown was with the device */
	bool has_forced; /* as was one that did not fit */
	/* A request is outstanding that no count covers, since then. */
	bool is_fresh;
	u64 fresh_ns;
	/* Totals. */
	u64 jobs, early, late;
	u64 waited_ns_max;
	u64 waited_over[K2_CAUSES]; /* longer than stated */
};

/* The longest that a command takes, but for stalls. */
struct k2_limit {
	u32 base_ns; /* 0: not known, so nothing but the smallest piece fits */
	u32 per_kib_ns;
};

/* A command with the device. */
struct k2_declared_flight {
	u32 level; /* K2_RT_LEVELS: background */
	u64 limit_ns; /* of its time */
	u64 sent_ns; /* when k2 gave it to the driver */
	u64 due_ns; /* with that of those before it, it ends by then */
};

struct k2_declared {
	struct k2_declared_task *task; /* memory of the caller for K2_DECLARED_MAX, or NULL */
	u32 used; /* all tasks are below */
	struct k2_limit limit[K2_DEVICE_OPS];
	u32 least_bytes; /* of a piece; 0: K2_PIECE_MIN */
	/* What the device has of k2. */
	struct k2_declared_flight flight[K2_DECLARED_FLIGHTS];
	u32 flights; /* one bit for each in use */
	u32 flight_count;
	u32 forced_flights; /* one bit for each that was dispatched though it did not fit */
	u32 untimed; /* commands whose time is not known */
	u32 untimed_level; /* the lowest of theirs */
	bool untimed_is_forced; /* one of these did not fit */
	bool is_forced; /* the next one does not fit */
	u32 forced_past; /* real-time levels that have requests queued, which it goes before */
	u64 work_ns; /* the sum of their limits */
	u64 work_since_ns; /* since when the device works on the first of them */
	u64 late_start_ns_max; /* of the commands since the device had none */
	u64 overruns; /* commands that took longer than their limit */
	u64 overrun_ns_max; /* by so much */
	/* A request that may not be split waits until it fits since then; 0: there is none. */
	u64 held_since_ns;
	u64 forced; /* such requests that have waited for K2_DECLARED_HOLD_NS */
	u64 faults; /* the sum of all that tasks count as early, late or over */
};

/*
 * Called with memory for tasks, zero at first. K2_DECLARED_NONE: there are too many, or requests of
 * those before are not done.
 */
u32 k2_declared_add(struct k2_declared *declared, const struct k2_declaration *stated);
void k2_declared_remove(struct k2_declared *declared, u32 number);

/* False: not a time that a command can have, nothing was changed. */
bool k2_declared_set_limit(struct k2_declared *declared, u32 op, u32 base_ns, u32 per_kib_ns);
u64 k2_declared_limit_ns(const struct k2_declared *declared, u32 op, u32 bytes);
/* The longest time of a smallest piece of any operation. */
u64 k2_declared_least_ns(const struct k2_declared *declared);

/* Is there a task of a level before @level? */
bool k2_declared_guards(const struct k2_declared *declared, u32 level);

/* A request of task @number arrives, has ended. */
void k2_declared_arrival(struct k2_declared *declared, u32 number, u64 now_ns);
void k2_declared_end(struct k2_declared *declared, u32 number, u64 now_ns);
/* The rest of a request of the task is queued again: it waits for what went meanwhile. */
void k2_declared_back(struct k2_declared *declared, u32 number, u64 now_ns);

/* For how long from now no request of the task comes, if it keeps what it stated. */
u64 k2_declared_away_ns(const struct k2_declared_task *task, u64 now_ns);

/* A request that is to go to the device. */
struct k2_declared_offer {
	u32 level; /* K2_RT_LEVELS: background */
	u32 op;
	u32 bytes;
	u32 block_bytes;
	bool may_split;
	bool is_timed; /* the limit of its time is known */
	/* Of background: nothing real-time is queued, so the device may be left idle; */
	bool may_wait;
	u32 forced_past; /* levels with requests queued that it goes before, a bit each */
};

/*
 * How much of it may go now, in whole blocks; 0: nothing before a command has ended, or before
 * @hold_until_ns, if that is not 0. No piece but the last is smaller than what always fits, or than
 * one block. This bounds the number of pieces.
 */
u32 k2_declared_fit(struct k2_declared *declared, const struct k2_declared_offer *offer, u64 now_ns,
		    u64 *hold_until_ns);

/*
 * Flight @flight, below K2_DECLARED_FLIGHTS and not in use, goes to the device; has ended; came
 * back, or is not known to have ended in its time.
 */
void k2_declared_dispatch(struct k2_declared *declared, u32 flight, u32 level, u32 op, u32 bytes,
			  u64 now_ns);
void k2_declared_done(struct k2_declared *declared, u32 flight, u64 now_ns);
/*
 * Called before k2_declared_done(), if it is known when the driver began the command. A driver that
 * had no room, or a worker that was late, is not the device's fault.
 */
void k2_declared_began(struct k2_declared *declared, u32 flight, u64 began_ns);
/*
 * A command of unknown time, such as a discard, or of a lane, goes to the device; has ended. It may
 * only delay tasks of levels before @level.
 */
void k2_declared_untimed(struct k2_declared *declared, u32 level, u64 now_ns);
void k2_declared_untimed_done(struct k2_declared *declared, u64 now_ns);
/*
 * A request of @level that k2 was not shown has ended, and was not made before @since_ns: waits of
 * now have it as their cause.
 */
void k2_declared_bypassed(struct k2_declared *declared, u32 level, u64 since_ns, u64 now_ns);

#endif /* K2_DECLARED_H */
