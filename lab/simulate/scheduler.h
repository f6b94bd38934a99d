/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * k2 on a card, like kernel/k2, which connects the policy to the block layer: requests come in, and
 * ended requests go out. The calls have the order of k2_main.c and k2_guard.c. Software takes no
 * time but host_ns per command.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include "card.h"
#include "k2_decision.h"

#define NEVER_NS (~0ULL)

struct request {
	struct card_command command; /* its remaining part */
	u32 queue; /* or the queue of its thread, if it bypasses k2 */
	u32 process; /* its real-time thread, or a background process; not 0 */
	u32 group; /* the process of a real-time thread */
	bool may_split;
	bool bypasses; /* k2 does not see it, like a flush */
	u32 declared; /* its declared task, or K2_DECLARED_NONE */
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

/* Declares a task; returns its number. The limits of the card's times must be set before. */
u32 scheduler_declare(const struct k2_declaration *stated);
void scheduler_limit(enum card_op op, u64 base_ns, u64 per_kib_ns);
const struct k2_declared_task *scheduler_declared(u32 number);

/* Returns the policy for its counters. */
const struct k2_policy *scheduler_policy(void);

/* A request comes. It belongs to the scheduler until scheduler_ended() returns it. */
void scheduler_insert(struct request *request, u64 now_ns);
/* Dispatches to the card. Called after all other calls of a moment. */
void scheduler_dispatch(u64 now_ns);
/* Returns a request that has ended by now; NULL: there are no more. */
struct request *scheduler_ended(u64 now_ns);
/* When the next command ends, or the next hold does. */
u64 scheduler_next_ns(void);

#endif /* SCHEDULER_H */
