/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * steadyio_store: contents in contiguous extents of a device, by number, without a file system.
 *
 * A store lies on a block device, a /dev/chardiskN, a /dev/ngXnY or in a plain file. An extent is made
 * for a number of bytes, and has its contents replaced as a whole: new ones go to a new place, and count
 * when they and their record are durable. A power cut leaves the contents before or after.
 *
 *	steadyio_store_create()	makes an empty store; steadyio_store_open() opens an existing one.
 *	steadyio_store_add()	makes an extent; staged.
 *	steadyio_store_write()	replaces an extent's contents; staged.
 *	steadyio_store_delete()	deletes an extent; staged.
 *	steadyio_store_flush()	makes all staged changes durable, or, if power fails, none of them.
 *	steadyio_store_unload()	is write and flush.
 *	steadyio_store_load()	fills a buffer with an extent's contents.
 *	steadyio_store_check()	reads an extent's contents, and returns whether they are damaged.
 *	steadyio_store_close()	drops staged changes.
 *
 * This store sees staged changes at once. All metadata of the extents is in memory: a load takes
 * load_commands commands of the device and no other.
 *
 * Functions return an enum steadyio_status, or an enum steadyio_store_status. Negative values are
 * errors: nothing was changed, and steadyio_error() describes the error. Only if a write or flush
 * of the records fails is it unknown whether the changes are durable. Every later change then
 * returns STEADYIO_STATE; open the store again to see its contents.
 *
 * Threads: a store may be used from several threads; one call runs at a time. None of them is for a
 * thread that must not wait for the device.
 *
 * Buffers: addresses are multiples of STEADYIO_STORE_BLOCK_BYTES, as from
 * aligned_alloc(STEADYIO_STORE_BLOCK_BYTES, bytes): contents are not copied.
 */
#ifndef STEADYIO_STORE_H
#define STEADYIO_STORE_H

#include <steadyio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEADYIO_STORE_BLOCK_BYTES 4096

enum steadyio_store_status {
	/* No extent has this number. */
	STEADYIO_STORE_MISSING = -10,
	/* No room in one piece; or as many extents as the store was made for. */
	STEADYIO_STORE_FULL = -11,
	/* Records or contents are damaged. */
	STEADYIO_STORE_DAMAGED = -12,
	/* There is no store, or one of another version. */
	STEADYIO_STORE_NONE = -13,
};

enum steadyio_store_flags {
	/* Open: nothing is changed, and others may read, too. */
	STEADYIO_STORE_READ_ONLY = 1,
	/* Create: overwrite existing data. A mounted device is never overwritten. */
	STEADYIO_STORE_FORCE = 2,
};

enum steadyio_extent_flags {
	/* Two places, so that there is always room for new contents. */
	STEADYIO_EXTENT_TWICE = 1,
	/* Without a checksum of the contents, which each load computes. */
	STEADYIO_EXTENT_NO_CHECKSUM = 2,
};

struct steadyio_store;

struct steadyio_store_options {
	/* sizeof(struct steadyio_store_options) */
	size_t struct_bytes;
	/* Where extents begin, best a multiple of the device's erase unit. Default: what the device
	 * says, else 1 MiB. */
	uint64_t align_bytes;
	/* How many extents there may be. Default 1000. */
	uint32_t extents_max;
	/* enum steadyio_store_flags, or-ed */
	uint32_t flags;
};

struct steadyio_extent_options {
	/* sizeof(struct steadyio_extent_options) */
	size_t struct_bytes;
	/* Most that it can hold. */
	uint64_t bytes;
	/* enum steadyio_extent_flags, or-ed */
	uint32_t flags;
	uint32_t reserved;
};

struct steadyio_extent {
	/* sizeof(struct steadyio_extent) */
	size_t struct_bytes;
	uint64_t id;
	/* Where its contents are on the device. */
	uint64_t start_bytes;
	/* Most that it can hold. */
	uint64_t bytes;
	/* Length of its contents. */
	uint64_t valid_bytes;
	/* How many commands of the device a load takes. */
	uint64_t load_commands;
	/* CRC-32 of the contents, without STEADYIO_EXTENT_NO_CHECKSUM. */
	uint32_t crc;
	/* enum steadyio_extent_flags, or-ed */
	uint32_t flags;
};

struct steadyio_store_stats {
	/* sizeof(struct steadyio_store_stats) */
	size_t struct_bytes;
	uint64_t store_bytes;
	uint64_t align_bytes;
	/* Free, and how much of it in one piece: the largest extent that can be made. */
	uint64_t free_bytes;
	uint64_t free_bytes_max;
	/* Longest command of the device. */
	uint64_t command_bytes;
	/* Commands since the store was opened. */
	uint64_t reads;
	uint64_t writes;
	uint64_t flushes;
	uint32_t extents;
	uint32_t extents_max;
};

/* Makes an empty store on a device or in a file that is there, and opens it. `options` may be
 * NULL. Refused, if the device or file is known to hold something, or is in use. */
int steadyio_store_create(const char *path, const struct steadyio_store_options *options,
			  struct steadyio_store **store);

/* `flags`: 0 or STEADYIO_STORE_READ_ONLY. Nobody else has the store open meanwhile, unless all
 * read only. */
int steadyio_store_open(const char *path, uint32_t flags, struct steadyio_store **store);

int steadyio_store_add(struct steadyio_store *store, uint64_t id,
		       const struct steadyio_extent_options *options);

int steadyio_store_delete(struct steadyio_store *store, uint64_t id);

int steadyio_store_write(struct steadyio_store *store, uint64_t id, const void *data, size_t bytes);

int steadyio_store_flush(struct steadyio_store *store);

int steadyio_store_unload(struct steadyio_store *store, uint64_t id, const void *data,
			  size_t bytes);

/* The buffer has room for the contents, rounded up to STEADYIO_STORE_BLOCK_BYTES; their length goes
 * to `bytes`, which may be NULL. */
int steadyio_store_load(struct steadyio_store *store, uint64_t id, void *buffer,
			size_t buffer_bytes, uint64_t *bytes);

/* STEADYIO_STORE_DAMAGED if their checksum is wrong; without one: whether they can be read. */
int steadyio_store_check(struct steadyio_store *store, uint64_t id);

int steadyio_store_extent(struct steadyio_store *store, uint64_t id,
			  struct steadyio_extent *extent);

/* The extent with the lowest number that is `from_id` or higher; STEADYIO_STORE_MISSING behind the
 * last. */
int steadyio_store_next(struct steadyio_store *store, uint64_t from_id,
			struct steadyio_extent *extent);

int steadyio_store_stats(struct steadyio_store *store, struct steadyio_store_stats *stats);

/* Staged changes that are not flushed are lost. NULL does nothing. */
void steadyio_store_close(struct steadyio_store *store);

#ifdef __cplusplus
}
#endif

#endif
