/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Appends in a child whose seccomp filter allows only read, write and exit; the kernel kills it at
 * any other system call. With a second argument it makes one, which must be detected.
 */
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <steadyio.h>

#define RECORD_BYTES 1000
#define RECORDS	     5000

static int failed(const char *what)
{
	fprintf(stderr, "append_only: %s: %s\n", what, steadyio_error());
	return 1;
}

/* Meets every case: taken, ring full, too long. The child has no writer thread. */
static void append_only(struct steadyio_channel *channel, int canary)
{
	static const unsigned char data[RECORD_BYTES + 1];
	int seen = 0;
	int i;

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		syscall(SYS_exit, 9);
	for (i = 0; i < RECORDS; i++) {
		int status = steadyio_append(channel, (uint64_t)i, data,
					     i % 100 ? RECORD_BYTES : RECORD_BYTES + 1);

		seen |= status < 0 ? 8 : 1 << status;
	}
	if (canary)
		syscall(SYS_getppid);
	syscall(SYS_exit, seen);
}

int main(int argc, char **argv)
{
	struct steadyio_config config = {
		.struct_bytes = sizeof(config),
		.dir = argc > 1 ? argv[1] : NULL,
		.unit_bytes = 64 << 10,
		.segment_bytes = 512 << 10,
		.keep = 2,
		.flags = STEADYIO_NO_LOCK,
	};
	const struct steadyio_channel_config channel_config = {
		.struct_bytes = sizeof(channel_config),
		.topic = "/a",
		.record_bytes_max = RECORD_BYTES,
		.ring_bytes = 1 << 20,
	};
	struct steadyio_recorder *recorder;
	struct steadyio_channel *channel;
	int status;
	pid_t child;

	if (steadyio_open(&config, &recorder) != STEADYIO_OK)
		return failed("open");
	if (steadyio_add_channel(recorder, &channel_config, &channel) != STEADYIO_OK)
		return failed("channel");
	if (steadyio_start(recorder) != STEADYIO_OK)
		return failed("start");
	child = fork();
	if (child == 0)
		append_only(channel, argc > 2);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return failed("child");
	steadyio_close(recorder);
	if (WIFSIGNALED(status))
		printf("killed by signal %d\n", WTERMSIG(status));
	else
		printf("statuses seen: 0x%x\n", (unsigned int)WEXITSTATUS(status));
	return 0;
}
