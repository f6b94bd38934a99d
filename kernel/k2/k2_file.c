// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/k2: a program writes its real-time tasks to it, and keeps the file open as long as they are
 * to be guarded. When the program ends in any way, its file is closed and the tasks end.
 *
 * One write is one task: "dev=179:0 level=0 period_us=10000 block_us=440" and more, see
 * k2_task_keys. A rejected write changes nothing; the last line of the file then has the error. A
 * read returns one line per task, with its state and counts. poll() reports POLLPRI when a count
 * has grown since the last read.
 */
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/kstrtox.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "k2.h"

#define K2_LINE_MAX 256

struct k2_file {
	struct list_head tasks; /* protected by the lock of k2_tasks.c */
	wait_queue_head_t changed;
	/* Protects the members below. */
	struct mutex lock;
	char error[128]; /* of the last write; empty: it succeeded */
	u64 faults_read; /* the fault count at the last read */
};

/* The keys of a task. */
enum k2_key {
	K2_KEY_DEV,
	K2_KEY_LEVEL,
	K2_KEY_PERIOD,
	K2_KEY_JITTER,
	K2_KEY_THINK,
	K2_KEY_BLOCK,
	K2_KEY_EXACT,
	K2_KEY_SPORADIC,
	K2_KEY_OWNER,
	K2_KEYS
};

static const char *const k2_task_keys[K2_KEYS] = {
	[K2_KEY_DEV] = "dev",	       [K2_KEY_LEVEL] = "level",
	[K2_KEY_PERIOD] = "period_us", [K2_KEY_JITTER] = "jitter_us",
	[K2_KEY_THINK] = "think_us",   [K2_KEY_BLOCK] = "block_us",
	[K2_KEY_EXACT] = "exact",      [K2_KEY_SPORADIC] = "sporadic",
	[K2_KEY_OWNER] = "owner",
};

#define K2_KEYS_NEEDED                                                                             \
	(BIT(K2_KEY_DEV) | BIT(K2_KEY_LEVEL) | BIT(K2_KEY_PERIOD) | BIT(K2_KEY_BLOCK))

/* The parsed words of a write. */
struct k2_line {
	dev_t devt;
	unsigned int number[K2_KEYS];
	bool by_cgroup;
};

static bool k2_dev_take(const char *text, dev_t *devt)
{
	unsigned int major, minor;
	char end;

	if (sscanf(text, "%u:%u%c", &major, &minor, &end) != 2)
		return false;
	*devt = MKDEV(major, minor);
	return MAJOR(*devt) == major && MINOR(*devt) == minor;
}

static bool k2_value_take(struct k2_line *line, enum k2_key key, const char *value)
{
	switch (key) {
	case K2_KEY_DEV:
		return k2_dev_take(value, &line->devt);
	case K2_KEY_OWNER:
		line->by_cgroup = !strcmp(value, "cgroup");
		return line->by_cgroup || !strcmp(value, "process");
	default:
		return !kstrtouint(value, 10, &line->number[key]);
	}
}

/* Writes an error message to @error. */
static int k2_word_take(struct k2_line *line, char *word, unsigned long *seen, char *error,
			size_t size)
{
	char *key_text = strsep(&word, "=");
	int key = match_string(k2_task_keys, K2_KEYS, key_text);

	if (key < 0)
		scnprintf(error, size, "%s: unknown key", key_text);
	else if (!word)
		scnprintf(error, size, "%s: no value (write %s=VALUE)", key_text, key_text);
	else if (*seen & BIT(key))
		scnprintf(error, size, "%s: stated twice", key_text);
	else if (!k2_value_take(line, key, word))
		scnprintf(error, size, "%s: bad value '%s'", key_text, word);
	else
		*seen |= BIT(key);
	return *error ? -EINVAL : 0;
}

static int k2_line_take(struct k2_line *line, char *text, char *error, size_t size)
{
	unsigned long seen = 0, missing;
	char *word;

	while ((word = strsep(&text, " \t\n"))) {
		if (*word && k2_word_take(line, word, &seen, error, size))
			return -EINVAL;
	}
	missing = K2_KEYS_NEEDED & ~seen;
	if (!missing)
		return 0;
	scnprintf(error, size, "%s: missing", k2_task_keys[__ffs(missing)]);
	return -EINVAL;
}

static int k2_line_check(const struct k2_line *line, char *error, size_t size)
{
	const unsigned int *number = line->number;
	u64 least_us = 2ULL * number[K2_KEY_JITTER] + number[K2_KEY_THINK];

	if (number[K2_KEY_LEVEL] >= K2_RT_LEVELS)
		scnprintf(error, size, "level: %u is not one of 0 to 7", number[K2_KEY_LEVEL]);
	else if (number[K2_KEY_BLOCK] > K2_RT_BLOCK_US_LIMIT)
		scnprintf(error, size, "block_us: %u is above %u", number[K2_KEY_BLOCK],
			  K2_RT_BLOCK_US_LIMIT);
	else if (number[K2_KEY_SPORADIC] > 1)
		scnprintf(error, size, "sporadic: %u is not 0 or 1", number[K2_KEY_SPORADIC]);
	else if (number[K2_KEY_PERIOD] <= least_us)
		scnprintf(error, size, "period_us: %u is not above 2 jitter_us + think_us = %llu",
			  number[K2_KEY_PERIOD], least_us);
	return *error ? -EINVAL : 0;
}

static struct k2_task *k2_task_new(const struct k2_line *line, struct k2_file *file)
{
	struct k2_task *task = kzalloc(sizeof(*task), GFP_KERNEL);

	if (!task)
		return NULL;
	task->devt = line->devt;
	task->stated = (struct k2_declaration){
		.level = line->number[K2_KEY_LEVEL],
		.period_ns = (u64)line->number[K2_KEY_PERIOD] * NSEC_PER_USEC,
		.jitter_ns = (u64)line->number[K2_KEY_JITTER] * NSEC_PER_USEC,
		.think_ns = (u64)line->number[K2_KEY_THINK] * NSEC_PER_USEC,
		.block_ns = (u64)line->number[K2_KEY_BLOCK] * NSEC_PER_USEC,
		.exact = line->number[K2_KEY_EXACT],
		.is_sporadic = line->number[K2_KEY_SPORADIC],
	};
	task->changed = &file->changed;
	if (k2_owner_get(&task->owner, line->by_cgroup))
		return task;
	scnprintf(file->error, sizeof(file->error), "owner: the process is in no cgroup");
	kfree(task);
	return NULL;
}

static void k2_explain(int error, const struct k2_line *line, u64 least_ns, char *text, size_t size)
{
	unsigned int major = MAJOR(line->devt), minor = MINOR(line->devt);

	switch (error) {
	case -ENODEV:
		scnprintf(text, size, "dev: k2 is not the scheduler of a disk %u:%u", major, minor);
		break;
	case -ENODATA:
		scnprintf(text, size, "dev: %u:%u has no limits (write iosched/device_limits)",
			  major, minor);
		break;
	case -ERANGE:
		scnprintf(text, size, "block_us: %u is less than a smallest command may take, %llu",
			  line->number[K2_KEY_BLOCK], DIV_ROUND_UP_ULL(least_ns, NSEC_PER_USEC));
		break;
	default:
		scnprintf(text, size, "level: %u of %u:%u: declared before, or too many tasks",
			  line->number[K2_KEY_LEVEL], major, minor);
	}
}

/* Called with file->lock held. */
static int k2_file_declare(struct k2_file *file, char *text)
{
	struct k2_line line = {};
	struct k2_task *task;
	u64 least_ns = 0;
	int error;

	file->error[0] = '\0';
	error = k2_line_take(&line, text, file->error, sizeof(file->error))
			?: k2_line_check(&line, file->error, sizeof(file->error));
	if (error)
		return error;
	task = k2_task_new(&line, file);
	if (!task)
		return file->error[0] ? -EINVAL : -ENOMEM;
	error = k2_tasks_add(task, &file->tasks, &least_ns);
	if (error) {
		k2_explain(error, &line, least_ns, file->error, sizeof(file->error));
		k2_task_free(task);
	}
	return error;
}

static ssize_t k2_file_write(struct file *filp, const char __user *user, size_t length,
			     loff_t *offset)
{
	struct k2_file *file = ((struct seq_file *)filp->private_data)->private;
	char text[K2_LINE_MAX];
	int error;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, length))
		return -EFAULT;
	text[length] = '\0';
	if (strlen(text) != length)
		return -EINVAL;
	mutex_lock(&file->lock);
	error = k2_file_declare(file, text);
	mutex_unlock(&file->lock);
	return error ?: length;
}

static int k2_file_show(struct seq_file *m, void *v)
{
	struct k2_file *file = m->private;
	size_t size, length;
	char *text;

	size = seq_get_buf(m, &text);
	if (!size) {
		seq_commit(m, -1);
		return 0;
	}
	mutex_lock(&file->lock);
	/* Read the counter first: later faults are then reported again. */
	file->faults_read = k2_tasks_faults(&file->tasks);
	length = k2_tasks_print_file(&file->tasks, text, size);
	if (file->error[0])
		length += scnprintf(text + length, size - length, "error %s\n", file->error);
	mutex_unlock(&file->lock);
	/* If the buffer was full, text may be missing: seq_file tries again with more memory. */
	seq_commit(m, length + 1 < size ? (int)length : -1);
	return 0;
}

static __poll_t k2_file_poll(struct file *filp, struct poll_table_struct *wait)
{
	struct k2_file *file = ((struct seq_file *)filp->private_data)->private;
	bool has_new;

	poll_wait(filp, &file->changed, wait);
	mutex_lock(&file->lock);
	has_new = k2_tasks_faults(&file->tasks) != file->faults_read;
	mutex_unlock(&file->lock);
	return has_new ? EPOLLPRI : 0;
}

static int k2_file_open(struct inode *inode, struct file *filp)
{
	struct k2_file *file = kzalloc(sizeof(*file), GFP_KERNEL);
	int error;

	if (!file)
		return -ENOMEM;
	INIT_LIST_HEAD(&file->tasks);
	init_waitqueue_head(&file->changed);
	mutex_init(&file->lock);
	/* misc_open() has stored the device here, but seq_file needs the field. */
	filp->private_data = NULL;
	error = single_open(filp, k2_file_show, file);
	if (error)
		kfree(file);
	return error;
}

static int k2_file_release(struct inode *inode, struct file *filp)
{
	struct k2_file *file = ((struct seq_file *)filp->private_data)->private;

	k2_tasks_remove(&file->tasks);
	kfree(file);
	return single_release(inode, filp);
}

static const struct file_operations k2_file_operations = {
	.owner = THIS_MODULE,
	.open = k2_file_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.write = k2_file_write,
	.poll = k2_file_poll,
	.release = k2_file_release,
};

static struct miscdevice k2_file_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "k2",
	.mode = 0660,
	.fops = &k2_file_operations,
};

int k2_file_register(void)
{
	return misc_register(&k2_file_device);
}

void k2_file_unregister(void)
{
	misc_deregister(&k2_file_device);
}
