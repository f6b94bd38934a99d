// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * caller FILE pread|cached|uring_fixed|uring_cmd|buffer[+udmabuf|+dax] read|write BYTES ROUNDS
 * [sequential|periodic|random [STATS|instructions|slept]]: one call after the other, ROUNDS times.
 * cached: pread() and pwrite() without O_DIRECT, which all others have; uring_fixed: io_uring with a
 * registered buffer; uring_cmd: NVMe reads through io_uring with one; buffer: the ioctl of a
 * character device with one. +udmabuf: memory that is a dma-buf too, for a camera, say; +dax: of a region
 * that is reserved at boot, /dev/dax0.0.
 *
 * periodic: sequential, one call each millisecond, with O_SYNC; after some MiB again from the
 * beginning, with nothing of it in memory.
 *
 * At random places, after as many calls to the same ones, so that the emulated card has memory for
 * them. Where an order is given, after one call, and with an fsync() after writes. Prints how long
 * that took in ns; with STATS, the emulated card's counters, also the data commands that the card was
 * sent: all, and the least and the most during a call. With `instructions`, under a clock that counts
 * them as ns, not the time in which the CPU waited; with `slept`, the same of calls during which the
 * caller slept, as many as asked for. sched_rr_get_interval(), which nothing else calls, marks begin
 * and end for step.c.
 *
 * Runs in the guests of steady_lab/figures/call_cost.py, direct_path.py and direct_stages.py, under
 * SCHED_FIFO: when the kernel's workers run then does not depend on how much CPU time they had before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/udmabuf.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "chardisk.h"
#include "uring.h"

#define FIRST_STATE	1
#define TRIES_PER_ROUND 200
#define DAX_ALIGNMENT	(2 << 20)
#define PERIOD_NS	1000000
#define PERIODIC_BYTES	(64 << 20)

static int device;
static bool is_write, is_sequential, is_periodic, has_order, only_slept;
static char *data;
static size_t bytes;
static uint64_t places, call_number;
static uint64_t state = FIRST_STATE; /* of random places */
static int stats = -1;
static volatile uint64_t *waited;
static uint64_t least = UINT64_MAX, most;

static struct uring ring;
static struct nvme_namespace space;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t next_offset(void)
{
	if (is_sequential)
		return call_number++ * bytes;
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % places * bytes;
}

static void by_pread(void)
{
	off_t offset = (off_t)next_offset();
	ssize_t size = is_write ? pwrite(device, data, bytes, offset)
				: pread(device, data, bytes, offset);

	if (size != (ssize_t)bytes)
		die("pread");
}

static void by_buffer(void)
{
	struct chardisk_transfer transfer = {
		.offset = next_offset(),
		.bytes = bytes,
		.op = is_write ? CHARDISK_WRITE : CHARDISK_READ,
	};

	if (ioctl(device, CHARDISK_IOC_TRANSFER, &transfer))
		die("transfer");
}

static void by_uring(void)
{
	int result = uring_transfer(&ring, device, is_write, data, bytes, next_offset());

	if (result != (int)bytes) {
		fprintf(stderr, "io_uring: %s\n", strerror(-result));
		exit(1);
	}
}

static void by_nvme(void)
{
	int result = nvme_read(&ring, device, &space, data, bytes, next_offset());

	if (result) {
		fprintf(stderr, "NVMe through io_uring: %d\n", result);
		exit(1);
	}
}

static void setup_buffer(void)
{
	struct chardisk_register buffer = {.address = (uintptr_t)data, .bytes = bytes};

	if (ioctl(device, CHARDISK_IOC_REGISTER, &buffer))
		die("register");
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Reads and writes that the card was sent since it is there. */
static uint64_t commands(void)
{
	char text[1024];
	ssize_t size = pread(stats, text, sizeof(text) - 1, 0);
	char *reads, *writes;

	if (size < 0)
		die("counters");
	text[size] = 0;
	reads = strstr(text, "reads ");
	writes = strstr(text, "writes ");
	if (!reads || !writes)
		die("counters");
	return strtoull(reads + 6, NULL, 10) + strtoull(writes + 7, NULL, 10);
}

/*
 * A process that counts while nothing else runs, two instructions each time: the instructions that
 * it misses in a time were executed by others. (An idle CPU would execute the kernel's idle loop.)
 */
static void count_waiting(void)
{
	struct sched_param priority = {0};
	pid_t parent = getpid();

	waited = mmap(NULL, sizeof(*waited), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (waited == MAP_FAILED)
		die("mmap");
	switch (fork()) {
	case -1:
		die("fork");
		break;
	case 0:
		if (sched_setscheduler(0, SCHED_IDLE, &priority) ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			die("counting process");
		__asm__ volatile("1: incq %0\n\tjmp 1b" : "+m"(*waited));
	}
	while (!*waited)
		usleep(100);
}

static uint64_t waited_ns(void)
{
	return waited ? 2 * *waited : 0;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

static long times_slept(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

/* Prints the median of the calls that slept, times their number. */
static void measure_sleeping(void (*call)(void), int rounds)
{
	uint64_t *costs = calloc((size_t)rounds, sizeof(*costs)), begin_ns, cost_ns;
	int i, slept = 0;
	long before;

	if (!costs)
		die("calloc");
	for (i = 0; slept < rounds; i++) {
		if (i == TRIES_PER_ROUND * rounds) {
			fprintf(stderr, "only %d of %d calls slept\n", slept, i);
			exit(1);
		}
		before = times_slept();
		begin_ns = now_ns() - waited_ns();
		call();
		cost_ns = now_ns() - waited_ns() - begin_ns;
		if (times_slept() != before)
			costs[slept++] = cost_ns;
	}
	qsort(costs, (size_t)slept, sizeof(*costs), ascending);
	printf("%" PRIu64 " 0 0 0\n", costs[slept / 2] * (uint64_t)rounds);
}

static void begin_period(void)
{
	struct timespec period = {.tv_nsec = PERIOD_NS};

	nanosleep(&period, NULL);
	if (call_number < PERIODIC_BYTES / bytes)
		return;
	call_number = 0;
	if (posix_fadvise(device, 0, 0, POSIX_FADV_DONTNEED))
		die("posix_fadvise");
}

static void call_and_count(void (*call)(void))
{
	uint64_t before = stats < 0 ? 0 : commands(), sent;

	call();
	sent = stats < 0 ? 0 : commands() - before;
	least = sent < least ? sent : least;
	most = sent > most ? sent : most;
}

static void flush(void)
{
	if (has_order && is_write && fsync(device))
		die("fsync");
}

static void measure(void (*call)(void), int rounds)
{
	struct timespec interval;
	uint64_t sent, begin_ns, took_ns;
	int i;

	for (i = 0; i < (has_order ? 1 : rounds); i++)
		call();
	flush();
	state = FIRST_STATE;
	sent = stats < 0 ? 0 : commands();
	begin_ns = now_ns() - waited_ns();
	sched_rr_get_interval(0, &interval);
	for (i = 0; i < rounds; i++) {
		if (is_periodic)
			begin_period();
		call_and_count(call);
	}
	flush();
	sched_rr_get_interval(0, &interval);
	took_ns = now_ns() - waited_ns() - begin_ns;
	sent = stats < 0 ? 0 : commands() - sent;
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", took_ns, sent, least, most);
}

/* Memory of a memfd that is a dma-buf, too. The size of a memfd below one may not shrink. */
static char *udmabuf_memory(size_t size)
{
	struct udmabuf_create create = {.size = size};
	int memory = memfd_create("caller", MFD_ALLOW_SEALING);
	int control = open("/dev/udmabuf", O_RDWR);
	char *at;

	if (memory < 0 || control < 0)
		die("udmabuf");
	create.memfd = (uint32_t)memory;
	if (ftruncate(memory, (off_t)size) || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) ||
	    ioctl(control, UDMABUF_CREATE, &create) < 0)
		die("udmabuf");
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	return at == MAP_FAILED ? NULL : at;
}

static char *reserved_memory(size_t size)
{
	int region = open("/dev/dax0.0", O_RDWR);
	char *at;

	if (region < 0)
		die("/dev/dax0.0");
	size = (size + DAX_ALIGNMENT - 1) / DAX_ALIGNMENT * DAX_ALIGNMENT;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, region, 0);
	return at == MAP_FAILED ? NULL : at;
}

/* KIND: what stands behind the + of the second argument. */
static char *memory_of(const char *kind, size_t size)
{
	if (!kind)
		return aligned_alloc(4096, size);
	return strcmp(kind, "dax") == 0 ? reserved_memory(size) : udmabuf_memory(size);
}

static void open_all(char **argv)
{
	bool is_nvme = strcmp(argv[2], "uring_cmd") == 0;
	int how = is_nvme || strcmp(argv[2], "cached") == 0 ? 0 : O_DIRECT;
	char *kind = strchr(argv[2], '+');

	if (kind)
		*kind++ = 0;
	is_write = strcmp(argv[3], "write") == 0;
	bytes = (size_t)atol(argv[4]);
	has_order = argv[6] != NULL;
	is_periodic = has_order && strcmp(argv[6], "periodic") == 0;
	is_sequential = is_periodic || (has_order && strcmp(argv[6], "sequential") == 0);
	if (is_periodic)
		how |= O_SYNC;
	device = open(argv[1], O_RDWR | (is_nvme ? 0 : O_CREAT) | how, 0600);
	data = memory_of(kind, bytes);
	if (device < 0 || !data)
		die(argv[1]);
	memset(data, 1, bytes);
	if (is_nvme)
		space = nvme_identify(device);
	places = (is_nvme ? space.bytes : (uint64_t)lseek(device, 0, SEEK_END)) / bytes;
	only_slept = has_order && argv[7] && strcmp(argv[7], "slept") == 0;
	if (only_slept || (has_order && argv[7] && strcmp(argv[7], "instructions") == 0)) {
		count_waiting();
	} else if (has_order && argv[7]) {
		stats = open(argv[7], O_RDONLY);
		if (stats < 0)
			die(argv[7]);
	}
}

int main(int argc, char **argv)
{
	struct sched_param priority = {.sched_priority = 1};
	void (*call)(void) = by_pread;

	if (argc < 6 || argc > 8) {
		fprintf(stderr, "usage: caller FILE "
				"pread|cached|uring_fixed|uring_cmd|buffer[+udmabuf|+dax]"
				" read|write BYTES ROUNDS [sequential|periodic|random "
				"[STATS|instructions|slept]]\n");
		return 2;
	}
	open_all(argv);
	if (strcmp(argv[2], "uring_fixed") == 0) {
		ring = uring_setup(data, bytes, false);
		call = by_uring;
	} else if (strcmp(argv[2], "uring_cmd") == 0) {
		ring = uring_setup(data, bytes, true);
		call = by_nvme;
	} else if (strcmp(argv[2], "buffer") == 0) {
		setup_buffer();
		call = by_buffer;
	}
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		die("sched_setscheduler");
	if (only_slept)
		measure_sleeping(call, atoi(argv[5]));
	else
		measure(call, atoi(argv[5]));
	return 0;
}
