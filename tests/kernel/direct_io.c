// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Direct I/O with a pattern that knows its place: direct_io write|verify DEV FROM_KIB LEN_KIB
 * BLOCK_BYTES THREADS SEED. Each 8-byte word is a function of its offset and SEED, so data that
 * went to or came from a wrong place shows. Neighbouring blocks are in different threads, so
 * that neighbours are queued at the same time. Exit status 1: an I/O failed or data differs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 64

struct job {
	int fd;
	bool write;
	uint64_t from_bytes, end_bytes, block_bytes, seed;
	unsigned int first, threads;
	int errors;
};

static uint64_t word_at(uint64_t offset, uint64_t seed)
{
	uint64_t word = (offset + seed) * 0x9e3779b97f4a7c15ULL;

	return word ^ (word >> 29);
}

static int check(const uint64_t *data, uint64_t offset, uint64_t length, uint64_t seed)
{
	for (uint64_t i = 0; i < length / 8; i++) {
		if (data[i] == word_at(offset + 8 * i, seed))
			continue;
		printf("direct_io: wrong data at byte %" PRIu64 "\n", offset + 8 * i);
		return 1;
	}
	return 0;
}

static int one_block(const struct job *job, uint64_t *data, uint64_t offset)
{
	uint64_t length = job->block_bytes;
	ssize_t done;

	if (offset + length > job->end_bytes)
		length = job->end_bytes - offset;
	if (job->write) {
		for (uint64_t i = 0; i < length / 8; i++)
			data[i] = word_at(offset + 8 * i, job->seed);
		done = pwrite(job->fd, data, length, (off_t)offset);
	} else {
		memset(data, 0, length);
		done = pread(job->fd, data, length, (off_t)offset);
	}
	if (done != (ssize_t)length) {
		printf("direct_io: at byte %" PRIu64 ": %s\n", offset,
		       done < 0 ? strerror(errno) : "short");
		return 1;
	}
	return job->write ? 0 : check(data, offset, length, job->seed);
}

static void *run(void *argument)
{
	struct job *job = argument;
	uint64_t step = job->block_bytes * job->threads;
	uint64_t *data;

	if (posix_memalign((void **)&data, 4096, job->block_bytes)) {
		job->errors++;
		return NULL;
	}
	for (uint64_t at = job->from_bytes + job->first * job->block_bytes; at < job->end_bytes;
	     at += step)
		job->errors += one_block(job, data, at);
	free(data);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	struct job jobs[THREADS_MAX];
	unsigned int count;
	int errors = 0;
	bool write;
	int fd;

	if (argc != 8 || atoi(argv[6]) < 1 || atoi(argv[6]) > THREADS_MAX) {
		fprintf(stderr,
			"usage: direct_io write|verify DEV FROM_KIB LEN_KIB BLOCK_BYTES "
			"THREADS(1-%d) SEED\n",
			THREADS_MAX);
		return 2;
	}
	write = strcmp(argv[1], "write") == 0;
	count = (unsigned int)atoi(argv[6]);
	fd = open(argv[2], (write ? O_WRONLY : O_RDONLY) | O_DIRECT);
	if (fd < 0) {
		perror(argv[2]);
		return 1;
	}
	for (unsigned int i = 0; i < count; i++) {
		uint64_t from_bytes = strtoull(argv[3], NULL, 10) << 10;

		jobs[i] = (struct job){
			.fd = fd,
			.write = write,
			.from_bytes = from_bytes,
			.end_bytes = from_bytes + (strtoull(argv[4], NULL, 10) << 10),
			.block_bytes = strtoull(argv[5], NULL, 10),
			.seed = strtoull(argv[7], NULL, 10),
			.first = i,
			.threads = count,
		};
		if (pthread_create(&threads[i], NULL, run, &jobs[i])) {
			perror("pthread_create");
			return 1;
		}
	}
	for (unsigned int i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		errors += jobs[i].errors;
	}
	if (write && fsync(fd)) {
		perror("fsync");
		errors++;
	}
	return errors ? 1 : 0;
}
