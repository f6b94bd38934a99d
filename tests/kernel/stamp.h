/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A self-describing block: it begins with its place, its write and its writer, and ends with a
 * crc32c of the rest.
 */
#ifndef STAMP_H
#define STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct stamp {
	uint64_t block;
	uint32_t write_number, job;
};

static inline uint32_t crc32c(const void *data, size_t bytes)
{
	static uint32_t table[256];
	const uint8_t *at = data;
	uint32_t crc = ~0U;

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			table[i] = i;
			for (int bit = 0; bit < 8; bit++)
				table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78 : 0);
		}
	}
	while (bytes--)
		crc = crc >> 8 ^ table[(crc ^ *at++) & 0xff];
	return ~crc;
}

static inline void stamp_put(char *block, size_t bytes, const struct stamp *stamp)
{
	uint32_t crc;

	memset(block, (int)(stamp->write_number + stamp->block), bytes);
	memcpy(block, stamp, sizeof(*stamp));
	crc = crc32c(block, bytes - sizeof(crc));
	memcpy(block + bytes - sizeof(crc), &crc, sizeof(crc));
}

static inline bool stamp_is_intact(const char *block, size_t bytes)
{
	uint32_t crc = crc32c(block, bytes - sizeof(crc));

	return memcmp(block + bytes - sizeof(crc), &crc, sizeof(crc)) == 0;
}

#endif /* STAMP_H */
