// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random transfers that check all data: chardisk_stress DEV KEY=VALUE... with the keys
 *
 *	seed=N transfers=N	of all threads together [1, 2000].
 *	threads=N	each in its own part of the device [4].
 *	region_kib=N	length of such a part [1024].
 *	errors=1	a transfer may fail with EIO; a failed write leaves old or new data.
 *	removals=1	the device may go away (ENODEV), and comes back.
 *	memory=PATH	transfers use this memory, in steps of 6 MiB.
 *
 * A transfer is a read, write, discard or fsync of random size (to 256 KiB, now and then more than
 * a chunk), place, place in memory, priority and kind: pread, preadv, the ioctl, a registered
 * buffer. Each block of 512 bytes carries its place, the number of its write, and a crc32c. Memory
 * around a read's must stay as it was. All decisions come from seed. Prints "transfers N errors N
 * removals N"; exit status 1 if data were wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "chardisk.h"
#include "stamp.h"

#define BLOCK	    512
#define THREADS_MAX 32
#define MEMORY	    (6U << 20) /* larger than a chunk, with space around a transfer */
#define GUARD	    0xc3

static struct {
	uint64_t seed, transfers, threads, region_kib, errors, removals;
	const char *memory;
} options = {.seed = 1, .transfers = 2000, .threads = 4, .region_kib = 1024};

/* What a block may contain: one write, or in doubt the last one that ended or any after it. */
struct block {
	uint32_t ended, begun;
	bool known; /* not before its first write, nor after a discard */
};

struct thread {
	pthread_t thread;
	uint32_t number;
	uint64_t random;
	int fd;
	int buffer; /* -1: none */
	bool discards; /* the card can; otherwise a discard is refused */
	char *memory;
	struct block *blocks;
	uint32_t block_count;
	uint32_t writes;
};

struct transfer {
	bool write;
	uint32_t first, count; /* blocks of the thread's part */
	uint32_t memory; /* where in thread->memory */
};

static const char *device;
static uint64_t done, errors, removals;
static volatile bool failed;

static uint64_t draw(struct thread *thread, uint64_t below)
{
	thread->random = thread->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (thread->random >> 33) % below;
}

static void wrong(const struct thread *thread, uint64_t block, const char *what)
{
	printf("thread %u block %" PRIu64 ": %s\n", thread->number, block, what);
	failed = true;
}

static void wrong_write(const struct thread *thread, uint32_t block, uint64_t found)
{
	const struct block *known = &thread->blocks[block];

	printf("thread %u block %u: data of write %" PRIu64 ", not of %u to %u\n", thread->number,
	       block, found, known->ended, known->begun);
	failed = true;
}

static void open_device(struct thread *thread)
{
	struct chardisk_register buffer = {.address = (uintptr_t)thread->memory, .bytes = MEMORY};
	struct chardisk_info info = {0};

	while ((thread->fd = open(device, O_RDWR)) < 0)
		usleep(10000);
	thread->buffer = ioctl(thread->fd, CHARDISK_IOC_REGISTER, &buffer) ? -1
									   : (int)buffer.buffer;
	if (!ioctl(thread->fd, CHARDISK_IOC_INFO, &info))
		thread->discards = info.capabilities & CHARDISK_CAN_DISCARD;
}

static uint64_t offset_of(const struct thread *thread, uint32_t block)
{
	return (uint64_t)thread->number * options.region_kib * 1024 + (uint64_t)block * BLOCK;
}

static void stamp_all(struct thread *thread, const struct transfer *transfer)
{
	uint32_t i;

	thread->writes++;
	for (i = 0; i < transfer->count; i++) {
		struct stamp stamp = {.block = transfer->first + i,
				      .write_number = thread->writes,
				      .job = thread->number};

		stamp_put(thread->memory + transfer->memory + i * BLOCK, BLOCK, &stamp);
		thread->blocks[transfer->first + i].begun = thread->writes;
	}
}

/* A block that has been read. */
static void check(struct thread *thread, uint32_t block, const char *data)
{
	const struct block *known = &thread->blocks[block];
	struct stamp stamp;

	if (!known->known)
		return;
	memcpy(&stamp, data, sizeof(stamp));
	if (!stamp_is_intact(data, BLOCK))
		wrong(thread, block, "no intact block");
	else if (stamp.block != block || stamp.job != thread->number)
		wrong(thread, block, "another block's data");
	else if (stamp.write_number < known->ended || stamp.write_number > known->begun)
		wrong_write(thread, block, stamp.write_number);
}

static ssize_t by_vector(struct thread *thread, const struct transfer *transfer)
{
	char *data = thread->memory + transfer->memory;
	size_t bytes = transfer->count * BLOCK, first = draw(thread, transfer->count) * BLOCK;
	struct iovec parts[] = {{data, first}, {data + first, bytes - first}};
	off_t offset = (off_t)offset_of(thread, transfer->first);

	return transfer->write ? pwritev(thread->fd, parts, 2, offset)
			       : preadv(thread->fd, parts, 2, offset);
}

/* Returns what pread(2) would. */
static ssize_t by_ioctl(struct thread *thread, const struct transfer *transfer, bool registered)
{
	struct chardisk_transfer request = {
		.offset = offset_of(thread, transfer->first),
		.bytes = transfer->count * BLOCK,
		.buffer_offset = (uintptr_t)thread->memory + transfer->memory,
		.buffer = CHARDISK_NO_BUFFER,
		.flags = transfer->write && draw(thread, 8) == 0 ? CHARDISK_DURABLE : 0,
		.op = transfer->write ? CHARDISK_WRITE : CHARDISK_READ,
		.ioprio = (uint16_t)(draw(thread, 2)
					     ? IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, draw(thread, 8))
					     : 0),
	};
	int status;

	if (registered && thread->buffer >= 0) {
		request.buffer = (uint32_t)thread->buffer;
		request.buffer_offset = transfer->memory;
	}
	status = ioctl(thread->fd, CHARDISK_IOC_TRANSFER, &request);
	return status && !request.done_bytes ? -1 : (ssize_t)request.done_bytes;
}

static ssize_t run(struct thread *thread, const struct transfer *transfer)
{
	char *data = thread->memory + transfer->memory;
	off_t offset = (off_t)offset_of(thread, transfer->first);

	switch (draw(thread, 4)) {
	case 0:
		return transfer->write ? pwrite(thread->fd, data, transfer->count * BLOCK, offset)
				       : pread(thread->fd, data, transfer->count * BLOCK, offset);
	case 1:
		return by_vector(thread, transfer);
	default:
		return by_ioctl(thread, transfer, draw(thread, 2));
	}
}

static void after_error(struct thread *thread)
{
	if (errno == EIO && options.errors) {
		__atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED);
	} else if (errno == ENODEV && options.removals) {
		__atomic_fetch_add(&removals, 1, __ATOMIC_RELAXED);
		close(thread->fd);
		open_device(thread);
	} else {
		wrong(thread, 0, strerror(errno));
	}
}

static void check_guards(struct thread *thread, const struct transfer *transfer)
{
	const char *before = thread->memory + transfer->memory - BLOCK;
	const char *behind = thread->memory + transfer->memory + transfer->count * BLOCK;
	int i;

	for (i = 0; i < BLOCK; i++)
		if ((uint8_t)before[i] != GUARD || (uint8_t)behind[i] != GUARD)
			break;
	if (i < BLOCK)
		wrong(thread, transfer->first, "memory beside it was written");
}

static void move(struct thread *thread)
{
	uint32_t largest = draw(thread, 50) ? 512 : (5U << 20) / BLOCK, i;
	struct transfer transfer = {
		.write = draw(thread, 2),
		.first = (uint32_t)draw(thread, thread->block_count),
		.memory = (uint32_t)(draw(thread, 64) + 1) * BLOCK,
	};
	char *data = thread->memory + transfer.memory;
	ssize_t size;

	transfer.count = (uint32_t)draw(thread, draw(thread, 2) ? 16 : largest) + 1;
	if (transfer.count > thread->block_count - transfer.first)
		transfer.count = thread->block_count - transfer.first;
	memset(data - BLOCK, GUARD, BLOCK);
	memset(data + transfer.count * BLOCK, GUARD, BLOCK);
	if (transfer.write)
		stamp_all(thread, &transfer);
	size = run(thread, &transfer);
	check_guards(thread, &transfer);
	if (size < 0) {
		after_error(thread);
		return;
	}
	for (i = 0; i < transfer.count && i < (size_t)size / BLOCK; i++) {
		if (transfer.write) {
			thread->blocks[transfer.first + i].ended = thread->writes;
			thread->blocks[transfer.first + i].known = true;
		} else {
			check(thread, transfer.first + i, data + i * BLOCK);
		}
	}
	if (size > (ssize_t)transfer.count * BLOCK)
		wrong(thread, transfer.first, "more was transferred than it is long");
	if (size < (ssize_t)transfer.count * BLOCK && !options.errors && !options.removals)
		wrong(thread, transfer.first, "a short transfer");
}

static void discard(struct thread *thread)
{
	uint32_t first = (uint32_t)draw(thread, thread->block_count);
	uint32_t count = (uint32_t)draw(thread, 256) + 1, i;
	struct chardisk_discard range = {.offset = offset_of(thread, first)};

	if (count > thread->block_count - first)
		count = thread->block_count - first;
	range.bytes = count * BLOCK;
	for (i = 0; i < count; i++)
		thread->blocks[first + i].known = false;
	if (ioctl(thread->fd, CHARDISK_IOC_DISCARD, &range) &&
	    (thread->discards || errno != EOPNOTSUPP))
		after_error(thread);
}

static void *stress(void *argument)
{
	struct thread *thread = argument;

	open_device(thread);
	while (!failed && __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED) < options.transfers) {
		uint64_t kind = draw(thread, 100);

		if (kind == 0)
			discard(thread);
		else if (kind == 1 && fsync(thread->fd))
			after_error(thread);
		else
			move(thread);
	}
	close(thread->fd);
	return NULL;
}

static bool set_option(char *text)
{
	static const struct {
		const char *name;
		uint64_t *value;
	} names[] = {{"seed", &options.seed},	    {"transfers", &options.transfers},
		     {"threads", &options.threads}, {"region_kib", &options.region_kib},
		     {"errors", &options.errors},   {"removals", &options.removals}};
	char *value = strchr(text, '=');

	if (strncmp(text, "memory=", 7) == 0) {
		options.memory = value + 1;
		return true;
	}
	for (size_t i = 0; value && i < sizeof(names) / sizeof(*names); i++) {
		if (strncmp(text, names[i].name, (size_t)(value - text)))
			continue;
		*names[i].value = strtoull(value + 1, NULL, 10);
		return true;
	}
	return false;
}

static void *map_memory(uint32_t number)
{
	int file;

	if (!options.memory)
		return mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	file = open(options.memory, O_RDWR);
	return mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)number * MEMORY);
}

static void start(struct thread *thread, uint32_t number)
{
	thread->number = number;
	thread->random = options.seed * 1000 + number;
	thread->block_count = (uint32_t)(options.region_kib * 1024 / BLOCK);
	thread->blocks = calloc(thread->block_count, sizeof(*thread->blocks));
	thread->memory = map_memory(number);
	if (!thread->blocks || thread->memory == MAP_FAILED ||
	    pthread_create(&thread->thread, NULL, stress, thread)) {
		perror("chardisk_stress");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct thread threads[THREADS_MAX];
	uint32_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 2; i < (uint32_t)argc; i++) {
		if (!set_option(argv[i])) {
			fprintf(stderr, "chardisk_stress: %s: no such option\n", argv[i]);
			return 2;
		}
	}
	if (argc < 2 || !options.threads || options.threads > THREADS_MAX || !options.region_kib) {
		fprintf(stderr, "usage: chardisk_stress DEV KEY=VALUE...\n");
		return 2;
	}
	device = argv[1];
	for (i = 0; i < options.threads; i++)
		start(&threads[i], i);
	for (i = 0; i < options.threads; i++)
		pthread_join(threads[i].thread, NULL);
	printf("transfers %" PRIu64 " errors %" PRIu64 " removals %" PRIu64 "\n", options.transfers,
	       errors, removals);
	return failed;
}
