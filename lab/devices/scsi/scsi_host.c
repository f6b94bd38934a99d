// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host. A command may come in atomic context, but the disk's data may be in a file: a thread
 * runs it, with the time at which it came. Its timer completes it. On a workqueue a command was
 * sometimes 7 to 14 ms late.
 */
#include <linux/device.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <scsi/scsi.h>
#include <scsi/scsi_host.h>

#include "hrtimer_setup.h"
#include "steady_scsi.h"

#define SSCSI_DRIVER "steady_scsi"

/* Behind each command of the kernel. */
struct sscsi_task {
	struct list_head link; /* in inflight */
	struct kthread_work work;
	struct hrtimer timer;
	struct scsi_cmnd *cmd;
	struct sscsi_disk *disk;
	u64 arrived_ns;
};

static struct device *parent;
static struct Scsi_Host *host;
static struct kthread_worker *worker;
static LIST_HEAD(inflight); /* protected by the host's lock */

static struct sscsi_disk *disk_of(struct Scsi_Host *shost)
{
	return *(struct sscsi_disk **)shost->hostdata;
}

/* Returns whether @task was in flight. */
static bool take_out(struct sscsi_task *task)
{
	unsigned long flags;
	bool was_in;

	spin_lock_irqsave(host->host_lock, flags);
	was_in = !list_empty(&task->link);
	list_del_init(&task->link);
	task->disk->stats.inflight -= was_in;
	spin_unlock_irqrestore(host->host_lock, flags);
	return was_in;
}

/* In the timer, or in the thread for a command that takes no time. */
static void complete_task(struct sscsi_task *task)
{
	if (take_out(task))
		scsi_done(task->cmd);
}

static enum hrtimer_restart task_due(struct hrtimer *timer)
{
	complete_task(container_of(timer, struct sscsi_task, timer));
	return HRTIMER_NORESTART;
}

static void run_task(struct kthread_work *work)
{
	struct sscsi_task *task = container_of(work, struct sscsi_task, work);
	struct sscsi_answer answer = {.finish_ns = task->arrived_ns};

	sscsi_disk_command(task->disk, task->cmd, task->arrived_ns, &answer);
	if (answer.silent)
		return;
	if (answer.finish_ns <= ktime_get_ns())
		complete_task(task);
	else
		hrtimer_start(&task->timer, ns_to_ktime(answer.finish_ns), HRTIMER_MODE_ABS_SOFT);
}

/* Called by queue_command() with the host's lock held. */
static int queue_command_lck(struct scsi_cmnd *cmd)
{
	struct sscsi_task *task = scsi_cmd_priv(cmd);
	struct sscsi_disk *disk = disk_of(cmd->device->host);
	struct sscsi_stats *stats = &disk->stats;

	task->cmd = cmd;
	task->disk = disk;
	task->arrived_ns = ktime_get_ns();
	kthread_init_work(&task->work, run_task);
	compat_hrtimer_setup(&task->timer, task_due, HRTIMER_MODE_ABS_SOFT);
	list_add_tail(&task->link, &inflight);
	stats->inflight++;
	stats->inflight_max = max(stats->inflight_max, stats->inflight);
	kthread_queue_work(worker, &task->work);
	return 0;
}

static DEF_SCSI_QCMD(queue_command);

static void cancel_task(struct sscsi_task *task)
{
	kthread_cancel_work_sync(&task->work);
	hrtimer_cancel(&task->timer);
	take_out(task);
}

/* Called by the kernel's error handler when a command's time is up, for the first time. */
static int abort_command(struct scsi_cmnd *cmd)
{
	cancel_task(scsi_cmd_priv(cmd));
	return SUCCESS;
}

static struct sscsi_task *first_in_flight(void)
{
	struct sscsi_task *task;

	spin_lock_irq(host->host_lock);
	task = list_first_entry_or_null(&inflight, struct sscsi_task, link);
	spin_unlock_irq(host->host_lock);
	return task;
}

/* Called by the kernel's error handler after that. No new command comes meanwhile. */
static int reset_device(struct scsi_cmnd *cmd)
{
	struct sscsi_task *task;

	while ((task = first_in_flight()))
		cancel_task(task);
	return SUCCESS;
}

/* Not const: 6.1 wants it so. */
static struct scsi_host_template template = {
	.module = THIS_MODULE,
	.name = SSCSI_DRIVER,
	.proc_name = SSCSI_DRIVER,
	.queuecommand = queue_command,
	.eh_abort_handler = abort_command,
	.eh_device_reset_handler = reset_device,
	.this_id = -1,
	.sg_tablesize = SSCSI_SEGMENTS_MAX,
	.max_sectors = SSCSI_REQUEST_BYTES / FLASH_SECTOR_BYTES,
	.cmd_size = sizeof(struct sscsi_task),
};

static int add_host(struct sscsi_disk *disk)
{
	int err;

	host = scsi_host_alloc(&template, sizeof(disk));
	if (!host)
		return -ENOMEM;
	*(struct sscsi_disk **)host->hostdata = disk;
	host->can_queue = disk->config->flash.depth;
	host->cmd_per_lun = disk->config->flash.depth;
	host->max_id = 1;
	host->max_lun = 1;
	err = scsi_add_host(host, parent);
	if (err)
		scsi_host_put(host);
	return err;
}

/* Called by module init. */
int sscsi_host_create(struct sscsi_disk *disk)
{
	int err;

	worker = kthread_create_worker(0, SSCSI_DRIVER);
	if (IS_ERR(worker))
		return PTR_ERR(worker);
	/* Since 6.14 it does not start by itself. */
	wake_up_process(worker->task);
	parent = root_device_register(SSCSI_DRIVER);
	if (IS_ERR(parent)) {
		err = PTR_ERR(parent);
		goto out_worker;
	}
	err = add_host(disk);
	if (err)
		goto out_parent;
	scsi_scan_host(host);
	return 0;

out_parent:
	root_device_unregister(parent);
out_worker:
	kthread_destroy_worker(worker);
	return err;
}

/* Called by module exit: no request can come, and all have completed. */
void sscsi_host_destroy(void)
{
	scsi_remove_host(host);
	scsi_host_put(host);
	root_device_unregister(parent);
	kthread_destroy_worker(worker);
}
