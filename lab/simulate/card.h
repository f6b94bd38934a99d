/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A card of the flash model as scheduler.c sees it: numbers in, and for each command the time that
 * it ends. The policy and the flash model each have the kernel's types, so nothing includes both.
 */
#ifndef CARD_H
#define CARD_H

#include <stdbool.h>
#include <stddef.h>

enum card_op {
	CARD_READ,
	CARD_WRITE,
	CARD_DISCARD,
	CARD_FLUSH,
};

struct card_command {
	enum card_op op;
	unsigned long long sector;
	unsigned int bytes;
	bool is_durable; /* past the cache */
};

/* Where the number of this name is kept, as the emmc module calls it; NULL: there is none. */
unsigned long long *card_number(const char *name, size_t length);

/* Starts with an idle card. False: the numbers do not fit together. */
bool card_begin(unsigned long long seed);
bool card_has_cache(void);
unsigned int card_cache_kib(void);

/* Returns when the card has done it. */
unsigned long long card_do(const struct card_command *command, unsigned long long now_ns);

#endif /* CARD_H */
