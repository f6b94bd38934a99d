// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin commands (section 5): queues, features, abort, asynchronous events. The worker executes all
 * but the requests for events, after the data of I/O commands that came before them.
 */
#include "steady_nvme.h"

/* Feature 7: the numbers of submission and of completion queues, each minus one. */
#define QUEUES_FEATURE 0x10001

static u16 invalid_field(void)
{
	return NVME_SC_INVALID_FIELD | SNVME_DNR;
}

/* Called with the lock held, for each command out of the admin queue. */
void snvme_admin_start(struct snvme *dev, struct snvme_slot *slot, u64 now_ns)
{
	dev->stats.admin++;
	if (slot->command.common.opcode == nvme_admin_async_event &&
	    dev->events < SNVME_EVENTS_MAX) {
		slot->event = true;
		slot->parts = SNVME_TIME;
		dev->events++;
		return;
	}
	snvme_wait_fixed(dev, slot, now_ns);
	snvme_give_to_worker(dev, slot);
}

/* The memory of a new queue must be contiguous and aligned to a page. */
static u16 check_new_queue(const struct snvme *dev, u16 id, bool exists, u32 entries,
			   u32 entry_bytes, u64 base, u16 flags)
{
	if (!id || id > dev->config->queues || exists)
		return NVME_SC_QID_INVALID | SNVME_DNR;
	if (entries < 2 || entries > dev->config->queue_entries)
		return NVME_SC_QUEUE_SIZE | SNVME_DNR;
	if (!(flags & NVME_QUEUE_PHYS_CONTIG))
		return invalid_field();
	if (base % SNVME_PAGE)
		return NVME_SC_PRP_INVALID_OFFSET | SNVME_DNR;
	if (!snvme_dma_memory(base, entries * entry_bytes))
		return NVME_SC_DATA_XFER_ERROR | SNVME_DNR;
	return 0;
}

static u16 create_cq(struct snvme *dev, const struct nvme_create_cq *command)
{
	u16 id = le16_to_cpu(command->cqid), flags = le16_to_cpu(command->cq_flags);
	u16 vector = le16_to_cpu(command->irq_vector);
	u32 entries = le16_to_cpu(command->qsize) + 1;
	u64 base = le64_to_cpu(command->prp1);
	bool exists = id <= dev->config->queues && dev->cq[id].live;
	u16 status = check_new_queue(dev, id, exists, entries, sizeof(struct nvme_completion), base,
				     flags);

	if (status)
		return status;
	if (vector > dev->config->queues)
		return NVME_SC_INVALID_VECTOR | SNVME_DNR;
	snvme_cq_start(dev, id, base, entries, vector, flags & NVME_CQ_IRQ_ENABLED);
	return 0;
}

static u16 create_sq(struct snvme *dev, const struct nvme_create_sq *command)
{
	u16 id = le16_to_cpu(command->sqid), cq = le16_to_cpu(command->cqid);
	u32 entries = le16_to_cpu(command->qsize) + 1;
	u64 base = le64_to_cpu(command->prp1);
	bool exists = id <= dev->config->queues && dev->sq[id].live;
	u16 status = check_new_queue(dev, id, exists, entries, sizeof(struct nvme_command), base,
				     le16_to_cpu(command->sq_flags));

	if (status)
		return status;
	if (!cq || cq > dev->config->queues || !dev->cq[cq].live)
		return NVME_SC_CQ_INVALID | SNVME_DNR;
	snvme_sq_start(dev, id, base, entries, cq);
	return 0;
}

static u16 delete_sq(struct snvme *dev, u16 id)
{
	if (!id || id > dev->config->queues || !dev->sq[id].live)
		return NVME_SC_QID_INVALID | SNVME_DNR;
	snvme_sq_stop(dev, id);
	return 0;
}

static u16 delete_cq(struct snvme *dev, u16 id)
{
	u32 sq;

	if (!id || id > dev->config->queues || !dev->cq[id].live)
		return NVME_SC_QID_INVALID | SNVME_DNR;
	for (sq = 1; sq <= dev->config->queues; sq++)
		if (dev->sq[sq].live && dev->sq[sq].cq == id)
			return NVME_SC_INVALID_QUEUE | SNVME_DNR;
	snvme_cq_stop(dev, id);
	return 0;
}

/* The features of a controller without power states, namespace features or saved values. */
static bool has_feature(const struct snvme *dev, u32 id)
{
	switch (id) {
	case NVME_FEAT_VOLATILE_WC:
		return dev->config->volatile_cache;
	case NVME_FEAT_ARBITRATION:
	case NVME_FEAT_POWER_MGMT:
	case NVME_FEAT_TEMP_THRESH:
	case NVME_FEAT_ERR_RECOVERY:
	case NVME_FEAT_NUM_QUEUES:
	case NVME_FEAT_IRQ_COALESCE:
	case NVME_FEAT_IRQ_CONFIG:
	case NVME_FEAT_WRITE_ATOMIC:
	case NVME_FEAT_ASYNC_EVENT:
		return true;
	}
	return false;
}

/* Called with the lock held. */
void snvme_features_reset(struct snvme *dev)
{
	memset(dev->feature, 0, sizeof(dev->feature));
	dev->feature[NVME_FEAT_VOLATILE_WC] = 1;
	dev->feature[NVME_FEAT_NUM_QUEUES] = (dev->config->queues - 1) * QUEUES_FEATURE;
}

static u16 get_features(struct snvme *dev, struct snvme_slot *slot)
{
	u32 id = le32_to_cpu(slot->command.features.fid) & 0xff;

	if (!has_feature(dev, id))
		return invalid_field();
	slot->result = dev->feature[id];
	return 0;
}

static u16 set_features(struct snvme *dev, struct snvme_slot *slot)
{
	u32 id = le32_to_cpu(slot->command.features.fid) & 0xff;
	u32 value = le32_to_cpu(slot->command.features.dword11);

	if (!has_feature(dev, id))
		return invalid_field();
	if (id != NVME_FEAT_NUM_QUEUES) {
		dev->feature[id] = value;
		return 0;
	}
	/* A request for 65536 queues is invalid (5.21.1.7); any other gets all queues there are. */
	if ((value & 0xffff) == 0xffff || value >> 16 == 0xffff)
		return invalid_field();
	slot->result = dev->feature[id];
	return 0;
}

/* Only a command that gets no answer needs an abort; others end by themselves. */
static void abort_command(struct snvme *dev, struct snvme_slot *abort)
{
	const struct nvme_abort_cmd *command = &abort->command.abort;
	u32 index;

	abort->result = 1; /* not aborted */
	for (index = 0; index < dev->slot_count; index++) {
		struct snvme_slot *slot = &dev->slots[index];

		if (!slot->busy || !slot->silent || slot->sq != le16_to_cpu(command->sqid) ||
		    slot->command.common.command_id != command->cid)
			continue;
		slot->silent = false;
		slot->status = NVME_SC_ABORT_REQ;
		snvme_part_done(dev, slot, SNVME_TIME);
		abort->result = 0;
		return;
	}
}

/* Executes commands that change queues, features, or other commands. */
static u16 execute_locked(struct snvme *dev, struct snvme_slot *slot)
{
	const struct nvme_command *command = &slot->command;

	switch (command->common.opcode) {
	case nvme_admin_create_cq:
		return create_cq(dev, &command->create_cq);
	case nvme_admin_create_sq:
		return create_sq(dev, &command->create_sq);
	case nvme_admin_delete_cq:
		return delete_cq(dev, le16_to_cpu(command->delete_queue.qid));
	case nvme_admin_delete_sq:
		return delete_sq(dev, le16_to_cpu(command->delete_queue.qid));
	case nvme_admin_get_features:
		return get_features(dev, slot);
	case nvme_admin_set_features:
		return set_features(dev, slot);
	case nvme_admin_abort_cmd:
		abort_command(dev, slot);
		return 0;
	case nvme_admin_async_event:
		return NVME_SC_ASYNC_LIMIT | SNVME_DNR;
	}
	return NVME_SC_INVALID_OPCODE | SNVME_DNR;
}

static u16 execute(struct snvme *dev, struct snvme_slot *slot)
{
	u16 status;

	if (slot->command.common.flags)
		return invalid_field();
	switch (slot->command.common.opcode) {
	case nvme_admin_identify:
		return snvme_identify(dev, &slot->command);
	case nvme_admin_get_log_page:
		return snvme_get_log(dev, &slot->command);
	}
	spin_lock_irq(&dev->lock);
	status = execute_locked(dev, slot);
	spin_unlock_irq(&dev->lock);
	return status;
}

/* Called by the worker, without the lock. */
void snvme_admin_work(struct snvme *dev, struct snvme_slot *slot)
{
	slot->status = execute(dev, slot);
}
