// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pins the memory of a program, and describes it to the host controller.
 */
#include <linux/mm.h>

#include "chario.h"

/*
 * Pins the pages of [address, address + bytes). Returns their number, which may be too small, or
 * -EFAULT, -EOPNOTSUPP, -ENOMEM.
 */
int chario_pin(unsigned long address, size_t bytes, bool device_writes, struct page **pages)
{
	unsigned long first = address >> PAGE_SHIFT, last = (address + bytes - 1) >> PAGE_SHIFT;

	return pin_user_pages_fast(address & PAGE_MASK, last - first + 1,
				   device_writes ? FOLL_WRITE : 0, pages);
}

void chario_unpin(struct page **pages, unsigned long count, bool dirty)
{
	unpin_user_pages_dirty_lock(pages, count, dirty);
}

/* Returns how many bytes from `offset` are contiguous in memory, at most `limit`. */
static u32 contiguous(struct page **pages, size_t offset, u32 limit)
{
	size_t page = offset >> PAGE_SHIFT;
	u32 bytes = PAGE_SIZE - offset_in_page(offset);

	while (bytes < limit && page_to_pfn(pages[page + 1]) == page_to_pfn(pages[page]) + 1) {
		bytes += PAGE_SIZE;
		page++;
	}
	return min(bytes, limit);
}

/*
 * Describes up to `bytes` of memory in sg. The memory begins `offset` bytes after the start of
 * pages[0]. Returns the number of bytes, which is smaller if the host takes no more segments.
 */
u32 chario_map(const struct chario_disk *disk, struct page **pages, size_t offset, u32 bytes,
	       struct scatterlist *sg, u32 *sg_len)
{
	u32 mapped = 0, count = 0;

	sg_init_table(sg, disk->segments_max);
	while (mapped < bytes && count < disk->segments_max) {
		u32 piece = contiguous(pages, offset, min(bytes - mapped, disk->segment_bytes_max));

		sg_set_page(&sg[count++], pages[offset >> PAGE_SHIFT], piece,
			    offset_in_page(offset));
		mapped += piece;
		offset += piece;
	}
	sg_mark_end(&sg[count - 1]);
	*sg_len = count;
	return mapped;
}
