/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Keeps two tables of a controller in a store: they change together or not at all.
 *
 *	cc store.c $(pkg-config --cflags --libs steadyio) -o store
 *	truncate --size 64M tables && ./store tables
 *
 * Exit status: 0 done; 1 failed.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <steadyio_store.h>

#define GAINS	    1
#define LIMITS	    2
#define TABLE_BYTES (256 << 10)

static int failed(const char *what)
{
	fprintf(stderr, "store: %s: %s\n", what, steadyio_error());
	return 1;
}

static int make_tables(struct steadyio_store *store)
{
	/* Two places: new contents always have room. */
	const struct steadyio_extent_options options = {
		.struct_bytes = sizeof(options),
		.bytes = TABLE_BYTES,
		.flags = STEADYIO_EXTENT_TWICE,
	};

	if (steadyio_store_add(store, GAINS, &options) != STEADYIO_OK ||
	    steadyio_store_add(store, LIMITS, &options) != STEADYIO_OK)
		return failed("add");
	return 0;
}

/* A power cut leaves both tables of the last version, or both of this one. */
static int save(struct steadyio_store *store, unsigned char *table, int version)
{
	memset(table, version, TABLE_BYTES);
	if (steadyio_store_write(store, GAINS, table, TABLE_BYTES) != STEADYIO_OK ||
	    steadyio_store_write(store, LIMITS, table, TABLE_BYTES - 5) != STEADYIO_OK)
		return failed("write");
	if (steadyio_store_flush(store) != STEADYIO_OK)
		return failed("flush");
	return 0;
}

static int tell(struct steadyio_store *store, unsigned char *table)
{
	struct steadyio_extent extent = {.struct_bytes = sizeof(extent)};
	uint64_t bytes, id = 0;
	int status;

	while ((status = steadyio_store_next(store, id, &extent)) == STEADYIO_OK) {
		if (steadyio_store_load(store, extent.id, table, TABLE_BYTES, &bytes) !=
		    STEADYIO_OK)
			return failed("load");
		printf("table %" PRIu64 ": version %d, %" PRIu64 " bytes in %" PRIu64 " commands\n",
		       extent.id, table[0], bytes, extent.load_commands);
		id = extent.id + 1;
	}
	return status == STEADYIO_STORE_MISSING ? 0 : failed("next");
}

static int run(struct steadyio_store *store, unsigned char *table)
{
	if (make_tables(store) || save(store, table, 1) || save(store, table, 2))
		return 1;
	return tell(store, table);
}

int main(int argc, char **argv)
{
	const struct steadyio_store_options options = {
		.struct_bytes = sizeof(options),
		.extents_max = 16,
	};
	struct steadyio_store *store;
	unsigned char *table;
	int status;

	if (argc != 2) {
		fprintf(stderr, "usage: store DEVICE\n");
		return 2;
	}
	if (steadyio_store_create(argv[1], &options, &store) != STEADYIO_OK)
		return failed("create");
	table = aligned_alloc(STEADYIO_STORE_BLOCK_BYTES, TABLE_BYTES);
	status = table ? run(store, table) : failed("memory");
	free(table);
	steadyio_store_close(store);
	return status;
}
