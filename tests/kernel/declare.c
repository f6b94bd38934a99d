// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program with declared real-time tasks: does what its arguments say, in their order.
 * Arguments:
 *
 *	line=TEXT	writes TEXT to /dev/k2, prints "ok" or the error's name.
 *	nul		writes a NUL.
 *	show		prints what is read from /dev/k2.
 *	poll		prints "changed" if a count has, else "unchanged".
 *	fork		goes on in a child that has the file, too; this process ends.
 *	level=N		real-time of this level from now on.
 *	threads=N	reads are made by N threads in turn from now on.
 *	read=DEV,KIB,COUNT,PERIOD_US
 *			reads at random places, one per period; prints "max_ns N"
 *	write=...	the same with writes, durable ones.
 *	uring=...	the same with reads that a worker of io_uring makes.
 *	sleep=MS
 *	exec COMMAND [ARG]...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <linux/ioprio.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 128
#define NS_PER_S    1000000000ULL
/* Before the first I/O: all threads are there. */
#define BEGIN_NS 10000000ULL

static int tasks;
static unsigned int level, threads = 1;

static void die(const char *what)
{
	fprintf(stderr, "declare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void wait_until(uint64_t at_ns)
{
	struct timespec at = {(time_t)(at_ns / NS_PER_S), (long)(at_ns % NS_PER_S)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void write_line(const char *text, size_t length)
{
	if (write(tasks, text, length) == (ssize_t)length)
		puts("ok");
	else
		puts(strerrorname_np(errno));
}

static void show(void)
{
	char text[8192];
	ssize_t length = pread(tasks, text, sizeof(text) - 1, 0);

	if (length < 0)
		die("read");
	text[length] = '\0';
	fputs(text, stdout);
}

static void look(void)
{
	struct pollfd entry = {.fd = tasks, .events = POLLPRI};

	if (poll(&entry, 1, 0) < 0)
		die("poll");
	puts(entry.revents & POLLPRI ? "changed" : "unchanged");
}

static void go_on_in_child(void)
{
	pid_t parent = getpid(), child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		die("fork");
	if (child)
		_exit(0);
	while (getppid() == parent)
		wait_until(now_ns() + 1000000);
}

enum how {
	BY_READ,
	BY_WRITE,
	BY_URING
};

struct load {
	int fd;
	enum how how;
	size_t bytes;
	uint64_t count, period_ns, begin_ns, device_bytes, max_ns;
	char *data;
};

struct worker {
	struct load *load;
	unsigned int number;
	uint64_t max_ns;
};

/* A ring with one entry. */
static struct {
	int fd; /* 0: there is none */
	struct io_uring_params params;
	char *words;
	struct io_uring_sqe *sqe;
} ring;

static uint32_t *ring_word(uint32_t offset)
{
	return (uint32_t *)(ring.words + offset);
}

static void open_ring(void)
{
	ring.fd = (int)syscall(SYS_io_uring_setup, 1, &ring.params);
	if (ring.fd < 0)
		die("io_uring_setup");
	ring.words =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	ring.sqe = mmap(NULL, sizeof(*ring.sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
			IORING_OFF_SQES);
	if (ring.words == MAP_FAILED || ring.sqe == MAP_FAILED)
		die("mmap of the ring");
}

static ssize_t read_by_worker(const struct load *load, uint64_t place)
{
	uint32_t *head = ring_word(ring.params.cq_off.head), entries = ring.params.cq_entries;
	struct io_uring_cqe *cqes;

	*ring.sqe = (struct io_uring_sqe){
		.opcode = IORING_OP_READ,
		.flags = IOSQE_ASYNC,
		.fd = load->fd,
		.addr = (uintptr_t)load->data,
		.len = (uint32_t)load->bytes,
		.off = place,
		.ioprio = (uint16_t)IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, level),
	};
	__atomic_fetch_add(ring_word(ring.params.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		die("io_uring_enter");
	cqes = (struct io_uring_cqe *)(ring.words + ring.params.cq_off.cqes);
	return cqes[__atomic_fetch_add(head, 1, __ATOMIC_ACQ_REL) % entries].res;
}

static ssize_t move(const struct load *load, uint64_t place)
{
	switch (load->how) {
	case BY_READ:
		return pread(load->fd, load->data, load->bytes, (off_t)place);
	case BY_WRITE:
		return pwrite(load->fd, load->data, load->bytes, (off_t)place);
	default:
		return read_by_worker(load, place);
	}
}

static void one_io(struct worker *worker, uint64_t number)
{
	struct load *load = worker->load;
	uint64_t place = number * 7919 % (load->device_bytes / load->bytes) * load->bytes;
	uint64_t begin_ns = now_ns(), took_ns;
	ssize_t done = move(load, place);

	if (done != (ssize_t)load->bytes)
		die("I/O");
	took_ns = now_ns() - begin_ns;
	if (took_ns > worker->max_ns)
		worker->max_ns = took_ns;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct load *load = worker->load;

	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
		    IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, level)))
		die("ioprio_set");
	for (uint64_t i = worker->number; i < load->count; i += threads) {
		wait_until(load->begin_ns + i * load->period_ns);
		one_io(worker, i);
	}
	return NULL;
}

static void run(enum how how, const char *text)
{
	struct load load = {.how = how};
	struct worker workers[THREADS_MAX];
	pthread_t ids[THREADS_MAX];
	char device[64];
	uint64_t kib, period_us, max_ns = 0;

	if (sscanf(text, "%63[^,],%" SCNu64 ",%" SCNu64 ",%" SCNu64, device, &kib, &load.count,
		   &period_us) != 4)
		die(text);
	load.bytes = kib * 1024;
	load.period_ns = period_us * 1000;
	load.fd = open(device, O_DIRECT | (how == BY_WRITE ? O_WRONLY | O_DSYNC : O_RDONLY));
	if (load.fd < 0 || posix_memalign((void **)&load.data, 4096, load.bytes))
		die(device);
	memset(load.data, 0x5a, load.bytes);
	load.device_bytes = (uint64_t)lseek(load.fd, 0, SEEK_END);
	if (how == BY_URING && !ring.fd)
		open_ring();
	load.begin_ns = now_ns() + BEGIN_NS;
	for (unsigned int i = 0; i < threads; i++) {
		workers[i] = (struct worker){.load = &load, .number = i};
		if (pthread_create(&ids[i], NULL, work, &workers[i]))
			die("pthread_create");
	}
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		if (workers[i].max_ns > max_ns)
			max_ns = workers[i].max_ns;
	}
	printf("max_ns %" PRIu64 "\n", max_ns);
	free(load.data);
	close(load.fd);
}

static bool begins(const char *argument, const char *key, const char **value)
{
	size_t length = strlen(key);

	*value = argument + length;
	return !strncmp(argument, key, length);
}

static void act(const char *argument)
{
	const char *value;

	if (begins(argument, "line=", &value))
		write_line(value, strlen(value));
	else if (begins(argument, "level=", &value))
		level = (unsigned int)atoi(value);
	else if (begins(argument, "threads=", &value))
		threads = (unsigned int)atoi(value) % THREADS_MAX;
	else if (begins(argument, "sleep=", &value))
		wait_until(now_ns() + strtoull(value, NULL, 10) * 1000000);
	else if (begins(argument, "read=", &value))
		run(BY_READ, value);
	else if (begins(argument, "write=", &value))
		run(BY_WRITE, value);
	else if (begins(argument, "uring=", &value))
		run(BY_URING, value);
	else if (!strcmp(argument, "nul"))
		write_line("", 1);
	else if (!strcmp(argument, "show"))
		show();
	else if (!strcmp(argument, "poll"))
		look();
	else if (!strcmp(argument, "fork"))
		go_on_in_child();
	else
		die(argument);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	tasks = open("/dev/k2", O_RDWR);
	if (tasks < 0)
		die("/dev/k2");
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "exec")) {
			execvp(argv[i + 1], argv + i + 1);
			die(argv[i + 1]);
		}
		act(argv[i]);
	}
	return 0;
}
