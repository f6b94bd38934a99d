// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loaded into User Mode Linux (LD_PRELOAD) so that a guest's random numbers are the same each time.
 *
 * The guest's kernel takes its randomness from the host's getrandom(). It decides more than keys:
 * ext4 begins to read its bitmaps at a random moment in the first 5 s after a mount, and such a
 * read can meet the one that is measured. What else the kernel's pool takes in (command line,
 * version, clock) is the same each time, too.
 *
 * Sequence: splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * 2014), which is good enough: the kernel hashes what it gets.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Set by the boot; two boots that share a card need different ones. */
#define SEED_VARIABLE "STEADY_RANDOM_SEED"

typedef unsigned long long u64;

static u64 next(void)
{
	static u64 state;
	static int is_seeded;
	u64 x;

	if (!is_seeded) {
		const char *seed = getenv(SEED_VARIABLE);

		if (!seed)
			abort();
		state = strtoull(seed, NULL, 10);
		is_seeded = 1;
	}
	x = state += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* Called by UML in place of the C library's. */
ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *bytes = buffer;

	(void)flags;
	for (size_t done = 0; done < length; done += sizeof(u64)) {
		u64 word = next();
		size_t left = length - done;

		memcpy(bytes + done, &word, left < sizeof(word) ? left : sizeof(word));
	}
	return (ssize_t)length;
}
