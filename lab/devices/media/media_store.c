// SPDX-License-Identifier: GPL-2.0-only
/*
 * The card's contents, in two layers.
 *
 * Stable: pages in memory, or a file. Memory is sparse: pages never written, or written with
 * zeroes only, cost nothing and read as zeroes. A file (media_file) is sparse where the host's file
 * system is, and outlives the guest.
 *
 * Cached: pages in memory on top, accepted by the card's volatile cache and not yet stable. A
 * cached page is complete: its first write copies the stable data underneath. So draining writes
 * whole pages, and a loss of power drops them.
 *
 * Callers serialise (the device's lock) and may sleep. Memory reclaim can cause requests, so no
 * allocation here may start I/O. Such allocations block forever rather than fail, so the pages are
 * counted, and a write beyond the limit fails instead.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "media.h"

#define STORE_PAGE 4096
/* A card's share of the guest's memory. */
#define STORE_MEMORY_PERCENT 75

struct media_store {
	struct xarray stable; /* page number -> STORE_PAGE bytes; empty with a file */
	struct xarray cached;
	unsigned long pages, pages_max; /* of both */
	struct file *file;
	u64 bytes;
};

struct media_store *media_store_create(u64 bytes, const char *path)
{
	struct media_store *store = kzalloc(sizeof(*store), GFP_KERNEL);

	if (!store)
		return ERR_PTR(-ENOMEM);
	store->bytes = bytes;
	store->pages_max = totalram_pages() / 100 * STORE_MEMORY_PERCENT;
	xa_init(&store->stable);
	xa_init(&store->cached);
	if (*path) {
		store->file = media_file_open("path", path, 0);
		if (IS_ERR(store->file)) {
			int err = PTR_ERR(store->file);

			kfree(store);
			return ERR_PTR(err);
		}
	}
	return store;
}

static unsigned long pages_free(struct media_store *store, struct xarray *pages,
				unsigned long first, unsigned long last)
{
	unsigned long index, count = 0;
	void *page;

	xa_for_each_range(pages, index, page, first, last) {
		xa_erase(pages, index);
		kfree(page);
		count++;
	}
	store->pages -= count;
	return count;
}

void media_store_destroy(struct media_store *store)
{
	pages_free(store, &store->cached, 0, ULONG_MAX);
	pages_free(store, &store->stable, 0, ULONG_MAX);
	xa_destroy(&store->cached);
	xa_destroy(&store->stable);
	if (store->file)
		filp_close(store->file, NULL);
	kfree(store);
}

/* A function for @bytes at offset @at of a page; they are at @done in the job's buffer. */
typedef int page_fn(void *context, unsigned long page, size_t at, size_t bytes, size_t done);

static int walk_pages(u64 pos, size_t len, page_fn *each, void *context)
{
	size_t done = 0;

	while (done < len) {
		size_t at = (pos + done) % STORE_PAGE;
		size_t bytes = min_t(size_t, STORE_PAGE - at, len - done);
		int err = each(context, (pos + done) / STORE_PAGE, at, bytes, done);

		if (err)
			return err;
		done += bytes;
	}
	return 0;
}

struct page_job {
	struct media_store *store;
	void *to;
	const void *from;
};

static int stable_read_page(void *context, unsigned long page, size_t at, size_t bytes, size_t done)
{
	struct page_job *job = context;
	void *data = xa_load(&job->store->stable, page);

	if (data)
		memcpy(job->to + done, data + at, bytes);
	else
		memset(job->to + done, 0, bytes);
	return 0;
}

static int stable_read(struct media_store *store, u64 pos, void *to, size_t len)
{
	struct page_job job = {.store = store, .to = to};

	if (store->file)
		return media_file_read(store->file, pos, to, len);
	return walk_pages(pos, len, stable_read_page, &job);
}

static bool is_full(const struct media_store *store)
{
	if (store->pages < store->pages_max)
		return false;
	pr_err_once("memory is full: the card has %lu MiB; keep it in a file\n",
		    store->pages * STORE_PAGE >> 20);
	return true;
}

static int page_insert(struct media_store *store, struct xarray *pages, unsigned long index,
		       void *page)
{
	int err = is_full(store) ? -ENOSPC : xa_err(xa_store(pages, index, page, GFP_NOIO));

	if (err)
		kfree(page);
	else
		store->pages++;
	return err;
}

static int stable_write_page(void *context, unsigned long page, size_t at, size_t bytes,
			     size_t done)
{
	struct page_job *job = context;
	struct xarray *stable = &job->store->stable;
	void *data = xa_load(stable, page);

	if (bytes == STORE_PAGE && !memchr_inv(job->from + done, 0, bytes)) {
		pages_free(job->store, stable, page, page);
		return 0;
	}
	if (!data) {
		int err;

		data = kzalloc(STORE_PAGE, GFP_NOIO);
		if (!data)
			return -ENOMEM;
		err = page_insert(job->store, stable, page, data);
		if (err)
			return err;
	}
	memcpy(data + at, job->from + done, bytes);
	return 0;
}

static int stable_write(struct media_store *store, u64 pos, const void *from, size_t len)
{
	struct page_job job = {.store = store, .from = from};

	if (store->file)
		return media_file_write(store->file, pos, from, len);
	return walk_pages(pos, len, stable_write_page, &job);
}

static int cached_read_page(void *context, unsigned long page, size_t at, size_t bytes, size_t done)
{
	struct page_job *job = context;
	void *data = xa_load(&job->store->cached, page);

	if (data)
		memcpy(job->to + done, data + at, bytes);
	return 0;
}

int media_store_read(struct media_store *store, u64 pos, void *to, size_t len)
{
	struct page_job job = {.store = store, .to = to};
	int err = stable_read(store, pos, to, len);

	if (err || xa_empty(&store->cached))
		return err;
	return walk_pages(pos, len, cached_read_page, &job);
}

static int cached_update_page(void *context, unsigned long page, size_t at, size_t bytes,
			      size_t done)
{
	struct page_job *job = context;
	void *data = xa_load(&job->store->cached, page);

	if (data)
		memcpy(data + at, job->from + done, bytes);
	return 0;
}

/* Writes to the stable layer; a cached page on top must not hide the data. */
int media_store_write(struct media_store *store, u64 pos, const void *from, size_t len)
{
	struct page_job job = {.store = store, .from = from};
	int err = stable_write(store, pos, from, len);

	if (err || xa_empty(&store->cached))
		return err;
	return walk_pages(pos, len, cached_update_page, &job);
}

static int cached_write_page(void *context, unsigned long page, size_t at, size_t bytes,
			     size_t done)
{
	struct page_job *job = context;
	struct media_store *store = job->store;
	void *data = xa_load(&store->cached, page);

	if (!data) {
		int err;

		data = kmalloc(STORE_PAGE, GFP_NOIO);
		if (!data)
			return -ENOMEM;
		err = stable_read(store, (u64)page * STORE_PAGE, data, STORE_PAGE);
		if (err) {
			kfree(data);
			return err;
		}
		err = page_insert(store, &store->cached, page, data);
		if (err)
			return err;
	}
	memcpy(data + at, job->from + done, bytes);
	return 0;
}

int media_store_write_cached(struct media_store *store, u64 pos, const void *from, size_t len)
{
	struct page_job job = {.store = store, .from = from};

	return walk_pages(pos, len, cached_write_page, &job);
}

/* All cached data becomes stable. After an error the rest stays cached. */
int media_store_drain(struct media_store *store)
{
	unsigned long index;
	void *data;

	xa_for_each(&store->cached, index, data) {
		int err = stable_write(store, (u64)index * STORE_PAGE, data, STORE_PAGE);

		if (err)
			return err;
		pages_free(store, &store->cached, index, index);
	}
	return 0;
}

/* Power was lost. Returns the number of pages lost. */
unsigned long media_store_drop_cached(struct media_store *store)
{
	return pages_free(store, &store->cached, 0, ULONG_MAX);
}

static int zero_part(struct media_store *store, u64 pos, size_t len)
{
	static const u8 zeroes[2 * STORE_PAGE];

	return len ? media_store_write(store, pos, zeroes, len) : 0;
}

static int zero_pages_of_file(struct media_store *store, u64 pos, u64 end)
{
	int err = 0;

	end = min_t(u64, end, round_up(i_size_read(file_inode(store->file)), STORE_PAGE));
	for (; pos < end && !err; pos += STORE_PAGE)
		err = zero_part(store, pos, STORE_PAGE);
	return err;
}

/* Erase and trim: from now on the range reads as zeroes, even after a power cut. */
int media_store_zero(struct media_store *store, u64 pos, u64 len)
{
	u64 end = pos + len, first = round_up(pos, STORE_PAGE), last = round_down(end, STORE_PAGE);
	int err;

	if (first >= last)
		return zero_part(store, pos, len);
	err = zero_part(store, pos, first - pos) ?: zero_part(store, last, end - last);
	if (err)
		return err;
	pages_free(store, &store->cached, first / STORE_PAGE, last / STORE_PAGE - 1);
	if (store->file)
		return zero_pages_of_file(store, first, last);
	pages_free(store, &store->stable, first / STORE_PAGE, last / STORE_PAGE - 1);
	return 0;
}

/* Discarded data may read as anything; dropping whole pages keeps memory small. */
void media_store_discard(struct media_store *store, u64 pos, u64 len)
{
	u64 first = DIV_ROUND_UP(pos, STORE_PAGE), end = (pos + len) / STORE_PAGE;

	if (first >= end)
		return;
	pages_free(store, &store->cached, first, end - 1);
	pages_free(store, &store->stable, first, end - 1);
}
