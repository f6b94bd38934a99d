// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loaded into User Mode Linux (LD_PRELOAD) so that it runs on processors with large registers, and
 * sooner.
 *
 * UML keeps 2,696 bytes of a guest process's extended registers: all that there is up to AVX-512.
 * With AMX there are 11,008, and the host takes registers back in full size only (PTRACE_SETREGSET
 * fails with EFAULT otherwise), so that no guest process could start. Kernels before 6.13 are
 * written so, and the kernel under test is to stay as it is. Here the tail is added on the way to
 * the host. It is empty: a process that did not ask the host for AMX has nothing in it, and a
 * guest cannot ask.
 *
 * UML fetches these registers when a process stops, and sets them before it goes on. Mostly they
 * are the same; the host is asked to set them only if they differ.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

/* More than any processor has. */
#define XSTATE_BYTES_MAX 65536
/* More than UML keeps. */
#define FETCHED_BYTES_MAX 4096
#define PROCESSES	  64

typedef long (*ptrace_function)(int request, ...);

/* The registers that a process stopped with. */
struct fetched {
	int pid; /* 0: of none, or it may have others since */
	size_t bytes;
	unsigned char registers[FETCHED_BYTES_MAX];
};

static unsigned char full[XSTATE_BYTES_MAX];
static struct fetched fetched[PROCESSES];

static struct fetched *place_of(int pid)
{
	return &fetched[(unsigned int)pid % PROCESSES];
}

static void keep(int pid, const struct iovec *registers)
{
	struct fetched *place = place_of(pid);

	if (registers->iov_len > FETCHED_BYTES_MAX)
		return;
	place->pid = pid;
	place->bytes = registers->iov_len;
	memcpy(place->registers, registers->iov_base, registers->iov_len);
}

static void forget(int pid)
{
	if (place_of(pid)->pid == pid)
		place_of(pid)->pid = 0;
}

static int are_as_fetched(int pid, const struct iovec *registers)
{
	const struct fetched *place = place_of(pid);

	/* UML gives all that it keeps, also if this processor has less. */
	return place->pid == pid && place->bytes <= registers->iov_len &&
	       memcmp(place->registers, registers->iov_base, place->bytes) == 0;
}

/* All others let the process run, or may change its extended registers. */
static int leaves_them(enum __ptrace_request request)
{
	return request == PTRACE_GETREGS || request == PTRACE_SETREGS ||
	       request == PTRACE_GETREGSET || request == PTRACE_GETSIGINFO;
}

/* How much the host wants, or 0 if it does not say. */
static size_t host_bytes(ptrace_function host, int pid)
{
	static size_t known;
	struct iovec iov = {.iov_base = full, .iov_len = sizeof(full)};

	if (!known && host(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) == 0) {
		known = iov.iov_len;
		memset(full, 0, sizeof(full));
	}
	return known;
}

static long set(ptrace_function host, int pid, struct iovec *given)
{
	size_t bytes = host_bytes(host, pid);
	struct iovec whole = {.iov_base = full, .iov_len = bytes};

	if (given->iov_len >= bytes)
		return host(PTRACE_SETREGSET, pid, NT_X86_XSTATE, given);
	memcpy(full, given->iov_base, given->iov_len);
	return host(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &whole);
}

/* Called by UML in place of the C library's. */
long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_function host;
	void *address, *data;
	va_list arguments;
	int pid, is_xstate;
	long result;

	if (!host)
		host = (ptrace_function)dlsym(RTLD_NEXT, "ptrace");
	va_start(arguments, request);
	pid = va_arg(arguments, int);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);

	is_xstate = address == (void *)NT_X86_XSTATE;
	if (request == PTRACE_SETREGSET && is_xstate && are_as_fetched(pid, data))
		return 0;
	if (!leaves_them(request))
		forget(pid);
	if (request == PTRACE_SETREGSET && is_xstate)
		return set(host, pid, data);
	result = host(request, pid, address, data);
	if (request == PTRACE_GETREGSET && is_xstate && result == 0)
		keep(pid, data);
	return result;
}
