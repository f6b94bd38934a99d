// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Counts the instructions that a User Mode Linux kernel executes, by running it one instruction at a
 * time: step OUT MARK COMMAND... A UML kernel is an ordinary process, so what would need a hardware
 * counter elsewhere needs none here, and in virtual time the count is the same each time.
 *
 * Counting begins when the process reaches the address MARK (hexadecimal, in the kernel's text)
 * and ends when it gets there again, and so on in pairs. Processes of the guest are processes of
 * their own here and are not counted. Per pair, a line "window N" and then a line "ADDRESS COUNT"
 * for each instruction executed are written to OUT. Ends as COMMAND does. Started by
 * steady_lab/figures/cpu_cost.py.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define BREAKPOINT    0xccUL
#define ADDRESSES_MAX (1U << 20) /* different ones in a window; a power of two */

struct count {
	uint64_t address;
	uint64_t executed;
};

static struct count counts[ADDRESSES_MAX];
static pid_t pid;
static uint64_t mark;
static long mark_text;
static FILE *out;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void count(uint64_t address)
{
	uint64_t slot = address * 0x9e3779b97f4a7c15ULL >> 44;

	while (counts[slot].executed && counts[slot].address != address)
		slot = (slot + 1) % ADDRESSES_MAX;
	counts[slot].address = address;
	counts[slot].executed++;
}

static void write_window(void)
{
	static unsigned int windows;

	fprintf(out, "window %u\n", windows++);
	for (size_t slot = 0; slot < ADDRESSES_MAX; slot++) {
		if (counts[slot].executed)
			fprintf(out, "%" PRIx64 " %" PRIu64 "\n", counts[slot].address,
				counts[slot].executed);
		counts[slot] = (struct count){0};
	}
	fflush(out);
}

static uint64_t get_rip(void)
{
	return (uint64_t)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), 0);
}

static void set_breakpoint(int on)
{
	long text = on ? (long)((mark_text & ~0xffL) | BREAKPOINT) : mark_text;

	if (ptrace(PTRACE_POKETEXT, pid, mark, text))
		die("step: cannot write to the kernel's text");
}

/* Continues with @request and delivers a pending signal. Ends this process if the other has. */
static int resume(int request, int signal)
{
	int status;

	if (ptrace(request, pid, 0, signal) || waitpid(pid, &status, __WALL) != pid)
		die("step: ptrace");
	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "step: the guest was killed by signal %d\n", WTERMSIG(status));
		exit(1);
	}
	return status;
}

/* From the mark to the next time it is reached. */
static void count_window(void)
{
	uint64_t address = mark, before = 0;
	int signal = 0;

	do {
		/* An instruction with a repeat prefix stops after each round, but is one. */
		if (address != before && !signal)
			count(address);
		before = address;
		int status = resume(PTRACE_SINGLESTEP, signal);

		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		address = get_rip();
	} while (address != mark || before == mark);
	write_window();
}

static void at_mark(void)
{
	struct user_regs_struct registers;

	set_breakpoint(0);
	if (ptrace(PTRACE_GETREGS, pid, 0, &registers))
		die("step: registers");
	registers.rip = mark;
	if (ptrace(PTRACE_SETREGS, pid, 0, &registers))
		die("step: registers");
	count_window();
	resume(PTRACE_SINGLESTEP, 0);
	set_breakpoint(1);
}

/* After each exec: is this the kernel, with the mark in its text? */
static void look_for_mark(void)
{
	errno = 0;
	long text = ptrace(PTRACE_PEEKTEXT, pid, mark, 0);

	if (errno)
		return;
	mark_text = text;
	set_breakpoint(1);
}

int main(int argc, char **argv)
{
	int status, signal = 0;

	if (argc < 4) {
		fprintf(stderr, "usage: step OUT MARK COMMAND...\n");
		return 2;
	}
	mark = strtoull(argv[2], NULL, 16);
	out = fopen(argv[1], "w");
	if (!out)
		die(argv[1]);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[3], argv + 3);
		die(argv[3]);
	}
	if (waitpid(pid, &status, __WALL) != pid ||
	    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC))
		die("step: ptrace");
	for (;;) {
		status = resume(PTRACE_CONT, signal);
		signal = 0;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			look_for_mark();
		else if (WSTOPSIG(status) == SIGTRAP && get_rip() == mark + 1)
			at_mark();
		else
			signal = WSTOPSIG(status);
	}
}
