/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A card of the flash model for scheduler.c: takes its numbers, and returns the end of each
 * command. The policy and the flash model both define the kernel's types, so no file includes both.
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

/* The place of the number that the emmc module calls so; NULL: there is none. */
unsigned long long *card_number(const char *name, size_t length);

/* Starts with an idle card. False: the numbers contradict each other. */
bool card_begin(unsigned long long seed);
bool card_has_cache(void);
unsigned int card_cache_kib(void);

/* Returns the time when the card has done the command. */
unsigned long long card_do(const struct card_command *command, unsigned long long now_ns);

#endif /* CARD_H */
