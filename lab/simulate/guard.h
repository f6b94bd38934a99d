/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * k2's look-ahead for ssd_load.c. The policy and the SSD model both define the kernel's types, so
 * no file includes both.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>

#define GUARD_NEVER (~0ULL)

/*
 * At most @inflight_max requests are with the drive. @pace_kb_s: the pace of background writes; 0:
 * the policy learns it.
 */
void guard_begin(unsigned int rt_block_us, unsigned int pace_kb_s, unsigned int inflight_max);

/* A request of the real-time process arrives; ends. */
void guard_rt_arrival(bool write, unsigned long long now_ns);
void guard_rt_end(unsigned long long now_ns);

/* A request of the real-time process or of the background. */
struct guard_request {
	bool is_rt;
	bool write;
	unsigned int bytes;
};

/* May it be dispatched while the drive has @inflight others? Real-time always may. */
bool guard_allows(const struct guard_request *request, unsigned int inflight,
		  unsigned long long now_ns);
/* If not, when to ask again unless a command ends earlier. */
unsigned long long guard_wait_until_ns(void);

/* The drive gets it, after guard_allows(). Returns its number for guard_done(). */
unsigned int guard_watch(const struct guard_request *request, unsigned int inflight,
			 unsigned long long now_ns);
void guard_done(unsigned int flight, unsigned long long now_ns);

#endif /* GUARD_H */
