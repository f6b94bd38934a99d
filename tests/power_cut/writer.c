// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * writer MODE FILE RECORDS MARKS: writes numbered records of 4 KiB, one every millisecond, and says
 * which are durable, one line "TIME_NS RECORDS" (CLOCK_MONOTONIC) in MARKS per record.
 *
 *   overwrite   direct O_DSYNC writes into a file that is already written.
 *   append      write() and fdatasync() on a file that grows.
 *   no-flush    as overwrite, but without O_DSYNC: its marks are unproved.
 *   no-commit   as append, but sync_file_range() instead of fdatasync(): no commit, no flush.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORD 4096

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Each word says where it belongs: test_power_cut.py has the same rule. */
static void fill(uint64_t *words, uint64_t record)
{
	for (unsigned int word = 0; word < RECORD / sizeof(*words); word++)
		words[word] = record << 16 | (word + 1);
}

static void write_record(int fd, const void *data, uint64_t record)
{
	if (pwrite(fd, data, RECORD, record * RECORD) != RECORD)
		err(1, "record %" PRIu64, record);
}

static void prepare(const char *path, void *buffer, uint64_t records)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT, 0644);

	if (fd < 0)
		err(1, "%s", path);
	memset(buffer, 0, RECORD);
	for (uint64_t record = 0; record < records; record++)
		write_record(fd, buffer, record);
	if (fsync(fd))
		err(1, "fsync");
	close(fd);
	sync();
}

int main(int argc, char **argv)
{
	bool overwrite, append, no_flush, no_commit;
	uint64_t records;
	void *buffer;
	FILE *marks;
	int fd, flags = O_WRONLY | O_CREAT;

	if (argc != 5)
		errx(2, "usage: writer MODE FILE RECORDS MARKS");
	overwrite = !strcmp(argv[1], "overwrite");
	append = !strcmp(argv[1], "append");
	no_flush = !strcmp(argv[1], "no-flush");
	no_commit = !strcmp(argv[1], "no-commit");
	if (!overwrite && !append && !no_flush && !no_commit)
		errx(2, "%s: unknown mode", argv[1]);
	records = strtoull(argv[3], NULL, 10);
	if (posix_memalign(&buffer, RECORD, RECORD))
		errx(1, "no memory");
	if (overwrite || no_flush) {
		prepare(argv[2], buffer, records);
		flags |= O_DIRECT;
	}
	if (overwrite)
		flags |= O_DSYNC;
	fd = open(argv[2], flags, 0644);
	marks = fopen(argv[4], "w");
	if (fd < 0 || !marks)
		err(1, "open");
	fprintf(marks, "%" PRIu64 " 0\n", now_ns());
	for (uint64_t record = 0; record < records; record++) {
		fill(buffer, record);
		write_record(fd, buffer, record);
		if (append && fdatasync(fd))
			err(1, "fdatasync");
		if (no_commit &&
		    sync_file_range(fd, record * RECORD, RECORD,
				    SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER))
			err(1, "sync_file_range");
		fprintf(marks, "%" PRIu64 " %" PRIu64 "\n", now_ns(), record + 1);
		fflush(marks);
		usleep(1000);
	}
	return 0;
}
