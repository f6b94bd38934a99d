// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files as backing and as write log. In the lab they are the host's: hostfs passes every write to
 * the host at once.
 *
 * Callers may sleep. Memory reclaim can cause requests, so no allocation here may start I/O.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/sched/mm.h>
#include <linux/string.h>

#include "media.h"

/* @key is the module parameter that named the file. */
struct file *media_file_open(const char *key, const char *path, int flags)
{
	struct file *file = filp_open(path, O_RDWR | O_CREAT | O_LARGEFILE | flags, 0644);

	if (IS_ERR(file))
		pr_err("%s=%s: cannot open for reading and writing: %ld\n", key, path,
		       PTR_ERR(file));
	return file;
}

int media_file_read(struct file *file, u64 pos, void *to, size_t len)
{
	loff_t at = pos;
	unsigned int noio = memalloc_noio_save();
	ssize_t got = 0;

	while (len) {
		got = kernel_read(file, to, len, &at);
		if (got <= 0)
			break;
		to += got;
		len -= got;
	}
	memalloc_noio_restore(noio);
	if (got < 0)
		return got;
	memset(to, 0, len); /* behind the end of the file: never written */
	return 0;
}

int media_file_write(struct file *file, u64 pos, const void *from, size_t len)
{
	loff_t at = pos;
	unsigned int noio = memalloc_noio_save();
	ssize_t put = 0;

	while (len) {
		put = kernel_write(file, from, len, &at);
		if (put <= 0)
			break;
		from += put;
		len -= put;
	}
	memalloc_noio_restore(noio);
	if (put < 0)
		return put;
	return len ? -EIO : 0;
}
