// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: commands come out of submission queues and wait in a slot for their parts. Their answers
 * go into completion queues. One timer runs all due events, and only it interrupts the host. No
 * lock of the controller may be held then, because the host answers with a doorbell.
 */
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/pci_regs.h>
#include <linux/slab.h>

#include "hrtimer_setup.h"
#include "steady_nvme.h"

#define DONE_TAGS 32

/* Called with the lock held, by the code that has made an event due at that time. */
void snvme_timer_at(struct snvme *dev, u64 at_ns)
{
	lockdep_assert_held(&dev->lock);
	if (at_ns >= dev->timer_ns)
		return;
	dev->timer_ns = at_ns;
	hrtimer_start(&dev->timer, ns_to_ktime(at_ns), HRTIMER_MODE_ABS_HARD);
}

static void timer_now(struct snvme *dev)
{
	snvme_timer_at(dev, 0);
}

/* Sets the timer to the next event. */
static void timer_next(struct snvme *dev)
{
	struct snvme_slot *first;

	snvme_timer_at(dev, ssd_next_ns(dev->ssd));
	first = list_first_entry_or_null(&dev->due, struct snvme_slot, due_link);
	if (first)
		snvme_timer_at(dev, first->due_ns);
}

static struct snvme_slot *slot_get(struct snvme *dev)
{
	struct snvme_slot *slot = list_first_entry_or_null(&dev->free, struct snvme_slot, link);

	if (!slot)
		return NULL;
	list_del(&slot->link);
	*slot = (struct snvme_slot){.busy = true};
	INIT_LIST_HEAD(&slot->link);
	INIT_LIST_HEAD(&slot->due_link);
	return slot;
}

static void slot_put(struct snvme *dev, struct snvme_slot *slot)
{
	kfree(slot->ranges);
	slot->ranges = NULL;
	dev->rooms -= slot->room;
	slot->busy = false;
	list_move(&slot->link, &dev->free);
}

/* The command takes a fixed time and does not use the drive: rejected, or an admin command. */
void snvme_wait_fixed(struct snvme *dev, struct snvme_slot *slot, u64 now_ns)
{
	slot->parts |= SNVME_TIME;
	slot->due_ns = now_ns + dev->config->admin_ns;
	list_add_tail(&slot->due_link, &dev->due);
}

void snvme_give_to_worker(struct snvme *dev, struct snvme_slot *slot)
{
	slot->parts |= SNVME_WORK;
	list_add_tail(&slot->link, &dev->work_list);
	queue_work(dev->workers, &dev->worker);
}

/* A part of the command is done; the last part makes its answer ready. */
void snvme_part_done(struct snvme *dev, struct snvme_slot *slot, enum snvme_part part)
{
	struct snvme_cq *cq = &dev->cq[dev->sq[slot->sq].cq];

	lockdep_assert_held(&dev->lock);
	slot->parts &= ~part;
	if (slot->parts)
		return;
	if (slot->sq && !slot->orphan)
		dev->stats.inflight--;
	if (slot->orphan || !cq->live) {
		slot_put(dev, slot);
		return;
	}
	list_move_tail(&slot->link, &cq->answers);
	timer_now(dev);
}

/*
 * No answer: the command's queue is gone, or the controller is reset. The drive cannot stop it.
 */
void snvme_abandon(struct snvme *dev, struct snvme_slot *slot)
{
	if (slot->sq && !slot->orphan && slot->parts)
		dev->stats.inflight--;
	if (slot->event)
		dev->events--;
	slot->orphan = true;
	slot->event = false;
	list_del_init(&slot->due_link);
	if (!slot->in_drive)
		slot->parts &= ~SNVME_TIME;
	if (!slot->parts)
		slot_put(dev, slot);
}

static bool cq_full(const struct snvme_cq *cq)
{
	return (cq->tail + 1) % cq->entries == cq->head;
}

static void put_answer(struct snvme *dev, struct snvme_cq *cq, struct snvme_slot *slot)
{
	struct nvme_completion *entry =
		snvme_dma_memory(cq->base + cq->tail * sizeof(*entry), sizeof(*entry));

	entry->result.u64 = cpu_to_le64(slot->result);
	entry->sq_head = cpu_to_le16(dev->sq[slot->sq].head);
	entry->sq_id = cpu_to_le16(slot->sq);
	entry->command_id = slot->command.common.command_id;
	/* The host polls the phase, which validates the entry. */
	smp_wmb();
	WRITE_ONCE(entry->status, cpu_to_le16(slot->status << 1 | cq->phase));
	cq->tail = (cq->tail + 1) % cq->entries;
	if (!cq->tail)
		cq->phase = !cq->phase;
}

static void put_answers(struct snvme *dev, struct snvme_cq *cq)
{
	struct snvme_slot *slot, *next;

	if (!cq->live || list_empty(&cq->answers) || cq_full(cq))
		return;
	list_for_each_entry_safe(slot, next, &cq->answers, link) {
		if (cq_full(cq))
			break;
		put_answer(dev, cq, slot);
		slot_put(dev, slot);
	}
	if (cq->interrupts)
		__set_bit(cq->vector, &dev->interrupts);
}

static bool has_commands(const struct snvme_sq *sq)
{
	return sq->live && sq->head != sq->tail;
}

/* Takes commands until the queue is empty or there is no room. */
void snvme_fetch(struct snvme *dev, struct snvme_sq *sq, u64 now_ns)
{
	lockdep_assert_held(&dev->lock);
	while (has_commands(sq)) {
		u64 at = sq->base + sq->head * sizeof(struct nvme_command);
		struct snvme_slot *slot = NULL;

		if (!sq->id || dev->rooms < dev->config->ssd.queue_commands)
			slot = slot_get(dev);
		if (!slot) {
			dev->stalled = true;
			break;
		}
		slot->sq = sq->id;
		slot->command = *(struct nvme_command *)snvme_dma_memory(at, sizeof(slot->command));
		sq->head = (sq->head + 1) % sq->entries;
		if (sq->id)
			snvme_io_start(dev, slot, now_ns);
		else
			snvme_admin_start(dev, slot, now_ns);
	}
	timer_next(dev);
}

static void fetch_stalled(struct snvme *dev, u64 now_ns)
{
	u32 id;

	if (!dev->stalled)
		return;
	dev->stalled = false;
	for (id = 0; id <= dev->config->queues; id++)
		snvme_fetch(dev, &dev->sq[id], now_ns);
}

static void run_drive(struct snvme *dev, u64 now_ns)
{
	u32 tags[DONE_TAGS], count, index;

	do {
		count = ssd_run(dev->ssd, now_ns, tags, DONE_TAGS);
		for (index = 0; index < count; index++) {
			struct snvme_slot *slot = &dev->slots[tags[index]];

			if (!slot->orphan && snvme_io_next_range(dev, slot, now_ns))
				continue;
			slot->in_drive = false;
			snvme_part_done(dev, slot, SNVME_TIME);
		}
	} while (count == DONE_TAGS);
}

static void run_fixed(struct snvme *dev, u64 now_ns)
{
	struct snvme_slot *slot, *next;

	list_for_each_entry_safe(slot, next, &dev->due, due_link) {
		if (slot->due_ns > now_ns)
			break;
		list_del_init(&slot->due_link);
		snvme_part_done(dev, slot, SNVME_TIME);
	}
}

/* Takes the interrupts that are enabled and not masked; @data: the host's message of each. */
static u32 take_interrupts(struct snvme *dev, u32 *data)
{
	u32 vector, count = 0;

	if (!dev->msix_enabled || dev->msix_masked)
		return 0;
	for (vector = 0; vector <= dev->config->queues; vector++) {
		const u32 *entry = dev->msix[vector].word;

		if (!test_bit(vector, &dev->interrupts) ||
		    entry[SNVME_MSIX_CONTROL] & PCI_MSIX_ENTRY_CTRL_MASKBIT)
			continue;
		__clear_bit(vector, &dev->interrupts);
		data[count++] = entry[SNVME_MSIX_DATA];
	}
	dev->stats.interrupts += count;
	return count;
}

static enum hrtimer_restart timer_fires(struct hrtimer *timer)
{
	struct snvme *dev = container_of(timer, struct snvme, timer);
	u32 data[SNVME_VECTORS_MAX], count, index, id;
	unsigned long flags;
	u64 now_ns;

	spin_lock_irqsave(&dev->lock, flags);
	/* Events that become due below are handled below. */
	dev->timer_ns = 0;
	now_ns = ktime_get_ns();
	run_drive(dev, now_ns);
	run_fixed(dev, now_ns);
	for (id = 0; id <= dev->config->queues; id++)
		put_answers(dev, &dev->cq[id]);
	dev->timer_ns = SSD_NEVER;
	fetch_stalled(dev, now_ns);
	timer_next(dev);
	count = take_interrupts(dev, data);
	spin_unlock_irqrestore(&dev->lock, flags);
	/* UML's message is the number of the interrupt (arch/um/drivers/virt-pci.c). */
	for (index = 0; index < count; index++)
		generic_handle_irq(data[index]);
	return HRTIMER_NORESTART;
}

static struct snvme_slot *next_work(struct snvme *dev)
{
	struct snvme_slot *slot;

	spin_lock_irq(&dev->lock);
	slot = list_first_entry_or_null(&dev->work_list, struct snvme_slot, link);
	if (slot)
		list_del_init(&slot->link);
	else if (dev->resetting)
		snvme_reset(dev);
	spin_unlock_irq(&dev->lock);
	return slot;
}

/* Runs commands that may sleep, in the order in which they came. A reset waits for it. */
static void work(struct work_struct *worker)
{
	struct snvme *dev = container_of(worker, struct snvme, worker);
	struct snvme_slot *slot;

	while ((slot = next_work(dev))) {
		if (slot->sq)
			snvme_io_work(dev, slot);
		else
			snvme_admin_work(dev, slot);
		spin_lock_irq(&dev->lock);
		snvme_part_done(dev, slot, SNVME_WORK);
		spin_unlock_irq(&dev->lock);
	}
}

void snvme_sq_start(struct snvme *dev, u16 id, u64 base, u32 entries, u16 cq)
{
	dev->sq[id] = (struct snvme_sq){
		.live = true,
		.id = id,
		.cq = cq,
		.entries = entries,
		.base = base,
	};
}

void snvme_sq_stop(struct snvme *dev, u16 id)
{
	u32 index;

	lockdep_assert_held(&dev->lock);
	dev->sq[id].live = false;
	for (index = 0; index < dev->slot_count; index++)
		if (dev->slots[index].busy && dev->slots[index].sq == id)
			snvme_abandon(dev, &dev->slots[index]);
	timer_now(dev); /* for commands that found no room */
}

void snvme_cq_start(struct snvme *dev, u16 id, u64 base, u32 entries, u16 vector, bool interrupts)
{
	struct snvme_cq *cq = &dev->cq[id];

	cq->live = true;
	cq->interrupts = interrupts;
	cq->phase = true;
	cq->vector = vector;
	cq->entries = entries;
	cq->head = 0;
	cq->tail = 0;
	cq->base = base;
}

void snvme_cq_stop(struct snvme *dev, u16 id)
{
	dev->cq[id].live = false;
}

/*
 * An asynchronous event answers a request for events if the controller has one. Else it is lost, as
 * is one that comes while another waits to be read.
 */
void snvme_event(struct snvme *dev, u8 type, u8 info, u8 log)
{
	u32 index;

	lockdep_assert_held(&dev->lock);
	for (index = 0; index < dev->slot_count; index++) {
		struct snvme_slot *slot = &dev->slots[index];

		if (!slot->busy || !slot->event)
			continue;
		slot->event = false;
		dev->events--;
		slot->result = type | info << 8 | log << 16;
		snvme_part_done(dev, slot, SNVME_TIME);
		return;
	}
}

int snvme_queues_create(struct snvme *dev)
{
	u32 index;

	spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->free);
	INIT_LIST_HEAD(&dev->due);
	INIT_LIST_HEAD(&dev->work_list);
	for (index = 0; index <= SNVME_QUEUES_MAX; index++)
		INIT_LIST_HEAD(&dev->cq[index].answers);
	compat_hrtimer_setup(&dev->timer, timer_fires, HRTIMER_MODE_ABS_HARD);
	dev->timer_ns = SSD_NEVER;
	INIT_WORK(&dev->worker, work);

	dev->slot_count = dev->config->ssd.queue_commands + SNVME_SLOTS_MORE;
	dev->slots = kvcalloc(dev->slot_count, sizeof(*dev->slots), GFP_KERNEL);
	if (!dev->slots)
		return -ENOMEM;
	for (index = 0; index < dev->slot_count; index++)
		list_add_tail(&dev->slots[index].link, &dev->free);
	dev->workers = alloc_ordered_workqueue("steady_nvme", WQ_MEM_RECLAIM | WQ_HIGHPRI);
	if (!dev->workers) {
		kvfree(dev->slots);
		return -ENOMEM;
	}
	return 0;
}

/* Called only before the device is visible. */
void snvme_queues_destroy(struct snvme *dev)
{
	destroy_workqueue(dev->workers);
	kvfree(dev->slots);
}
