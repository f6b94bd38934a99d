/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * k2 on a card, as kernel/k2 ties the policy to the block layer: requests in, requests that have
 * ended out. The order of the calls is that of k2_main.c and k2_guard.c. Software takes no time but
 * host_ns per command.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include "card.h"
#include "k2_decision.h"

#define NEVER_NS (~0ULL)

struct request {
	struct card_command command; /* what is left of it */
	u32 queue; /* or that of its thread, if it bypasses */
	u32 process; /* whose it is: a real-time thread, or of the background; not 0 */
	u32 group; /* the process of a real-time thread */
	bool may_split;
	bool bypasses; /* k2 is not shown it, as a flush */
	u32 declared; /* the task that it is of, K2_DECLARED_NONE: of none */
	u32 owner; /* the caller's, */
	u64 from_ns; /* and when it came */

	/* The scheduler's. */
	struct request *next;
	u32 piece_bytes, flight, stream;
	u64 sent_ns, end_ns; /* of the command that the card has */
};

struct scheduler_settings {
	u32 inflight_max, split_kib, rt_block_us, background_wait_ms_max;
	u64 host_ns;
};

/* False: a setting is out of range. */
bool scheduler_begin(const struct scheduler_settings *settings);

/* A task is declared; returns its number. The limits of the card's times come first. */
u32 scheduler_declare(const struct k2_declaration *stated);
void scheduler_limit(enum card_op op, u64 base_ns, u64 per_kib_ns);
const struct k2_declared_task *scheduler_declared(u32 number);

/* For its counters. */
const struct k2_policy *scheduler_policy(void);

/* The request comes; it is the scheduler's until it is returned by scheduler_ended(). */
void scheduler_insert(struct request *request, u64 now_ns);
/* Gives the card what may go now. Called after the calls of an instant. */
void scheduler_dispatch(u64 now_ns);
/* One that has ended by now; NULL: there is none, or no other. */
struct request *scheduler_ended(u64 now_ns);
/* When something ends, or is held no longer. */
u64 scheduler_next_ns(void);

#endif /* SCHEDULER_H */
