// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Direct I/O by a chosen interface, with flags of its own: one_io sync|aio|uring read|write DEV
 * OFFSET_BYTES LENGTH_BYTES [KEY=VALUE]... with the keys
 *
 *	ioprio=CLASS:LEVEL	of this I/O, not of the process (aio, uring)
 *	nowait=1		RWF_NOWAIT
 *	poll=1			completion is polled for (uring)
 *	count=N			as many at once, one behind the other on the device (aio, uring)
 *
 * Prints one line per I/O, "result N": bytes, or a negative errno. Writes consist of 0x5a.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/ioprio.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define COUNT_MAX 64

static struct request {
	bool write, nowait, poll;
	int fd, ioprio; /* -1: the process's */
	off_t offset;
	size_t length;
	unsigned int count;
	char *data;
} request = {.ioprio = -1, .count = 1};

static void die(const char *what)
{
	fprintf(stderr, "one_io: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int rw_flags(void)
{
	return request.nowait ? RWF_NOWAIT : 0;
}

static void print(long result)
{
	printf("result %ld\n", result);
}

static void by_sync(void)
{
	struct iovec part = {request.data, request.length};
	ssize_t size = request.write ? pwritev2(request.fd, &part, 1, request.offset, rw_flags())
				     : preadv2(request.fd, &part, 1, request.offset, rw_flags());

	print(size < 0 ? -errno : size);
}

static void by_aio(void)
{
	struct iocb iocbs[COUNT_MAX], *list[COUNT_MAX];
	struct io_event events[COUNT_MAX];
	aio_context_t context = 0;
	long taken;

	for (unsigned int i = 0; i < request.count; i++) {
		iocbs[i] = (struct iocb){
			.aio_lio_opcode = request.write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
			.aio_fildes = (uint32_t)request.fd,
			.aio_buf = (uintptr_t)request.data + i * request.length,
			.aio_nbytes = request.length,
			.aio_offset = request.offset + (off_t)(i * request.length),
			.aio_rw_flags = rw_flags(),
		};
		if (request.ioprio >= 0) {
			iocbs[i].aio_flags = IOCB_FLAG_IOPRIO;
			iocbs[i].aio_reqprio = (int16_t)request.ioprio;
		}
		list[i] = &iocbs[i];
	}
	if (syscall(SYS_io_setup, COUNT_MAX, &context))
		die("io_setup");
	taken = syscall(SYS_io_submit, context, request.count, list);
	if (taken < 0) {
		print(-errno);
		return;
	}
	if (syscall(SYS_io_getevents, context, taken, taken, events, NULL) != taken)
		die("io_getevents");
	for (long i = 0; i < taken; i++)
		print(events[i].res);
}

/* The ring's memory as the kernel lays it out; one mapping for both rings. */
struct ring {
	int fd;
	char *rings;
	struct io_uring_sqe *sqes;
	struct io_uring_params params;
};

static uint32_t *ring_word(const struct ring *ring, uint32_t offset)
{
	return (uint32_t *)(ring->rings + offset);
}

static void ring_open(struct ring *ring)
{
	size_t sq_bytes, cq_bytes;

	memset(ring, 0, sizeof(*ring));
	ring->params.flags = request.poll ? IORING_SETUP_IOPOLL : 0;
	ring->fd = (int)syscall(SYS_io_uring_setup, COUNT_MAX, &ring->params);
	if (ring->fd < 0)
		die("io_uring_setup");
	sq_bytes = ring->params.sq_off.array + COUNT_MAX * sizeof(uint32_t);
	cq_bytes = ring->params.cq_off.cqes + ring->params.cq_entries * sizeof(struct io_uring_cqe);
	ring->rings = mmap(NULL, sq_bytes > cq_bytes ? sq_bytes : cq_bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQ_RING);
	ring->sqes = mmap(NULL, COUNT_MAX * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
	if (ring->rings == MAP_FAILED || ring->sqes == MAP_FAILED)
		die("mmap of the rings");
}

static void by_uring(void)
{
	struct io_uring_cqe *cqes;
	struct ring ring;
	uint32_t *tail;

	ring_open(&ring);
	for (unsigned int i = 0; i < request.count; i++) {
		ring.sqes[i] = (struct io_uring_sqe){
			.opcode = request.write ? IORING_OP_WRITE : IORING_OP_READ,
			.fd = request.fd,
			.addr = (uintptr_t)request.data + i * request.length,
			.len = (uint32_t)request.length,
			.off = (uint64_t)request.offset + i * request.length,
			.rw_flags = rw_flags(),
			.ioprio = (uint16_t)(request.ioprio < 0 ? 0 : request.ioprio),
		};
		ring_word(&ring, ring.params.sq_off.array)[i] = i;
	}
	__atomic_store_n(ring_word(&ring, ring.params.sq_off.tail), request.count,
			 __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring.fd, request.count, 0, 0, NULL, 0) !=
	    (long)request.count)
		die("io_uring_enter");
	/*
	 * One poll at a time, with a pause between them: while a task spins, virtual time stands
	 * still, and no other task makes progress.
	 */
	tail = ring_word(&ring, ring.params.cq_off.tail);
	while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) < request.count) {
		if (syscall(SYS_io_uring_enter, ring.fd, 0, request.poll ? 0 : request.count,
			    IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			die("io_uring_enter");
		if (request.poll)
			usleep(10);
	}
	cqes = (struct io_uring_cqe *)(ring.rings + ring.params.cq_off.cqes);
	for (unsigned int i = 0; i < request.count; i++)
		print(cqes[i].res);
}

static bool set(const char *key)
{
	unsigned int class, level;

	if (sscanf(key, "ioprio=%u:%u", &class, &level) == 2 && class <= 3 && level <= 7)
		request.ioprio = (int)IOPRIO_PRIO_VALUE(class, level);
	else if (sscanf(key, "count=%u", &request.count) == 1)
		return request.count >= 1 && request.count <= COUNT_MAX;
	else if (!strcmp(key, "nowait=1"))
		request.nowait = true;
	else if (!strcmp(key, "poll=1"))
		request.poll = true;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} engines[] = {{"sync", by_sync}, {"aio", by_aio}, {"uring", by_uring}};

	if (argc < 6) {
		fprintf(stderr, "usage: one_io sync|aio|uring read|write DEV OFFSET_BYTES "
				"LENGTH_BYTES [ioprio=CLASS:LEVEL] [nowait=1] [poll=1] "
				"[count=N]\n");
		return 2;
	}
	for (int i = 6; i < argc; i++) {
		if (!set(argv[i])) {
			fprintf(stderr, "one_io: %s: unknown key or value\n", argv[i]);
			return 2;
		}
	}
	request.write = !strcmp(argv[2], "write");
	request.offset = (off_t)strtoull(argv[4], NULL, 10);
	request.length = strtoull(argv[5], NULL, 10);
	request.fd = open(argv[3], O_RDWR | O_DIRECT);
	if (request.fd < 0)
		die(argv[3]);
	if (posix_memalign((void **)&request.data, 4096, request.length * request.count))
		die("memory");
	memset(request.data, 0x5a, request.length * request.count);
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		if (!strcmp(argv[1], engines[i].name)) {
			engines[i].run();
			return 0;
		}
	}
	fprintf(stderr, "one_io: %s: must be sync, aio or uring\n", argv[1]);
	return 2;
}
