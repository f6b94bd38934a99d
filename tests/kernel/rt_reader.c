// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A real-time reader next to background. Usage:
 *
 *	rt_reader DEV RT_KIB RT_COUNT PAUSE_US BG_KIB BG_THREADS read|write|writes [OTHER]
 *
 * The reader has ioprio real-time, level 0. It reads at random places, or writes with `writes`, one
 * at a time. A pause of 0 to PAUSE_US before each lets it meet the device in any state; =N is
 * exactly N us, =N-M is N to M us. BG_THREADS threads of the idle class read, or write with `write`
 * and `writes`, at random places until it is done. With OTHER, a read of 4 KiB from that device is
 * the pause. It prints "rt_max_ns N bg_count N rt_p99_ns N rt_p50_ns N rt_p999_ns N rt_count N".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256

static int fd, other_fd = -1;
static uint64_t device_bytes;
static size_t bg_bytes;
static bool rt_write, bg_write;
static volatile bool done;
static volatile bool failed;
static uint64_t bg_count;

static void set_ioprio(int ioprio)
{
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, ioprio)) {
		perror("ioprio_set");
		exit(1);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static off_t random_place(uint64_t *state, size_t bytes)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (off_t)((*state >> 33) % (device_bytes / bytes) * bytes);
}

static char *buffer(size_t bytes)
{
	void *data;

	if (posix_memalign(&data, 4096, bytes)) {
		fprintf(stderr, "rt_reader: out of memory\n");
		exit(1);
	}
	memset(data, 0x5a, bytes);
	return data;
}

static bool move(bool write, char *data, size_t bytes, off_t place)
{
	ssize_t size = write ? pwrite(fd, data, bytes, place) : pread(fd, data, bytes, place);

	return size == (ssize_t)bytes;
}

static void *background(void *argument)
{
	uint64_t state = (uint64_t)(uintptr_t)argument;
	char *data = buffer(bg_bytes);

	set_ioprio(IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
	while (!done) {
		off_t place = random_place(&state, bg_bytes);

		if (!move(bg_write, data, bg_bytes, place))
			failed = true;
		__atomic_fetch_add(&bg_count, 1, __ATOMIC_RELAXED);
	}
	free(data);
	return NULL;
}

struct pause {
	uint64_t least_us, most_us;
};

/* N: of 0 to N; =N: of N; =N-M: of N to M. */
static struct pause pause_of(const char *text)
{
	bool has_least = text[0] == '=';
	char *end;
	uint64_t first_us = strtoull(text + has_least, &end, 10);

	if (!has_least)
		return (struct pause){0, first_us};
	return (struct pause){first_us, *end == '-' ? strtoull(end + 1, NULL, 10) : first_us};
}

static void rest(struct pause pause, uint64_t random, char *data)
{
	uint64_t range_us = pause.most_us - pause.least_us;

	if (other_fd >= 0 && pread(other_fd, data, 4096, 0) != 4096)
		failed = true;
	if (other_fd < 0 && pause.most_us)
		usleep((useconds_t)(pause.least_us + (range_us ? random % range_us : 0)));
}

/* Leaves how long each I/O took in @latency_ns. */
static void move_in_real_time(size_t bytes, int count, struct pause pause, uint64_t *latency_ns)
{
	char *data = buffer(bytes);
	uint64_t state = 1;

	set_ioprio(IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0));
	for (int i = 0; i < count; i++) {
		off_t place = random_place(&state, bytes);
		uint64_t begin_ns;

		rest(pause, state >> 33, data);
		begin_ns = now_ns();
		if (!move(rt_write, data, bytes, place))
			failed = true;
		latency_ns[i] = now_ns() - begin_ns;
	}
	free(data);
}

static int by_size(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Nearest rank: the smallest that so many permille do not exceed. */
static uint64_t quantile(const uint64_t *sorted, int count, int permille)
{
	return sorted[(count * permille + 999) / 1000 - 1];
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	uint64_t *latency_ns;
	int count, rt_count;

	if (argc < 8 || argc > 9 || atoi(argv[3]) < 1 || atoi(argv[6]) < 0 ||
	    atoi(argv[6]) > THREADS_MAX) {
		fprintf(stderr,
			"usage: rt_reader DEV RT_KIB RT_COUNT PAUSE_US BG_KIB "
			"BG_THREADS(0-%d) read|write|writes [OTHER]\n",
			THREADS_MAX);
		return 2;
	}
	bg_bytes = (size_t)atoi(argv[5]) << 10;
	count = atoi(argv[6]);
	rt_count = atoi(argv[3]);
	latency_ns = calloc((size_t)rt_count, sizeof(*latency_ns));
	rt_write = strcmp(argv[7], "writes") == 0;
	bg_write = rt_write || strcmp(argv[7], "write") == 0;
	fd = open(argv[1], O_RDWR | O_DIRECT);
	if (fd < 0 || !latency_ns) {
		perror(argv[1]);
		return 1;
	}
	if (argc == 9)
		other_fd = open(argv[8], O_RDONLY | O_DIRECT);
	if (argc == 9 && other_fd < 0) {
		perror(argv[8]);
		return 1;
	}
	device_bytes = (uint64_t)lseek(fd, 0, SEEK_END);
	/* Who has made no request is not known to be real-time. */
	move_in_real_time((size_t)atoi(argv[2]) << 10, 1, (struct pause){0}, latency_ns);
	for (int i = 0; i < count; i++) {
		if (pthread_create(&threads[i], NULL, background, (void *)(uintptr_t)(i + 2))) {
			perror("pthread_create");
			return 1;
		}
	}
	/* All of background is queued before the first read. */
	usleep(20000);
	move_in_real_time((size_t)atoi(argv[2]) << 10, rt_count, pause_of(argv[4]), latency_ns);
	done = true;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	qsort(latency_ns, (size_t)rt_count, sizeof(*latency_ns), by_size);
	printf("rt_max_ns %" PRIu64 " bg_count %" PRIu64 " rt_p99_ns %" PRIu64 " rt_p50_ns %" PRIu64
	       " rt_p999_ns %" PRIu64 " rt_count %d\n",
	       latency_ns[rt_count - 1], bg_count, quantile(latency_ns, rt_count, 990),
	       quantile(latency_ns, rt_count, 500), quantile(latency_ns, rt_count, 999), rt_count);
	return failed ? 1 : 0;
}
