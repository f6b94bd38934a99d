// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A stream of random direct I/O that checks the data it reads: io_stream DEV KEY=VALUE...
 *
 * Several processes, each in a region of its own, keep several I/Os in flight: reads and writes of
 * random sizes at random places or next to the one before, as one vector or cut into two. They come
 * in batches, so that neighbours meet in the plug list and in the scheduler. Each block of
 * block_bytes carries its place, the number of its write, and a crc32c. Each block read is compared
 * with the process's own record. I/Os in flight never overlap.
 *
 * The device must read as zeroes where it was never written. All decisions come from `seed`: the
 * same seed gives the same stream. With `marks` each I/O is announced in the kernel's trace
 * before it is submitted:
 *
 *	stream R|W SECTOR + SECTORS ioprio CLASS LEVEL process PID
 *
 * Exit status 0: all data was right; 1: wrong data, or an error that `errors` does not allow.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/ioprio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stamp.h"

#define DEPTH_MAX 128
#define PAGE	  4096

enum errors {
	ERRORS_FAIL, /* an I/O error fails the run */
	ERRORS_COUNT, /* it is counted; what a failed write left is old or new */
	ERRORS_STOP, /* as before, and the process ends: its device is gone */
};

static struct options {
	uint64_t seed, jobs, depth, ios, block_bytes, largest_kib, region_kib, write_percent;
	uint64_t rt_jobs, hint_percent, sync_percent, nowait_percent, sequential_percent;
	uint64_t errors, marks;
} options = {
	.seed = 1,
	.jobs = 2,
	.depth = 8,
	.ios = 200,
	.block_bytes = 512,
	.largest_kib = 512,
	.region_kib = 4096,
	.write_percent = 50,
	.sequential_percent = 50,
};

static const struct key {
	const char *name;
	uint64_t *value, first, last;
} keys[] = {
	{"seed", &options.seed, 0, UINT32_MAX},
	{"jobs", &options.jobs, 1, 64},
	{"depth", &options.depth, 1, DEPTH_MAX},
	{"ios", &options.ios, 1, 1000000}, /* of each process */
	{"block_bytes", &options.block_bytes, 512, 4096},
	{"largest_kib", &options.largest_kib, 1, 4096},
	{"region_kib", &options.region_kib, 1, 1U << 20}, /* of each process */
	{"write_percent", &options.write_percent, 0, 100},
	{"sequential_percent", &options.sequential_percent, 0, 100},
	{"rt_jobs", &options.rt_jobs, 0, 64}, /* of jobs, with a real-time ioprio */
	{"hint_percent", &options.hint_percent, 0, 100}, /* have an ioprio of their own */
	{"sync_percent", &options.sync_percent, 0, 100}, /* of the writes, RWF_DSYNC */
	{"nowait_percent", &options.nowait_percent, 0, 100},
	{"errors", &options.errors, ERRORS_FAIL, ERRORS_STOP}, /* 0, 1, 2: enum errors */
	{"marks", &options.marks, 0, 1},
};

struct io {
	bool in_flight;
	struct iocb iocb;
	struct iovec parts[2];
	char *memory; /* one page more than the largest I/O */
	char *data; /* of it, where this I/O begins */
	uint32_t first, blocks, write_number; /* 0: a read */
};

struct job {
	const char *device;
	unsigned int number;
	int fd, marks;
	aio_context_t aio;
	uint64_t random;
	uint64_t region_first; /* block */
	uint32_t region_blocks;
	uint16_t ioprio;
	/* Per block: a block holds a write from [oldest, newest]; 0 is what was there before. */
	uint32_t *oldest, *newest;
	bool *busy;
	uint32_t next; /* the block behind the I/O before */
	uint32_t writes;
	struct io ios[DEPTH_MAX];
	unsigned int in_flight;
	uint64_t done, failed, refused;
	bool wrong;
};

/* xorshift64*, Vigna 2016. */
static uint32_t random_below(struct job *job, uint32_t bound)
{
	job->random ^= job->random >> 12;
	job->random ^= job->random << 25;
	job->random ^= job->random >> 27;
	return (uint32_t)((job->random * 0x2545f4914f6cdd1dULL) >> 33) % bound;
}

static bool chance(struct job *job, uint64_t percent)
{
	return random_below(job, 100) < percent;
}

static void fill(const struct job *job, const struct io *io)
{
	for (uint32_t i = 0; i < io->blocks; i++) {
		struct stamp stamp = {
			.block = job->region_first + io->first + i,
			.write_number = io->write_number,
			.job = job->number,
		};

		stamp_put(io->data + i * options.block_bytes, options.block_bytes, &stamp);
	}
}

static const char *what_is_wrong(const struct job *job, const char *block, uint32_t number)
{
	const struct stamp *stamp = (const struct stamp *)block;

	if (job->newest[number] == 0 || (job->oldest[number] == 0 && stamp->write_number == 0)) {
		for (size_t i = 0; i < options.block_bytes; i++)
			if (block[i])
				return "data where nothing was written";
		return NULL;
	}
	if (!stamp_is_intact(block, options.block_bytes))
		return "wrong crc32c";
	if (stamp->block != job->region_first + number || stamp->job != job->number)
		return "data of another place";
	if (stamp->write_number < job->oldest[number])
		return "old data";
	if (stamp->write_number > job->newest[number])
		return "data not yet written";
	return NULL;
}

static void check(struct job *job, const struct io *io)
{
	for (uint32_t i = 0; i < io->blocks && !job->wrong; i++) {
		char *block = io->data + i * options.block_bytes;
		const char *wrong = what_is_wrong(job, block, io->first + i);
		const struct stamp *stamp = (const struct stamp *)block;

		if (!wrong)
			continue;
		printf("io_stream: %s: seed %" PRIu64 " process %u: byte %" PRIu64
		       ": %s (block %" PRIu64 " write %u; expected block %" PRIu64
		       " write %u..%u)\n",
		       job->device, options.seed, job->number,
		       (job->region_first + io->first + i) * options.block_bytes, wrong,
		       stamp->block, stamp->write_number, job->region_first + io->first + i,
		       job->oldest[io->first + i], job->newest[io->first + i]);
		job->wrong = true;
	}
}

static void finish(struct job *job, struct io *io, int64_t result)
{
	bool whole = result == (int64_t)(io->blocks * options.block_bytes);

	io->in_flight = false;
	job->in_flight--;
	job->done++;
	for (uint32_t i = io->first; i < io->first + io->blocks; i++) {
		job->busy[i] = false;
		if (io->write_number)
			job->newest[i] = io->write_number;
		if (io->write_number && whole)
			job->oldest[i] = io->write_number;
	}
	if (whole) {
		if (!io->write_number)
			check(job, io);
	} else if (result == -EAGAIN && io->iocb.aio_rw_flags & RWF_NOWAIT) {
		job->refused++;
	} else if (job->failed++, options.errors == ERRORS_FAIL) {
		printf("io_stream: %s: seed %" PRIu64 " process %u: block %" PRIu64
		       " + %u: result %" PRId64 "\n",
		       job->device, options.seed, job->number, job->region_first + io->first,
		       io->blocks, result);
		job->wrong = true;
	}
}

static void reap(struct job *job, unsigned int at_least)
{
	struct io_event events[DEPTH_MAX];
	long count;

	do
		count = syscall(SYS_io_getevents, job->aio, at_least, DEPTH_MAX, events, NULL);
	while (count < 0 && errno == EINTR);
	if (count < 0) {
		perror("io_getevents");
		exit(1);
	}
	for (long i = 0; i < count; i++)
		finish(job, (struct io *)(uintptr_t)events[i].data, events[i].res);
}

static uint32_t random_blocks(struct job *job)
{
	uint32_t largest = (uint32_t)(options.largest_kib * 1024 / options.block_bytes);
	uint32_t blocks;

	switch (random_below(job, 8)) {
	case 0:
	case 1:
		blocks = 1 + random_below(job, 8);
		break;
	case 2: /* around a power of two */
		blocks = (1U << random_below(job, 11)) + random_below(job, 3) - 1;
		break;
	case 3:
	case 4:
		blocks = (uint32_t)(4096 / options.block_bytes) << random_below(job, 5);
		break;
	default:
		blocks = 1 + random_below(job, largest);
	}
	if (blocks == 0)
		blocks = 1;
	if (blocks > largest)
		blocks = largest;
	return blocks < job->region_blocks ? blocks : job->region_blocks;
}

static bool is_free(const struct job *job, uint32_t first, uint32_t blocks)
{
	for (uint32_t i = first; i < first + blocks; i++)
		if (job->busy[i])
			return false;
	return true;
}

/* A place for the next I/O that no I/O in flight touches; false: none found quickly. */
static bool choose_place(struct job *job, struct io *io)
{
	io->blocks = random_blocks(job);
	io->first = job->next;
	if (!chance(job, options.sequential_percent) || io->first + io->blocks > job->region_blocks)
		io->first = random_below(job, job->region_blocks - io->blocks + 1);
	for (int attempt = 0; attempt < 8; attempt++) {
		if (is_free(job, io->first, io->blocks))
			return true;
		io->blocks = 1 + io->blocks / 4;
		io->first = random_below(job, job->region_blocks - io->blocks + 1);
	}
	return false;
}

static uint16_t random_ioprio(struct job *job)
{
	int class = 1 + (int)random_below(job, 3);

	return (uint16_t)IOPRIO_PRIO_VALUE(class, random_below(job, 8));
}

/*
 * The memory begins at any block of a page, and may be cut in two behind any. (Not finer than
 * blocks: null_blk writes past its pages then.)
 */
static void choose_memory(struct job *job, struct io *io)
{
	size_t bytes = io->blocks * options.block_bytes, first = bytes;

	io->data = io->memory +
		   random_below(job, PAGE / (uint32_t)options.block_bytes) * options.block_bytes;
	if (io->blocks > 1 && chance(job, 50))
		first = (1 + random_below(job, io->blocks - 1)) * options.block_bytes;
	io->parts[0] = (struct iovec){io->data, first};
	io->parts[1] = (struct iovec){io->data + first, bytes - first};
}

static void announce(const struct job *job, const struct io *io, uint16_t ioprio)
{
	if (!options.marks)
		return;
	dprintf(job->marks, "stream %c %" PRIu64 " + %" PRIu64 " ioprio %d %d process %d\n",
		io->write_number ? 'W' : 'R',
		(job->region_first + io->first) * options.block_bytes / 512,
		io->blocks * options.block_bytes / 512, ioprio >> IOPRIO_CLASS_SHIFT, ioprio & 7,
		(int)getpid());
}

static void prepare(struct job *job, struct io *io)
{
	bool write = chance(job, options.write_percent);
	uint64_t offset = (job->region_first + io->first) * options.block_bytes;
	uint16_t ioprio = job->ioprio;

	choose_memory(job, io);
	io->write_number = write ? ++job->writes : 0;
	io->iocb = (struct iocb){
		.aio_data = (uintptr_t)io,
		.aio_lio_opcode = write ? IOCB_CMD_PWRITEV : IOCB_CMD_PREADV,
		.aio_fildes = (uint32_t)job->fd,
		.aio_buf = (uintptr_t)io->parts,
		.aio_nbytes = io->parts[1].iov_len ? 2 : 1,
		.aio_offset = (int64_t)offset,
	};
	if (write && chance(job, options.sync_percent))
		io->iocb.aio_rw_flags |= RWF_DSYNC;
	if (chance(job, options.nowait_percent))
		io->iocb.aio_rw_flags |= RWF_NOWAIT;
	if (chance(job, options.hint_percent)) {
		ioprio = random_ioprio(job);
		io->iocb.aio_flags = IOCB_FLAG_IOPRIO;
		io->iocb.aio_reqprio = (int16_t)ioprio;
	}
	if (write)
		fill(job, io);
	for (uint32_t i = io->first; i < io->first + io->blocks; i++)
		job->busy[i] = true;
	job->next = io->first + io->blocks;
	io->in_flight = true;
	job->in_flight++;
	announce(job, io, ioprio);
}

/* What io_submit() rejects has failed, as if by its completion. */
static void submit(struct job *job, struct iocb **batch, long count)
{
	long taken;

	while (count) {
		taken = syscall(SYS_io_submit, job->aio, count, batch);
		if (taken <= 0) {
			finish(job, (struct io *)(uintptr_t)batch[0]->aio_data, -errno);
			taken = 1;
		}
		batch += taken;
		count -= taken;
	}
}

static void run_batch(struct job *job)
{
	struct iocb *batch[DEPTH_MAX];
	long wanted = 1 + (long)random_below(job, (uint32_t)options.depth);
	long count = 0;

	for (unsigned int slot = 0; slot < options.depth && count < wanted; slot++) {
		struct io *io = &job->ios[slot];

		if (io->in_flight || !choose_place(job, io))
			continue;
		prepare(job, io);
		batch[count++] = &io->iocb;
	}
	submit(job, batch, count);
	if (job->in_flight)
		reap(job, 1 + random_below(job, job->in_flight));
}

/* At the end: all of the region, in large reads. */
static void read_all(struct job *job)
{
	struct io *io = &job->ios[0];
	uint32_t largest = (uint32_t)(options.largest_kib * 1024 / options.block_bytes);

	for (uint32_t first = 0; first < job->region_blocks; first += io->blocks) {
		ssize_t size;

		io->first = first;
		io->blocks = job->region_blocks - first < largest ? job->region_blocks - first
								  : largest;
		io->write_number = 0;
		announce(job, io, job->ioprio);
		size = pread(job->fd, io->memory, io->blocks * options.block_bytes,
			     (off_t)((job->region_first + first) * options.block_bytes));
		io->data = io->memory;
		if (size == (ssize_t)(io->blocks * options.block_bytes))
			check(job, io);
		else if (options.errors == ERRORS_FAIL)
			job->wrong = true;
	}
}

static void *allocate(size_t bytes)
{
	void *memory = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);

	if (!memory) {
		fprintf(stderr, "io_stream: out of memory\n");
		exit(1);
	}
	return memset(memory, 0, bytes);
}

static void become(struct job *job)
{
	static const int others[] = {IOPRIO_CLASS_NONE, IOPRIO_CLASS_BE, IOPRIO_CLASS_IDLE};
	bool rt = job->number < options.rt_jobs;
	int class = rt ? IOPRIO_CLASS_RT : others[job->number % 3];
	int level = rt ? (int)random_below(job, 8) : 0;

	job->ioprio = (uint16_t)IOPRIO_PRIO_VALUE(class, level);
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, job->ioprio)) {
		perror("ioprio_set");
		exit(1);
	}
}

/* In a process of its own. Returns the exit status. */
static int run(struct job *job)
{
	uint64_t region_bytes = options.region_kib * 1024;
	off_t device_bytes;

	job->random = (options.seed + 1) * 0x9e3779b97f4a7c15ULL + job->number;
	job->fd = open(job->device, O_RDWR | O_DIRECT);
	job->marks = options.marks ? open("/sys/kernel/tracing/trace_marker", O_WRONLY) : -1;
	if (job->fd < 0 || (options.marks && job->marks < 0)) {
		perror(job->device);
		return 1;
	}
	device_bytes = lseek(job->fd, 0, SEEK_END);
	if (device_bytes < (off_t)((job->number + 1) * region_bytes)) {
		fprintf(stderr, "io_stream: %s is smaller than jobs x region_kib\n", job->device);
		return 1;
	}
	job->region_first = job->number * region_bytes / options.block_bytes;
	job->region_blocks = (uint32_t)(region_bytes / options.block_bytes);
	job->oldest = allocate(job->region_blocks * sizeof(*job->oldest));
	job->newest = allocate(job->region_blocks * sizeof(*job->newest));
	job->busy = allocate(job->region_blocks * sizeof(*job->busy));
	for (unsigned int slot = 0; slot < options.depth; slot++)
		job->ios[slot].memory = allocate(options.largest_kib * 1024 + PAGE);
	if (syscall(SYS_io_setup, DEPTH_MAX, &job->aio)) {
		perror("io_setup");
		return 1;
	}
	become(job);
	while (job->done < options.ios && !job->wrong &&
	       !(job->failed && options.errors == ERRORS_STOP))
		run_batch(job);
	while (job->in_flight)
		reap(job, job->in_flight);
	if (options.errors != ERRORS_STOP && !job->wrong)
		read_all(job);
	printf("io_stream: process %u ioprio %d/%d: done %" PRIu64 " failed %" PRIu64
	       " refused %" PRIu64 "\n",
	       job->number, job->ioprio >> IOPRIO_CLASS_SHIFT, job->ioprio & 7, job->done,
	       job->failed, job->refused);
	return job->wrong ? 1 : 0;
}

static bool set_option(const char *text)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t length = strlen(keys[i].name);
		char *end;

		if (strncmp(text, keys[i].name, length) != 0 || text[length] != '=')
			continue;
		*keys[i].value = strtoull(text + length + 1, &end, 10);
		if (*end == 0 && end != text + length + 1 && *keys[i].value >= keys[i].first &&
		    *keys[i].value <= keys[i].last)
			return true;
		fprintf(stderr, "io_stream: %s: must be a number in %" PRIu64 "..%" PRIu64 "\n",
			text, keys[i].first, keys[i].last);
		return false;
	}
	fprintf(stderr, "io_stream: %s: unknown key; must be one of:", text);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		fprintf(stderr, " %s", keys[i].name);
	fprintf(stderr, "\n");
	return false;
}

int main(int argc, char **argv)
{
	static struct job job;
	int status, failed = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: io_stream DEV [KEY=VALUE]...\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		if (!set_option(argv[i]))
			return 2;
	job.device = argv[1];
	for (job.number = 0; job.number < options.jobs; job.number++) {
		pid_t child = fork();

		if (child < 0) {
			perror("fork");
			return 1;
		}
		if (child == 0)
			exit(run(&job));
	}
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}
