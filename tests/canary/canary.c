// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module with one bug on demand: proof that the lab notices each kind. Loaded by
 * tests/test_boot.py and, for what takes several CPUs, by tests/races, which expect every boot with
 * it to fail.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *bug = "none";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug,
		 "warn, lock_order, use_after_free, list, hang, race, race_to_free, sleep, none");

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);

static void lock_order(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);
	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

static void use_after_free(void)
{
	volatile char *bytes = kmalloc(64, GFP_KERNEL);

	kfree((void *)bytes);
	if (bytes)
		bytes[8] = 1;
}

static void corrupt_list(void)
{
	struct list_head entry;
	LIST_HEAD(list);

	list_add(&entry, &list);
	list_del(&entry);
	list_del(&entry);
}

static int sleep_for_ever(void *unused)
{
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule();
	return 0;
}

/* Two threads that race, until the module goes. */
static struct task_struct *racers[2];
static int counted;
static char *object;

static int count(void *unused)
{
	while (!kthread_should_stop()) {
		counted++;
		cond_resched();
	}
	return 0;
}

static int replace(void *unused)
{
	while (!kthread_should_stop()) {
		kfree(xchg(&object, kmalloc(64, GFP_KERNEL)));
		usleep_range(10, 50);
	}
	kfree(xchg(&object, NULL));
	return 0;
}

static int use(void *unused)
{
	while (!kthread_should_stop()) {
		char *bytes = READ_ONCE(object);

		udelay(10);
		if (bytes)
			WRITE_ONCE(*bytes, 1);
		cond_resched();
	}
	return 0;
}

static void race(int (*one)(void *), int (*other)(void *))
{
	racers[0] = kthread_run(one, NULL, "canary0");
	racers[1] = kthread_run(other, NULL, "canary1");
}

static void sleep_with_lock(void)
{
	spin_lock(&first);
	might_sleep();
	spin_unlock(&first);
}

static int __init canary_init(void)
{
	if (!strcmp(bug, "warn"))
		WARN_ON(1);
	else if (!strcmp(bug, "lock_order"))
		lock_order();
	else if (!strcmp(bug, "use_after_free"))
		use_after_free();
	else if (!strcmp(bug, "list"))
		corrupt_list();
	else if (!strcmp(bug, "hang"))
		kthread_run(sleep_for_ever, NULL, "canary");
	else if (!strcmp(bug, "race"))
		race(count, count);
	else if (!strcmp(bug, "race_to_free"))
		race(use, replace);
	else if (!strcmp(bug, "sleep"))
		sleep_with_lock();
	else if (strcmp(bug, "none"))
		return -EINVAL;
	return 0;
}

static void __exit canary_exit(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(racers); i++)
		if (!IS_ERR_OR_NULL(racers[i]))
			kthread_stop(racers[i]);
}

module_init(canary_init);
module_exit(canary_exit);
MODULE_DESCRIPTION("bugs on demand for the lab's own tests");
MODULE_LICENSE("GPL");
