/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declared tasks: a program states when its next real-time request comes, and limits of the
 * device's times; k2 learns neither. Then the wait for requests of lower levels has a proved bound
 * (docs/reference/bound.md).
 *
 * A task begins jobs at least period - 2 jitter apart. A job begins with a request that comes while
 * none of the task is outstanding, and more than think after the last one ended. The task is quiet
 * again think after all its requests have ended. Counting the requests of a job would be no
 * substitute: one short job would shift all later ones.
 *
 * The rule. When a request below the task's level is dispatched, the device may have work until the
 * task's next job can begin, plus block. The next job can begin at once unless the task is quiet.
 * It also can after a job that came too early or too late.
 *
 * A request may have to wait for a smallest piece of 4 KiB, even if that takes longer than block.
 * If a request of a task waits longer than both for lower levels, exactly one counter shows the
 * cause (enum k2_cause). Requests of a task that wait for the same command count once.
 *
 * Pure C: no allocation, no lock, no clock. The caller serialises all calls.
 */
#ifndef K2_DECLARED_H
#define K2_DECLARED_H

#include "k2_device.h"

#define K2_DECLARED_MAX	    32
#define K2_DECLARED_FLIGHTS 32
#define K2_DECLARED_NONE    K2_DECLARED_MAX
/* The longest time that a request that may not be split is held until it fits. */
#define K2_DECLARED_HOLD_NS 100000000ULL

/* The statement of a task. */
struct k2_declaration {
	u32 level;
	u64 period_ns; /* from one job to the next; the least time if is_sporadic */
	u64 jitter_ns; /* a job's first request comes at most this much before or after its place */
	u64 think_ns; /* the longest time without a request outstanding inside a job */
	u64 block_ns; /* the longest time that lower levels may delay a request */
	u32 exact; /* the number of requests of each job; 0: not stated */
	bool is_sporadic;
};

/* Causes of waits that are longer than stated. */
enum k2_cause {
	K2_CAUSE_POLICY, /* no other cause: a fault of k2 */
	K2_CAUSE_DEVICE, /* a command took longer than its limit */
	K2_CAUSE_DISPATCH, /* a command exceeded its limit because the driver started it late */
	K2_CAUSE_EARLY, /* the job came earlier than stated */
	K2_CAUSE_LATE, /* the job came later than stated */
	/* The device had a request that k2 does not see, or one from before the task. */
	K2_CAUSE_BYPASS,
	/* A request did not fit: background after background_wait_ms_max, or one held too long. */
	K2_CAUSE_FORCED,
	K2_CAUSES
};

struct k2_declared_task {
	struct k2_declaration stated;
	bool is_used;
	bool has_job; /* a job has begun since the declaration */
	bool is_trusted; /* the last job came as stated */
	enum k2_cause fault; /* of the job, if it is not trusted */
	u32 outstanding;
	u32 ended; /* requests of this job that have ended */
	u64 first_ns; /* when this job's first request came */
	u64 end_ns; /* when its last request ended */
	/*
	 * Waits for commands of lower levels that the device has, one bit per command, and the last
	 * for all unmeasured ones. waits_since_ns: when the first request came that waits for it.
	 */
	u64 waits_for;
	u64 waits_past; /* of these, the ones that went before a queued request */
	u64 waits_since_ns[K2_DECLARED_FLIGHTS + 1];
	bool has_overrun; /* one of these commands took longer than its limit */
	bool has_late_start; /* one did so because the driver started it late */
	bool has_bypass; /* the device had a request that k2 does not see */
	bool has_forced; /* the device had a request that did not fit */
	/* Since fresh_ns a request is outstanding, and no counter includes its wait yet. */
	bool is_fresh;
	u64 fresh_ns;
	/* Totals. */
	u64 jobs, early, late;
	u64 waited_ns_max;
	u64 waited_over[K2_CAUSES]; /* waits longer than stated */
};

/* The longest time of a command that does not stall. */
struct k2_limit {
	u32 base_ns; /* 0: unknown, so only the smallest piece fits */
	u32 per_kib_ns;
};

/* A command with the device. */
struct k2_declared_flight {
	u32 level; /* K2_RT_LEVELS: background */
	u64 limit_ns; /* of its time */
	u64 sent_ns; /* when k2 passed it to the driver */
	u64 due_ns; /* when it ends at the latest, after the commands before it */
};

/* Only a device with declared tasks needs it. */
struct k2_declared_memory {
	struct k2_declared_task task[K2_DECLARED_MAX];
	struct k2_declared_flight flight[K2_DECLARED_FLIGHTS];
};

struct k2_declared {
	/* Both are in the caller's memory. NULL: no task has been declared. */
	struct k2_declared_task *task;
	struct k2_declared_flight *flight; /* commands of k2 that the device has */
	u32 used; /* the number of each task is below */
	struct k2_limit limit[K2_DEVICE_OPS];
	u32 least_bytes; /* of the smallest piece; 0: K2_PIECE_MIN */
	u32 flights; /* one bit for each in use */
	u32 flight_count;
	u32 forced_flights; /* one bit for each command that did not fit */
	u32 untimed; /* commands whose time is unknown */
	u32 untimed_level; /* the lowest of their levels */
	bool untimed_is_forced; /* one of these did not fit */
	bool is_forced; /* the next command does not fit */
	u32 forced_past; /* real-time levels with queued requests that it goes before */
	u64 work_ns; /* the sum of the limits of all commands */
	u64 work_since_ns; /* when the device began to work on the first of them */
	u64 late_start_ns_max; /* of the commands since the device was last idle */
	u64 overruns; /* commands that took longer than their limit */
	u64 overrun_ns_max; /* the most by which one did */
	/* Since then a request that may not be split is held until it fits; 0: none is. */
	u64 held_since_ns;
	u64 forced; /* requests that were held for K2_DECLARED_HOLD_NS */
	u64 faults; /* the sum of early, late and waited_over of all tasks */
};

/* Called before the functions below. @memory is zero, and the caller frees it. */
static inline void k2_declared_begin(struct k2_declared *declared,
				     struct k2_declared_memory *memory)
{
	declared->task = memory->task;
	declared->flight = memory->flight;
}

/* Returns K2_DECLARED_NONE if there are too many tasks, counting removed ones with requests. */
u32 k2_declared_add(struct k2_declared *declared, const struct k2_declaration *stated);
void k2_declared_remove(struct k2_declared *declared, u32 number);

/* False: no command can take this time, and the limit is not set. */
bool k2_declared_set_limit(struct k2_declared *declared, u32 op, u32 base_ns, u32 per_kib_ns);
u64 k2_declared_limit_ns(const struct k2_declared *declared, u32 op, u32 bytes);
/* The longest time of a smallest piece, over all operations. */
u64 k2_declared_least_ns(const struct k2_declared *declared);

/* Is there a task of a level before @level? */
bool k2_declared_guards(const struct k2_declared *declared, u32 level);

/* A request of task @number arrives; ends. */
void k2_declared_arrival(struct k2_declared *declared, u32 number, u64 now_ns);
void k2_declared_end(struct k2_declared *declared, u32 number, u64 now_ns);
/* The rest of a split request is queued again, and waits for commands dispatched meanwhile. */
void k2_declared_back(struct k2_declared *declared, u32 number, u64 now_ns);

/* How long from now no request of the task comes, according to its statement. */
u64 k2_declared_away_ns(const struct k2_declared_task *task, u64 now_ns);

/* A request to dispatch. */
struct k2_declared_offer {
	u32 level; /* K2_RT_LEVELS: background */
	u32 op;
	u32 bytes;
	u32 block_bytes;
	bool may_split;
	bool is_timed; /* the limit of its time is known */
	/* It is background and no real-time request is queued, so the device may stay idle. */
	bool may_wait;
	u32 forced_past; /* real-time levels with queued requests that it goes before, a bit each */
};

/*
 * How much of it may go now, in whole blocks; 0: nothing until a command has ended, or until
 * @hold_until_ns if that is not 0. Only the last piece may be smaller than the size that always
 * fits, or than one block. This limits the number of pieces.
 */
u32 k2_declared_fit(struct k2_declared *declared, const struct k2_declared_offer *offer, u64 now_ns,
		    u64 *hold_until_ns);

/*
 * Command @flight, a free number below K2_DECLARED_FLIGHTS, goes to the device; leaves it. It also
 * leaves if the driver returned it undone, or if the time of its end is unknown.
 */
void k2_declared_dispatch(struct k2_declared *declared, u32 flight, u32 level, u32 op, u32 bytes,
			  u64 now_ns);
void k2_declared_done(struct k2_declared *declared, u32 flight, u64 now_ns);
/*
 * The driver began the command at @began_ns, if that is known. Called before k2_declared_done(). A
 * driver without room, or a worker that was late, is not the device's fault.
 */
void k2_declared_began(struct k2_declared *declared, u32 flight, u64 began_ns);
/*
 * A command of unknown time, such as a discard or a lane's command, goes to the device; ends. It
 * may delay only tasks of levels before @level.
 */
void k2_declared_untimed(struct k2_declared *declared, u32 level, u64 now_ns);
void k2_declared_untimed_done(struct k2_declared *declared, u64 now_ns);
/*
 * A request of @level that k2 does not see has ended. It was issued at @since_ns or later, and is
 * the cause of the waits of now.
 */
void k2_declared_bypassed(struct k2_declared *declared, u32 level, u64 since_ns, u64 now_ns);

#endif /* K2_DECLARED_H */
