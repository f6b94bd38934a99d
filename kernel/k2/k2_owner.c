// SPDX-License-Identifier: GPL-2.0-only
/*
 * The owner of a declared task: a process with its threads, or a cgroup with its descendants.
 *
 * Kernel threads count as the owner: a driver above, such as dm-crypt, passes on the owner's
 * requests from a worker.
 */
#include <linux/cgroup.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "k2_owner.h"

#ifdef CONFIG_CGROUPS

/* NULL: the root cgroup, which contains every process. */
static struct cgroup *k2_cgroup_get(void)
{
	struct cgroup *cgroup;

	rcu_read_lock();
	/* A cgroup that current has just left may be going away. */
	do
		cgroup = task_dfl_cgroup(current);
	while (!cgroup_tryget(cgroup));
	rcu_read_unlock();
	if (cgroup->level)
		return cgroup;
	cgroup_put(cgroup);
	return NULL;
}

static void k2_cgroup_put(struct cgroup *cgroup)
{
	cgroup_put(cgroup);
}

static bool k2_cgroup_has_current(struct cgroup *cgroup)
{
	bool has_current;

	rcu_read_lock();
	has_current = cgroup_is_descendant(task_dfl_cgroup(current), cgroup);
	rcu_read_unlock();
	return has_current;
}

static bool k2_cgroup_has_gone(struct cgroup *cgroup)
{
	return !(cgroup->self.flags & CSS_ONLINE);
}

#else

static struct cgroup *k2_cgroup_get(void)
{
	return NULL;
}

static void k2_cgroup_put(struct cgroup *cgroup)
{
}

static bool k2_cgroup_has_current(struct cgroup *cgroup)
{
	return false;
}

static bool k2_cgroup_has_gone(struct cgroup *cgroup)
{
	return true;
}

#endif

bool k2_owner_get(struct k2_owner *owner, bool is_cgroup)
{
	owner->cgroup = is_cgroup ? k2_cgroup_get() : NULL;
	if (is_cgroup && !owner->cgroup)
		return false;
	owner->process = get_pid(task_tgid(current));
	return true;
}

void k2_owner_put(struct k2_owner *owner)
{
	put_pid(owner->process);
	if (owner->cgroup)
		k2_cgroup_put(owner->cgroup);
}

bool k2_owner_is_current(const struct k2_owner *owner)
{
	if (current->flags & PF_KTHREAD)
		return true;
	if (owner->cgroup)
		return k2_cgroup_has_current(owner->cgroup);
	return task_tgid(current) == owner->process;
}

bool k2_owner_is_same(const struct k2_owner *one, const struct k2_owner *other)
{
	return one->cgroup == other->cgroup && (one->cgroup || one->process == other->process);
}

bool k2_owner_has_gone(const struct k2_owner *owner)
{
	bool has_gone;

	if (owner->cgroup)
		return k2_cgroup_has_gone(owner->cgroup);
	rcu_read_lock();
	has_gone = !pid_task(owner->process, PIDTYPE_TGID);
	rcu_read_unlock();
	return has_gone;
}
