// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's memory that a command points to: two PRP entries, the second of which may be a list
 * (section 4.3). Addresses are those of the guest's memory, as there is no IOMMU.
 *
 * A wrong entry gives the status of the specification. Memory beyond the guest's is not accessed,
 * nor is the kernel's image: no driver maps it, parts of it are read-only, and an access to its
 * holes would be a fault of the kernel.
 */
#include <asm/byteorder.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "steady_nvme.h"

#define PRP_ENTRIES (SNVME_PAGE / sizeof(__le64))

/* The page of zeroes is reserved like the kernel's image, but may be written to a drive. */
static bool may_be_mapped(unsigned long pfn)
{
	return pfn_valid(pfn) &&
	       (!PageReserved(pfn_to_page(pfn)) || pfn_to_page(pfn) == ZERO_PAGE(0));
}

/* The memory at @address. NULL unless all of @bytes exists and a driver may map it. */
void *snvme_dma_memory(u64 address, u64 bytes)
{
	u64 last = address + bytes - 1;
	unsigned long pfn;

	if (!bytes || last < address || !pfn_valid(PHYS_PFN(last)))
		return NULL;
	for (pfn = PHYS_PFN(address); pfn <= PHYS_PFN(last); pfn++)
		if (!may_be_mapped(pfn))
			return NULL;
	return phys_to_virt(address);
}

struct prp_walk {
	snvme_segment_fn *each;
	void *context;
	u32 bytes;
	u32 done;
};

static u16 segment(struct prp_walk *walk, u64 address)
{
	u32 bytes = min_t(u32, walk->bytes - walk->done, SNVME_PAGE - address % SNVME_PAGE);
	void *at = snvme_dma_memory(address, bytes);
	u16 status = 0;

	if (!at)
		return NVME_SC_DATA_XFER_ERROR | SNVME_DNR;
	if (walk->each)
		status = walk->each(walk->context, at, bytes, walk->done);
	walk->done += bytes;
	return status;
}

static u16 next_page(struct prp_walk *walk, u64 address)
{
	if (address % SNVME_PAGE)
		return NVME_SC_PRP_INVALID_OFFSET | SNVME_DNR;
	return segment(walk, address);
}

/* If a list has more entries than fit, the last one on its page points to the next page. */
static u16 prp_list(struct prp_walk *walk, u64 list)
{
	while (walk->done < walk->bytes) {
		u32 offset = list % SNVME_PAGE, index;
		u32 left = DIV_ROUND_UP(walk->bytes - walk->done, SNVME_PAGE);
		u32 entries = PRP_ENTRIES - offset / sizeof(__le64);
		bool chained = left > entries;
		const __le64 *entry;

		if (offset % sizeof(__le64))
			return NVME_SC_PRP_INVALID_OFFSET | SNVME_DNR;
		entry = snvme_dma_memory(list, min(left, entries) * sizeof(__le64));
		if (!entry)
			return NVME_SC_DATA_XFER_ERROR | SNVME_DNR;
		for (index = 0; index < min(left, entries - chained); index++) {
			u16 status = next_page(walk, le64_to_cpu(entry[index]));

			if (status)
				return status;
		}
		if (chained)
			list = le64_to_cpu(entry[entries - 1]);
	}
	return 0;
}

/*
 * Calls @each for all of @bytes in order. Without @each, only the entries are checked. Returns the
 * status code of the entries, or the first result of @each that is not 0.
 */
u16 snvme_dma_walk(u64 prp1, u64 prp2, u32 bytes, snvme_segment_fn *each, void *context)
{
	struct prp_walk walk = {.each = each, .context = context, .bytes = bytes};
	u16 status;

	if (prp1 % 4)
		return NVME_SC_PRP_INVALID_OFFSET | SNVME_DNR;
	status = segment(&walk, prp1);
	if (status || walk.done == bytes)
		return status;
	if (bytes - walk.done <= SNVME_PAGE)
		return next_page(&walk, prp2);
	return prp_list(&walk, prp2);
}

static u16 copy_to(void *context, void *at, u32 bytes, u32 done)
{
	memcpy(at, context + done, bytes);
	return 0;
}

static u16 copy_from(void *context, void *at, u32 bytes, u32 done)
{
	memcpy(context + done, at, bytes);
	return 0;
}

static u16 walk_command(const struct nvme_command *command, u32 bytes, snvme_segment_fn *each,
			void *context)
{
	return snvme_dma_walk(le64_to_cpu(command->common.dptr.prp1),
			      le64_to_cpu(command->common.dptr.prp2), bytes, each, context);
}

u16 snvme_dma_to_host(const struct nvme_command *command, const void *from, u32 bytes)
{
	return walk_command(command, bytes, copy_to, (void *)from);
}

u16 snvme_dma_from_host(const struct nvme_command *command, void *to, u32 bytes)
{
	return walk_command(command, bytes, copy_from, to);
}
