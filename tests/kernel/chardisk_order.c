// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * In which order calls are served that wait at the same time: chardisk_order DEV. A call of one
 * chunk keeps the card busy; behind it come background, background, then real-time from level 7 to
 * 0, and level 3 again, each after the other. Prints the order in which they end: "bgN" by their
 * arrival, and levels.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "chardisk.h"

#define CALLS	    11
#define BYTES	    65536
#define CHUNK_BYTES (4U << 20)

static const char *const name[CALLS] = {"bg1", "bg2", "7", "6", "5", "4", "3", "2", "1", "0", "3b"};
static int fd;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* "!" is the first one: level 0, so that all others wait until its chunk has ended. */
static int priority(const char *which)
{
	if (which[0] == 'b')
		return IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 4);
	return IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, which[0] == '!' ? 0 : which[0] - '0');
}

static void transfer(const char *which, uint32_t bytes)
{
	struct chardisk_transfer request = {.bytes = bytes, .buffer = CHARDISK_NO_BUFFER};
	void *memory;

	if (posix_memalign(&memory, 4096, bytes))
		exit(1);
	memset(memory, 0, bytes);
	request.buffer_offset = (uintptr_t)memory;
	request.ioprio = (uint16_t)priority(which);
	if (ioctl(fd, CHARDISK_IOC_TRANSFER, &request)) {
		perror(which);
		exit(1);
	}
	pthread_mutex_lock(&lock);
	printf("%s ", which);
	pthread_mutex_unlock(&lock);
}

static void *call(void *argument)
{
	const char *which = argument;

	transfer(which, which[0] == '!' ? CHUNK_BYTES : BYTES);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[CALLS], first;
	int i;

	fd = open(argc > 1 ? argv[1] : "", O_RDWR);
	if (fd < 0) {
		perror("open");
		return 1;
	}
	pthread_create(&first, NULL, call, (void *)"!");
	usleep(500);
	for (i = 0; i < CALLS; i++) {
		pthread_create(&threads[i], NULL, call, (void *)(uintptr_t)name[i]);
		usleep(200);
	}
	pthread_join(first, NULL);
	for (i = 0; i < CALLS; i++)
		pthread_join(threads[i], NULL);
	printf("\n");
	return 0;
}
