// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loaded into User Mode Linux (LD_PRELOAD) so that it runs on processors with large registers.
 *
 * UML keeps 2,696 bytes of a guest process's extended registers: all that there is up to AVX-512.
 * With AMX there are 11,008, and the host takes registers back in full size only (PTRACE_SETREGSET
 * fails with EFAULT otherwise), so that no guest process could start. Kernels before 6.13 are
 * written so, and the kernel under test is to stay as it is. Here the tail is added on the way to
 * the host. It is empty: a process that did not ask the host for AMX has nothing in it, and a
 * guest cannot ask.
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

typedef long (*ptrace_function)(int request, ...);

static unsigned char full[XSTATE_BYTES_MAX];

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

/* Called by UML in place of the C library's. */
long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_function host;
	struct iovec iov, *given;
	void *address, *data;
	va_list arguments;
	int pid;

	if (!host)
		host = (ptrace_function)dlsym(RTLD_NEXT, "ptrace");
	va_start(arguments, request);
	pid = va_arg(arguments, int);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);

	given = data;
	if (request != PTRACE_SETREGSET || address != (void *)NT_X86_XSTATE ||
	    given->iov_len >= host_bytes(host, pid))
		return host(request, pid, address, data);
	memcpy(full, given->iov_base, given->iov_len);
	iov.iov_base = full;
	iov.iov_len = host_bytes(host, pid);
	return host(request, pid, address, &iov);
}
