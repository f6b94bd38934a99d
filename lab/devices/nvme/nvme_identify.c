// SPDX-License-Identifier: GPL-2.0-only
/* Identify (section 5.15): describes the controller and its namespaces. */
#include <linux/ctype.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "steady_nvme.h"

#define SECTOR_SHIFT_512 9
#define READS_AS_ZEROES	 1 /* DLFEAT: discarded blocks do */
#define ENTRY_SIZES	 0x11 /* required and largest, as shifts */
#define KELVIN_0_C	 273

/* ASCII fields are padded with blanks, without a terminating 0. */
static void put_text(char *to, size_t bytes, const char *text)
{
	size_t used = min(bytes, strlen(text));

	memset(to, ' ', bytes);
	memcpy(to, text, used);
}

static void identify_controller(const struct snvme *dev, struct nvme_id_ctrl *id)
{
	const struct snvme_config *config = dev->config;
	char serial[sizeof(id->sn) + 1];

	id->vid = cpu_to_le16(0xfff0);
	id->ssvid = id->vid;
	snprintf(serial, sizeof(serial), "STEADY%llu", config->ssd.seed);
	put_text(id->sn, sizeof(id->sn), serial);
	put_text(id->mn, sizeof(id->mn), config->model);
	put_text(id->fr, sizeof(id->fr), "1");
	id->mdts = ilog2(config->mdts_kib * 1024 / SNVME_PAGE);
	id->cntlid = cpu_to_le16(1);
	id->ver = cpu_to_le32(0x00010300);
	id->acl = 3;
	id->aerl = SNVME_EVENTS_MAX - 1;
	id->frmw = 3; /* one firmware slot, read-only */
	id->wctemp = cpu_to_le16(KELVIN_0_C + 85);
	id->cctemp = id->wctemp;
	snvme_put_u128(id->tnvmcap, config->ssd.capacity_mib << 20);
	id->sqes = NVME_NVM_IOSQES * ENTRY_SIZES;
	id->cqes = NVME_NVM_IOCQES * ENTRY_SIZES;
	id->nn = cpu_to_le32(config->namespaces);
	id->oncs = cpu_to_le16(NVME_CTRL_ONCS_DSM | NVME_CTRL_ONCS_WRITE_ZEROES);
	id->vwc = config->volatile_cache ? NVME_CTRL_VWC_PRESENT : 0;
	snprintf(id->subnqn, sizeof(id->subnqn), "nqn.2026-01.org.steadyio:ssd:%llu",
		 config->ssd.seed);
}

/* The name is the same in each boot. */
static void put_eui64(const struct snvme *dev, u32 nsid, u8 *to)
{
	__be64 name =
		cpu_to_be64(0x5354454144590000ull | (dev->config->ssd.seed & 0xff) << 8 | nsid);

	memcpy(to, &name, sizeof(name));
}

static void identify_namespace(const struct snvme *dev, u32 nsid, struct nvme_id_ns *id)
{
	id->nsze = cpu_to_le64(dev->config->namespace_sectors);
	id->ncap = id->nsze;
	id->nuse = id->nsze;
	id->dlfeat = READS_AS_ZEROES;
	snvme_put_u128(id->nvmcap, dev->config->namespace_sectors * SNVME_SECTOR_BYTES);
	put_eui64(dev, nsid, id->eui64);
	id->lbaf[0].ds = SECTOR_SHIFT_512;
}

static void active_namespaces(const struct snvme *dev, u32 after, __le32 *list)
{
	u32 nsid;

	for (nsid = after + 1; nsid <= dev->config->namespaces; nsid++)
		*list++ = cpu_to_le32(nsid);
}

static void namespace_names(const struct snvme *dev, u32 nsid, struct nvme_ns_id_desc *desc)
{
	desc->nidt = NVME_NIDT_EUI64;
	desc->nidl = NVME_NIDT_EUI64_LEN;
	put_eui64(dev, nsid, (u8 *)(desc + 1));
}

static u16 fill(const struct snvme *dev, const struct nvme_identify *command, void *page)
{
	u32 nsid = le32_to_cpu(command->nsid);
	bool exists = nsid && nsid <= dev->config->namespaces;

	switch (command->cns) {
	case NVME_ID_CNS_CTRL:
		identify_controller(dev, page);
		return 0;
	case NVME_ID_CNS_NS_ACTIVE_LIST:
		if (nsid >= NVME_NSID_ALL - 1)
			return NVME_SC_INVALID_NS | SNVME_DNR;
		active_namespaces(dev, nsid, page);
		return 0;
	case NVME_ID_CNS_NS:
		if (!exists)
			return NVME_SC_INVALID_NS | SNVME_DNR;
		identify_namespace(dev, nsid, page);
		return 0;
	case NVME_ID_CNS_NS_DESC_LIST:
		if (!exists)
			return NVME_SC_INVALID_NS | SNVME_DNR;
		namespace_names(dev, nsid, page);
		return 0;
	}
	return NVME_SC_INVALID_FIELD | SNVME_DNR;
}

/* Called by the worker. Returns a status code. */
u16 snvme_identify(struct snvme *dev, const struct nvme_command *command)
{
	void *page = kzalloc(NVME_IDENTIFY_DATA_SIZE, GFP_NOIO);
	u16 status;

	if (!page)
		return NVME_SC_INTERNAL;
	status = fill(dev, &command->identify, page);
	if (!status)
		status = snvme_dma_to_host(command, page, NVME_IDENTIFY_DATA_SIZE);
	kfree(page);
	return status;
}
