// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What registered buffers promise: chardisk_buffers DEV. Prints what did not hold, and the line;
 * exit status 0 if all held. Run as root: RLIMIT_MEMLOCK is tried without CAP_IPC_LOCK.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chardisk.h"

#define MIB 1048576UL

static const char *device;
static int failures;

#define EXPECT(what, wanted)                                                                       \
	do {                                                                                       \
		long is = (long)(what), should = (long)(wanted);                                   \
		if (is != should) {                                                                \
			printf("line %d: %s is %ld (errno %s), expected %ld\n", __LINE__, #what,   \
			       is, strerrorname_np(errno), should);                                \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

/* 0 or a negative errno, so that both can be expected. */
static int do_ioctl(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) ? -errno : 0;
}

static void *map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return memory;
}

/* The number of the buffer, or a negative errno. */
static int reg(int fd, const void *memory, uint64_t bytes)
{
	struct chardisk_register request = {.address = (uintptr_t)memory, .bytes = bytes};
	int error = do_ioctl(fd, CHARDISK_IOC_REGISTER, &request);

	return error ?: (int)request.buffer;
}

static int unreg(int fd, uint32_t buffer)
{
	struct chardisk_unregister request = {.buffer = buffer};

	return do_ioctl(fd, CHARDISK_IOC_UNREGISTER, &request);
}

static int move(int fd, uint16_t op, uint32_t buffer, uint64_t offset, uint64_t bytes)
{
	struct chardisk_transfer request = {
		.op = op, .buffer = buffer, .buffer_offset = offset, .bytes = bytes};

	return do_ioctl(fd, CHARDISK_IOC_TRANSFER, &request);
}

static long locked_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmLck: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static void numbers_and_edges(int fd)
{
	char *memory = map(MIB);
	int i;

	EXPECT(reg(fd, memory, MIB), 0);
	EXPECT(reg(fd, memory, 4096), 1);
	EXPECT(locked_kib(), 1024 + 4);
	EXPECT(unreg(fd, 0), 0);
	EXPECT(unreg(fd, 0), -ENOENT);
	EXPECT(locked_kib(), 4);
	EXPECT(reg(fd, memory, 512), 0);
	EXPECT(move(fd, CHARDISK_READ, 0, 0, 512), 0);
	EXPECT(move(fd, CHARDISK_READ, 0, 0, 1024), -EINVAL);
	EXPECT(move(fd, CHARDISK_READ, 0, 512, 512), -EINVAL);
	EXPECT(move(fd, CHARDISK_READ, 0, ~511ULL, 1024), -EINVAL);
	EXPECT(move(fd, CHARDISK_READ, 0, 0, ~511ULL), -EINVAL);
	EXPECT(move(fd, CHARDISK_READ, 7, 0, 512), -ENOENT);
	EXPECT(reg(fd, memory, 0), -EINVAL);
	EXPECT(reg(fd, memory, 100), -EINVAL);
	EXPECT(reg(fd, memory + 512, 4096), -EINVAL);
	EXPECT(reg(fd, memory, 1UL << 31), -EINVAL);
	EXPECT(reg(fd, (void *)-4096L, 8192), -EINVAL);
	EXPECT(reg(fd, NULL, 4096), -EFAULT);
	EXPECT(reg(fd, memory, 2 * MIB), -EFAULT);
	EXPECT(mprotect(memory, 4096, PROT_READ), 0);
	EXPECT(reg(fd, memory, 4096), -EFAULT);
	EXPECT(locked_kib(), 8);
	EXPECT(mprotect(memory, 4096, PROT_READ | PROT_WRITE), 0);
	for (i = 2; i < 64; i++)
		EXPECT(reg(fd, memory, 4096), i);
	EXPECT(reg(fd, memory, 4096), -ENOSPC);
	for (i = 0; i < 64; i++)
		EXPECT(unreg(fd, (uint32_t)i), 0);
	EXPECT(locked_kib(), 0);
	munmap(memory, MIB);
}

/* Another device, or another open of this one, knows nothing of it. */
static void belongs_to_the_file(int fd)
{
	char *memory = map(4096);
	int other = open(device, O_RDWR);

	EXPECT(reg(fd, memory, 4096), 0);
	EXPECT(move(other, CHARDISK_READ, 0, 0, 4096), -ENOENT);
	EXPECT(reg(other, memory, 4096), 0);
	close(other);
	EXPECT(locked_kib(), 4);
	EXPECT(move(fd, CHARDISK_READ, 0, 0, 4096), 0);
	EXPECT(unreg(fd, 0), 0);
	munmap(memory, 4096);
}

/* A mapping that is gone, or was mapped again: the buffer keeps its pages. */
static void outlives_the_mapping(int fd)
{
	char *memory = map(4096), *again;

	memset(memory, 3, 4096);
	EXPECT(reg(fd, memory, 4096), 0);
	munmap(memory, 4096);
	again = mmap(memory, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0);
	EXPECT(move(fd, CHARDISK_WRITE, 0, 0, 4096), 0);
	EXPECT(pread(fd, again, 4096, 0), 4096);
	EXPECT(again[17], 3);
	memset(again, 9, 4096);
	EXPECT(move(fd, CHARDISK_READ, 0, 0, 4096), 0);
	EXPECT(again[17], 9);
	EXPECT(unreg(fd, 0), 0);
	munmap(again, 4096);
}

static int in_child(void (*run)(int fd), int fd)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		failures = 0;
		run(fd);
		fflush(stdout);
		_exit(failures);
	}
	EXPECT(waitpid(pid, &status, 0), pid);
	return status;
}

static void child_may_not(int fd)
{
	EXPECT(move(fd, CHARDISK_READ, 0, 0, 4096), -EPERM);
	EXPECT(move(fd, CHARDISK_WRITE, 0, 0, 4096), -EPERM);
	EXPECT(unreg(fd, 1), 0);
}

static void is_not_for_children(int fd)
{
	char *memory = map(8192);

	EXPECT(reg(fd, memory, 4096), 0);
	EXPECT(reg(fd, memory + 4096, 4096), 1);
	EXPECT(in_child(child_may_not, fd), 0);
	EXPECT(locked_kib(), 4);
	EXPECT(move(fd, CHARDISK_READ, 0, 0, 4096), 0);
	EXPECT(unreg(fd, 0), 0);
	munmap(memory, 8192);
}

/* A private mapping, after a fork: what the device writes reaches the one who registered. */
static void private_memory_survives_fork(int fd)
{
	char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	memset(memory, 5, 4096);
	EXPECT(pwrite(fd, memory, 4096, 8192), 4096);
	memset(memory, 0, 4096);
	EXPECT(reg(fd, memory, 4096), 0);
	pid = fork();
	if (!pid)
		_exit(0);
	memory[0] = 1;
	waitpid(pid, &status, 0);
	{
		struct chardisk_transfer request = {.offset = 8192, .bytes = 4096};

		EXPECT(do_ioctl(fd, CHARDISK_IOC_TRANSFER, &request), 0);
	}
	EXPECT(memory[0], 5);
	EXPECT(unreg(fd, 0), 0);
	munmap(memory, 4096);
}

static void drop_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	syscall(SYS_capget, &header, data);
	data[0].effective &= ~(1u << capability);
	syscall(SYS_capset, &header, data);
}

static void counts_as_locked(int fd)
{
	struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 65536};
	char *memory = map(MIB);

	EXPECT(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	EXPECT(reg(fd, memory, MIB), 0);
	EXPECT(unreg(fd, 0), 0);
	drop_capability(CAP_IPC_LOCK);
	EXPECT(reg(fd, memory, MIB), -ENOMEM);
	EXPECT(reg(fd, memory, 65536), 0);
	EXPECT(reg(fd, memory, 512), -ENOMEM);
	EXPECT(locked_kib(), 64);
	EXPECT(unreg(fd, 0), 0);
	EXPECT(reg(fd, memory, 65536), 0);
	EXPECT(unreg(fd, 0), 0);
}

static void register_and_end(int fd)
{
	EXPECT(reg(fd, map(65536), 65536), 0);
}

/* What a process leaves with the file when it ends counts for its user. */
static void counts_for_the_user(int fd)
{
	struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 65536};

	EXPECT(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	EXPECT(setresgid(65534, 65534, 65534), 0);
	EXPECT(setresuid(65534, 65534, 65534), 0);
	EXPECT(in_child(register_and_end, fd), 0);
	EXPECT(reg(fd, map(4096), 4096), -ENOMEM);
	EXPECT(unreg(fd, 0), 0);
	EXPECT(reg(fd, map(65536), 65536), 0);
	EXPECT(reg(fd, map(4096), 4096), -ENOMEM);
}

/* A process that ends, by itself or by a signal, with buffers registered and in use. */
static void leaves_all(void)
{
	char *memory = map(8 * MIB);
	int own = open(device, O_RDWR);

	EXPECT(reg(own, memory, 8 * MIB), 0);
	while (move(own, CHARDISK_READ, 0, 0, 8 * MIB) == 0)
		;
}

static void end_with_signal(void)
{
	int status, i;

	for (i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (!pid) {
			leaves_all();
			_exit(1);
		}
		usleep(5000 + (useconds_t)i * 7000);
		kill(pid, SIGKILL);
		EXPECT(waitpid(pid, &status, 0), pid);
		EXPECT(WTERMSIG(status), SIGKILL);
	}
}

static volatile bool stop;

static void *register_all_the_time(void *argument)
{
	int fd = *(int *)argument;
	char *memory = map(MIB);

	while (!stop) {
		int number = reg(fd, memory, MIB);

		if (number >= 0)
			unreg(fd, (uint32_t)number);
		usleep(100);
	}
	return NULL;
}

/* One unregisters what the other is using: ENOENT or success, never anything else. */
static void unregister_in_use(int fd)
{
	pthread_t thread;
	int i;

	pthread_create(&thread, NULL, register_all_the_time, &fd);
	for (i = 0; i < 300; i++) {
		int error = move(fd, i % 2 ? CHARDISK_READ : CHARDISK_WRITE, 0, 0, MIB);

		if (error != -ENOENT)
			EXPECT(error, 0);
		usleep(50);
	}
	stop = true;
	pthread_join(thread, NULL);
	EXPECT(locked_kib(), 0);
}

int main(int argc, char **argv)
{
	int fd;

	setvbuf(stdout, NULL, _IOLBF, 0);
	device = argc > 1 ? argv[1] : "";
	fd = open(device, O_RDWR);
	if (fd < 0) {
		perror(device);
		return 2;
	}
	numbers_and_edges(fd);
	belongs_to_the_file(fd);
	outlives_the_mapping(fd);
	is_not_for_children(fd);
	private_memory_survives_fork(fd);
	EXPECT(in_child(counts_as_locked, open(device, O_RDWR)), 0);
	/* Twice: the end of a file gives back what counted. Each file is closed by its last process. */
	for (int again = 0; again < 2; again++) {
		int own = open(device, O_RDWR);

		EXPECT(in_child(counts_for_the_user, own), 0);
		close(own);
	}
	end_with_signal();
	unregister_in_use(fd);
	return failures != 0;
}
