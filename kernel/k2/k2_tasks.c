// SPDX-License-Identifier: GPL-2.0-only
/*
 * Declared tasks of all devices. A task lasts while the file is open that declared it (k2_file.c).
 * It is armed while its device has the k2 scheduler, and k2 has limits of the device's times. The
 * policy (k2_declared.h) guards armed tasks.
 *
 * A level with a task belongs to the owners of its tasks. Requests of others on it are served one
 * level lower, so they delay a task no more than if they had used that level.
 *
 * Locks. k2_tasks_lock protects the lists. It is taken with the queue frozen, so no memory is
 * allocated under it. k2->lock nests inside, and protects the state that requests use.
 */
#include <linux/blkdev.h>
#include <linux/ioprio.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/slab.h>

#include "k2.h"

static DEFINE_MUTEX(k2_tasks_lock);
static LIST_HEAD(k2_all_tasks);
static LIST_HEAD(k2_all_devices);

/* Owners. */

/* The task with this number; NULL if there is none, or if it has another level. */
static struct k2_task *k2_task_on(const struct k2_data *k2, unsigned int level, u32 number)
{
	struct k2_task *task = k2->guard->task[number];

	return task && task->stated.level == level ? task : NULL;
}

/* The current thread's task on @level, or NULL. @is_owned: others have tasks on it. */
static struct k2_task *k2_find_task(struct k2_data *k2, unsigned int level, bool *is_owned)
{
	u32 i;

	*is_owned = false;
	for (i = 0; i < k2->guard->ahead.declared.used; i++) {
		struct k2_task *task = k2_task_on(k2, level, i);

		if (!task)
			continue;
		if (k2_owner_is_current(&task->owner))
			return task;
		*is_owned = true;
	}
	return NULL;
}

struct k2_task *k2_tasks_current(struct k2_data *k2, unsigned int level)
{
	bool is_owned;

	return k2_find_task(k2, level, &is_owned);
}

static void k2_count_foreign(struct k2_data *k2, unsigned int level)
{
	u32 i;

	for (i = 0; i < k2->guard->ahead.declared.used; i++) {
		struct k2_task *task = k2_task_on(k2, level, i);

		if (!task)
			continue;
		task->counts.foreign++;
		wake_up_interruptible(task->changed);
	}
}

unsigned int k2_tasks_queue(struct k2_data *k2, unsigned int level)
{
	for (; level < K2_RT_LEVELS; level++) {
		bool is_owned;

		if (k2_find_task(k2, level, &is_owned) || !is_owned)
			return level;
		k2_count_foreign(k2, level);
	}
	return K2_QUEUE_BEST_EFFORT;
}

/* Requests. */

void k2_tasks_arrival(struct k2_data *k2, struct request *rq, const struct k2_task *task,
		      u64 now_ns)
{
	struct k2_rq *k2r = k2_rq(rq);

	/* A flush with data has arrived already, before its data. */
	if (k2r->flags & K2_RQ_DECLARED)
		return;
	k2r->stream = task->number;
	k2r->flags |= K2_RQ_DECLARED;
	k2_declared_arrival(&k2->guard->ahead.declared, k2r->stream, now_ns);
}

void k2_tasks_back(struct k2_data *k2, struct request *rq)
{
	k2_declared_back(&k2->guard->ahead.declared, k2_rq(rq)->stream, ktime_get_ns());
}

void k2_tasks_ended(struct k2_data *k2, struct request *rq, u64 now_ns)
{
	struct k2_rq *k2r = k2_rq(rq);

	/* Data with a flush to follow have not ended. */
	if (!(k2r->flags & K2_RQ_DECLARED) || rq->rq_flags & RQF_FLUSH_SEQ)
		return;
	k2_declared_end(&k2->guard->ahead.declared, k2r->stream, now_ns);
	k2r->stream = K2_STREAM_NONE;
	k2r->flags &= ~K2_RQ_DECLARED;
}

void k2_tasks_wake(struct k2_data *k2)
{
	struct k2_guard *guard = k2->guard;
	u32 i;

	if (likely(guard->faults == guard->ahead.declared.faults))
		return;
	guard->faults = guard->ahead.declared.faults;
	for (i = 0; i < guard->ahead.declared.used; i++)
		if (guard->task[i])
			wake_up_interruptible(guard->task[i]->changed);
}

bool k2_tasks_bypassed(struct k2_data *k2, struct request *rq, unsigned int level, u64 now_ns)
{
	struct k2_declared *declared = &k2->guard->ahead.declared;
	bool is_owned = false;
	u32 i;

	for (i = 0; i < declared->used; i++) {
		if (!k2_task_on(k2, level, i))
			continue;
		k2_declared_arrival(declared, i, rq->start_time_ns);
		k2_declared_end(declared, i, now_ns);
		is_owned = true;
	}
	k2_tasks_wake(k2);
	return is_owned;
}

/* Arming. */

static const struct k2_declared_task *k2_task_policy(const struct k2_task *task)
{
	return &task->k2->guard->ahead.declared.task[task->number];
}

/* The task's counts, plus the policy's. Called with their lock, see k2_tasks.h. */
static struct k2_task_counts k2_task_counts(const struct k2_task *task)
{
	struct k2_task_counts counts = task->counts;
	const struct k2_declared_task *policy;
	unsigned int cause;

	if (!task->is_armed)
		return counts;
	policy = k2_task_policy(task);
	counts.jobs += policy->jobs;
	counts.early += policy->early;
	counts.late += policy->late;
	counts.waited_ns_max = max(counts.waited_ns_max, policy->waited_ns_max);
	for (cause = 0; cause < K2_CAUSES; cause++)
		counts.waited_over[cause] += policy->waited_over[cause];
	return counts;
}

/*
 * Called with k2->lock when a task was armed or disarmed; @used is the earlier number. While there
 * are tasks, blk-mq records when a driver starts a request, which costs a clock read each.
 */
static void k2_note_starts(struct k2_data *k2, u32 used)
{
	u32 used_now = k2->guard->ahead.declared.used;

	if (!used && used_now)
		blk_stat_enable_accounting(k2->q);
	else if (used && !used_now)
		blk_stat_disable_accounting(k2->q);
}

/* Called with k2->lock held. */
static void k2_task_disarm(struct k2_task *task, int error)
{
	struct k2_guard *guard = task->k2->guard;
	u32 used = guard->ahead.declared.used;

	task->counts = k2_task_counts(task);
	task->is_armed = false;
	task->error = error;
	k2_declared_remove(&guard->ahead.declared, task->number);
	guard->task[task->number] = NULL;
	k2_note_starts(task->k2, used);
	wake_up_interruptible(task->changed);
}

/* The smallest bound that a task may state: its requests may wait for a smallest piece. */
static u64 k2_least_ns(const struct k2_declared *declared)
{
	u64 least_ns = U64_MAX;
	u32 op;

	for (op = 0; op < K2_DEVICE_OPS; op++)
		least_ns = min(least_ns, k2_declared_limit_ns(declared, op, declared->least_bytes));
	return least_ns;
}

static bool k2_has_limits(const struct k2_declared *declared)
{
	u32 op;

	for (op = 0; op < K2_DEVICE_OPS; op++)
		if (!declared->limit[op].base_ns)
			return false;
	return true;
}

/* k2 could not tell requests of two tasks of one owner on one level apart. */
static bool k2_has_same(const struct k2_guard *guard, const struct k2_task *task)
{
	u32 i;

	for (i = 0; i < guard->ahead.declared.used; i++) {
		const struct k2_task *other = guard->task[i];

		if (other && other->stated.level == task->stated.level &&
		    k2_owner_is_same(&other->owner, &task->owner))
			return true;
	}
	return false;
}

/* Called with k2->lock held. */
static int k2_task_arm_locked(struct k2_task *task, struct k2_data *k2)
{
	struct k2_guard *guard = k2->guard;
	u32 used = guard->ahead.declared.used, number;

	if (!k2_has_limits(&guard->ahead.declared))
		return -ENODATA;
	if (k2_least_ns(&guard->ahead.declared) > task->stated.block_ns)
		return -ERANGE;
	if (k2_has_same(guard, task))
		return -EBUSY;
	number = k2_declared_add(&guard->ahead.declared, &task->stated);
	if (number == K2_DECLARED_NONE)
		return -EBUSY;
	task->number = number;
	task->k2 = k2;
	task->is_armed = true;
	guard->task[number] = task;
	k2_note_starts(k2, used);
	return 0;
}

/* Arms the task unless it is armed or its owner has exited. */
static void k2_task_arm(struct k2_task *task, struct k2_data *k2)
{
	spin_lock_irq(&k2->lock);
	if (!task->is_armed && task->error != -ESRCH)
		task->error = k2_task_arm_locked(task, k2);
	spin_unlock_irq(&k2->lock);
}

static struct k2_data *k2_find_device(dev_t devt)
{
	struct k2_data *k2;

	list_for_each_entry(k2, &k2_all_devices, in_all_devices)
		if (k2->devt == devt)
			return k2;
	return NULL;
}

int k2_tasks_add(struct k2_task *task, struct list_head *file, u64 *least_ns)
{
	struct k2_data *k2;

	mutex_lock(&k2_tasks_lock);
	task->error = -ENODEV;
	k2 = k2_find_device(task->devt);
	if (k2) {
		*least_ns = k2_least_ns(&k2->guard->ahead.declared);
		k2_task_arm(task, k2);
	}
	if (!task->error) {
		list_add_tail(&task->in_all, &k2_all_tasks);
		list_add_tail(&task->in_file, file);
	}
	mutex_unlock(&k2_tasks_lock);
	return task->error;
}

void k2_task_free(struct k2_task *task)
{
	k2_owner_put(&task->owner);
	kfree(task);
}

void k2_tasks_remove(struct list_head *file)
{
	struct k2_task *task, *next;

	mutex_lock(&k2_tasks_lock);
	list_for_each_entry_safe(task, next, file, in_file) {
		struct k2_data *k2 = task->k2;

		if (k2) {
			spin_lock_irq(&k2->lock);
			if (task->is_armed)
				k2_task_disarm(task, 0);
			spin_unlock_irq(&k2->lock);
		}
		list_del(&task->in_all);
		list_del(&task->in_file);
		k2_task_free(task);
	}
	mutex_unlock(&k2_tasks_lock);
}

/* Called with the queue frozen. The device's tasks are armed when it gets limits. */
void k2_tasks_begin(struct k2_data *k2)
{
	struct k2_task *task;

	k2->devt = k2->q->disk ? disk_devt(k2->q->disk) : 0;
	mutex_lock(&k2_tasks_lock);
	list_add_tail(&k2->in_all_devices, &k2_all_devices);
	list_for_each_entry(task, &k2_all_tasks, in_all)
		if (task->devt == k2->devt && task->error != -ESRCH)
			task->error = -ENODATA;
	mutex_unlock(&k2_tasks_lock);
}

/* Called with the queue frozen. */
void k2_tasks_end(struct k2_data *k2)
{
	struct k2_task *task;

	mutex_lock(&k2_tasks_lock);
	list_del(&k2->in_all_devices);
	list_for_each_entry(task, &k2_all_tasks, in_all) {
		if (task->k2 != k2)
			continue;
		spin_lock_irq(&k2->lock);
		if (task->is_armed) {
			task->counts.interrupted++;
			k2_task_disarm(task, -ENODEV);
		}
		task->k2 = NULL;
		spin_unlock_irq(&k2->lock);
	}
	mutex_unlock(&k2_tasks_lock);
}

/*
 * Called when limits were set: after k2 was selected again, or when a bound becomes possible. A
 * device that got another's number is not guarded until a user has set its limits.
 */
void k2_tasks_arm(struct k2_data *k2)
{
	struct k2_task *task;

	mutex_lock(&k2_tasks_lock);
	/* On 7.3 a process may still have files of k2 open after k2 was replaced. */
	if (k2_find_device(k2->devt) == k2)
		list_for_each_entry(task, &k2_all_tasks, in_all)
			if (task->devt == k2->devt)
				k2_task_arm(task, k2);
	mutex_unlock(&k2_tasks_lock);
}

void k2_tasks_look(struct k2_data *k2)
{
	u32 i;

	for (i = 0; i < K2_DECLARED_MAX; i++) {
		struct k2_task *task = k2->guard->task[i];

		if (task && k2_owner_has_gone(&task->owner))
			k2_task_disarm(task, -ESRCH);
	}
}

/* The text for users. */

/* The part of a task that changes while requests come. */
struct k2_task_shown {
	struct k2_task_counts counts;
	bool is_armed;
	int error;
};

static void k2_task_copy(const struct k2_task *task, struct k2_task_shown *shown)
{
	shown->counts = k2_task_counts(task);
	shown->is_armed = task->is_armed;
	shown->error = task->error;
}

static void k2_task_look(const struct k2_task *task, struct k2_task_shown *shown)
{
	struct k2_data *k2 = task->k2;

	if (!k2) {
		k2_task_copy(task, shown);
		return;
	}
	spin_lock_irq(&k2->lock);
	k2_task_copy(task, shown);
	spin_unlock_irq(&k2->lock);
}

static const char *k2_task_state(const struct k2_task_shown *shown)
{
	if (shown->is_armed)
		return "armed";
	switch (shown->error) {
	case -ENODATA:
		return "no-limits";
	case -ERANGE:
		return "block-too-short";
	case -EBUSY:
		return "level-taken";
	case -ESRCH:
		return "owner-gone";
	default:
		return "no-k2";
	}
}

static size_t k2_task_print_counts(const struct k2_task_counts *counts, char *text, size_t size)
{
	static const char *const names[K2_CAUSES] = {
		[K2_CAUSE_POLICY] = "k2",	  [K2_CAUSE_DEVICE] = "device",
		[K2_CAUSE_EARLY] = "early_job",	  [K2_CAUSE_LATE] = "late_job",
		[K2_CAUSE_BYPASS] = "bypass",	  [K2_CAUSE_FORCED] = "forced",
		[K2_CAUSE_DISPATCH] = "dispatch",
	};
	unsigned int cause;
	size_t length;

	length = scnprintf(text, size,
			   " jobs=%llu early=%llu late=%llu foreign=%llu interrupted=%llu "
			   "waited_ns_max=%llu",
			   counts->jobs, counts->early, counts->late, counts->foreign,
			   counts->interrupted, counts->waited_ns_max);
	for (cause = 0; cause < K2_CAUSES; cause++)
		length += scnprintf(text + length, size - length, " over_%s=%llu", names[cause],
				    counts->waited_over[cause]);
	return length + scnprintf(text + length, size - length, "\n");
}

static size_t k2_task_print(struct k2_task *task, char *text, size_t size)
{
	const struct k2_declaration *stated = &task->stated;
	struct k2_task_shown shown;
	size_t length;

	k2_task_look(task, &shown);
	length = scnprintf(text, size, "dev=%u:%u level=%u period_us=%llu jitter_us=%llu",
			   MAJOR(task->devt), MINOR(task->devt), stated->level,
			   div_u64(stated->period_ns, NSEC_PER_USEC),
			   div_u64(stated->jitter_ns, NSEC_PER_USEC));
	length += scnprintf(text + length, size - length,
			    " think_us=%llu block_us=%llu exact=%u sporadic=%u owner=%s pid=%d",
			    div_u64(stated->think_ns, NSEC_PER_USEC),
			    div_u64(stated->block_ns, NSEC_PER_USEC), stated->exact,
			    stated->is_sporadic, task->owner.cgroup ? "cgroup" : "process",
			    pid_nr(task->owner.process));
	length += scnprintf(text + length, size - length, " state=%s", k2_task_state(&shown));
	return length + k2_task_print_counts(&shown.counts, text + length, size - length);
}

size_t k2_tasks_print_file(struct list_head *file, char *text, size_t size)
{
	struct k2_task *task;
	size_t length = 0;

	mutex_lock(&k2_tasks_lock);
	list_for_each_entry(task, file, in_file)
		length += k2_task_print(task, text + length, size - length);
	mutex_unlock(&k2_tasks_lock);
	return length;
}

size_t k2_tasks_print(struct k2_data *k2, char *text, size_t size)
{
	struct k2_task *task;
	size_t length = 0;

	mutex_lock(&k2_tasks_lock);
	list_for_each_entry(task, &k2_all_tasks, in_all)
		if (task->devt == k2->devt)
			length += k2_task_print(task, text + length, size - length);
	mutex_unlock(&k2_tasks_lock);
	return length;
}

static u64 k2_task_faults(const struct k2_task *task)
{
	struct k2_task_shown shown;
	const struct k2_task_counts *counts = &shown.counts;
	unsigned int cause;
	u64 faults;

	k2_task_look(task, &shown);
	faults = counts->early + counts->late + counts->foreign + counts->interrupted;
	for (cause = 0; cause < K2_CAUSES; cause++)
		faults += counts->waited_over[cause];
	return faults + (shown.error == -ESRCH);
}

u64 k2_tasks_faults(struct list_head *file)
{
	struct k2_task *task;
	u64 faults = 0;

	mutex_lock(&k2_tasks_lock);
	list_for_each_entry(task, file, in_file)
		faults += k2_task_faults(task);
	mutex_unlock(&k2_tasks_lock);
	return faults;
}
