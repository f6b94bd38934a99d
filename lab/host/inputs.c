// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loaded into User Mode Linux (LD_PRELOAD) so that the host knows which files a guest has used.
 *
 * The guest's kernel reads files of the host by hostfs, which calls these functions of the C
 * library. Each path below the clone is appended to a list, in the order of use. Without that list
 * in the work folder nothing is written. `targets/kept_boots.py` makes the list and reads it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LIST  "/run/steadyio/work/.steady/inputs"
#define CLONE "/run/steadyio/project/"

/* The C library's own function, looked up once. */
static void find(void *host, const char *name)
{
	void **function = host;

	if (!*function)
		*function = dlsym(RTLD_NEXT, name);
}

/* `how` is 'd' if the path's names are listed, 'f' for all other uses. */
static void append(char how, const char *path)
{
	static int list = -2;
	char head[2] = {how, ' '};
	struct iovec line[] = {
		{.iov_base = head, .iov_len = sizeof(head)},
		{.iov_base = (char *)path, .iov_len = strlen(path)},
		{.iov_base = "\n", .iov_len = 1},
	};

	if (list == -2)
		list = open(LIST, O_WRONLY | O_APPEND | O_CLOEXEC);
	/* A short list would hide an input: a guest without one is not kept. */
	if (list >= 0 && writev(list, line, 3) < 0)
		unlink(LIST);
}

/* The kernel's paths begin with one slash for each root that they are below. */
static void note(char how, const char *path)
{
	int saved = errno;

	while (path[0] == '/' && path[1] == '/')
		path++;
	if (strncmp(path, CLONE, strlen(CLONE)) == 0)
		append(how, path);
	errno = saved;
}

/* Each of these is called by UML in place of the C library's. */
int open64(const char *path, int flags, ...)
{
	static int (*host)(const char *path, int flags, ...);
	mode_t mode = 0;
	va_list arguments;

	va_start(arguments, flags);
	if (flags & O_CREAT)
		mode = va_arg(arguments, mode_t);
	va_end(arguments);
	note('f', path);
	find(&host, "open64");
	return host(path, flags, mode);
}

int lstat64(const char *path, struct stat64 *found)
{
	static int (*host)(const char *path, struct stat64 *found);

	note('f', path);
	find(&host, "lstat64");
	return host(path, found);
}

int statx(int folder, const char *path, int flags, unsigned int mask, struct statx *found)
{
	static int (*host)(int folder, const char *path, int flags, unsigned int mask,
			   struct statx *found);

	note('f', path);
	find(&host, "statx");
	return host(folder, path, flags, mask, found);
}

int access(const char *path, int mode)
{
	static int (*host)(const char *path, int mode);

	note('f', path);
	find(&host, "access");
	return host(path, mode);
}

ssize_t readlink(const char *path, char *target, size_t size)
{
	static ssize_t (*host)(const char *path, char *target, size_t size);

	note('f', path);
	find(&host, "readlink");
	return host(path, target, size);
}

DIR *opendir(const char *path)
{
	static DIR *(*host)(const char *path);

	note('d', path);
	find(&host, "opendir");
	return host(path);
}
