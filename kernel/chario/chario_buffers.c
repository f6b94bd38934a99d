// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registered buffers: memory is pinned once, and then costs a transfer no work per page.
 *
 * A buffer belongs to an open file, and only the address space that registered it may use it: a
 * process that got the file by fork or over a socket must not write to another's memory.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "chario.h"

/*
 * The limit is per user, as for io_uring: a process may exit and leave its buffers with the file,
 * so a limit per address space would be ineffective.
 */
static int count_for_user(struct chario_buffer *buffer)
{
	long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT, pages = buffer->page_count, locked;
	const struct cred *cred = current_cred();

	if (capable(CAP_IPC_LOCK))
		return 0;
	locked = atomic_long_read(&cred->user->locked_vm);
	do {
		if (pages > limit - locked)
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&cred->user->locked_vm, &locked, locked + pages));
	/* On 6.1, modules cannot release a user_struct, but they can release a cred. */
	buffer->counted_for = get_cred(cred);
	return 0;
}

static void uncount_for_user(struct chario_buffer *buffer)
{
	if (!buffer->counted_for)
		return;
	atomic_long_sub(buffer->page_count, &buffer->counted_for->user->locked_vm);
	put_cred(buffer->counted_for);
}

static void buffer_free(struct kref *ref)
{
	struct chario_buffer *buffer = container_of(ref, struct chario_buffer, ref);

	if (!buffer->is_declared) {
		chario_unpin(buffer->pages, buffer->page_count, true);
		account_locked_vm(buffer->mm, buffer->page_count, false);
		uncount_for_user(buffer);
	}
	mmdrop(buffer->mm);
	kvfree_rcu(buffer, rcu);
}

void chario_buffer_put(struct chario_buffer *buffer)
{
	kref_put(&buffer->ref, buffer_free);
}

static int check_request(const struct chario_file *file, const struct chardisk_register *request)
{
	u64 end;

	if (request->flags & ~CHARDISK_BY_ADDRESS || request->buffer || request->reserved[0] ||
	    request->reserved[1])
		return -EINVAL;
	if (!request->bytes || request->bytes > CHARIO_BUFFER_BYTES)
		return -EINVAL;
	if (!chario_is_aligned(file->disk, request->bytes) || request->address % PAGE_SIZE)
		return -EINVAL;
	if (check_add_overflow(request->address, request->bytes, &end))
		return -EINVAL;
	return end > ULONG_MAX && !(request->flags & CHARDISK_BY_ADDRESS) ? -EINVAL : 0;
}

/* Pins all pages or none. */
static int pin_all(struct chario_buffer *buffer, unsigned long address)
{
	unsigned long pinned = 0;
	int count;

	while (pinned < buffer->page_count) {
		count = pin_user_pages_fast(address + pinned * PAGE_SIZE,
					    min_t(unsigned long, buffer->page_count - pinned,
						  CHARIO_CHUNK_PAGES),
					    FOLL_WRITE | FOLL_LONGTERM, buffer->pages + pinned);
		if (count <= 0) {
			chario_unpin(buffer->pages, pinned, false);
			return count ?: -EFAULT;
		}
		pinned += count;
		if (fatal_signal_pending(current)) {
			chario_unpin(buffer->pages, pinned, false);
			return -EINTR;
		}
		cond_resched();
	}
	return 0;
}

/* Pins memory of the caller, and charges it to its user and its address space as locked. */
static int take_mapping(struct chario_buffer *buffer, unsigned long address)
{
	int error = count_for_user(buffer);

	if (error)
		return error;
	error = account_locked_vm(buffer->mm, buffer->page_count, true);
	if (error)
		goto out_user;
	error = pin_all(buffer, address);
	if (!error)
		return 0;
	account_locked_vm(buffer->mm, buffer->page_count, false);
out_user:
	uncount_for_user(buffer);
	return error;
}

static struct chario_buffer *buffer_create(const struct chardisk_register *request)
{
	unsigned long pages = DIV_ROUND_UP(request->bytes, PAGE_SIZE);
	struct chario_buffer *buffer;
	int error;

	buffer = kvmalloc(struct_size(buffer, pages, pages), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	kref_init(&buffer->ref);
	buffer->bytes = request->bytes;
	buffer->page_count = pages;
	buffer->mm = current->mm;
	buffer->counted_for = NULL;
	buffer->is_declared = request->flags & CHARDISK_BY_ADDRESS;
	if (buffer->is_declared)
		error = chario_declared_pages(request->address, request->bytes, buffer->pages);
	else
		error = take_mapping(buffer, request->address);
	if (error) {
		kvfree(buffer);
		return ERR_PTR(error);
	}
	mmgrab(buffer->mm);
	return buffer;
}

/* CHARDISK_IOC_REGISTER. Sets request->buffer. */
int chario_buffer_register(struct chario_file *file, struct chardisk_register *request)
{
	struct chario_buffer *buffer;
	int error = check_request(file, request);

	if (error)
		return error;
	buffer = buffer_create(request);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	error = xa_alloc(&file->buffers, &request->buffer, buffer,
			 XA_LIMIT(0, CHARIO_BUFFERS_MAX - 1), GFP_KERNEL);
	if (error) {
		chario_buffer_put(buffer);
		return error == -EBUSY ? -ENOSPC : error;
	}
	return 0;
}

/* CHARDISK_IOC_UNREGISTER. Running transfers continue; the last one frees the buffer. */
int chario_buffer_unregister(struct chario_file *file, u32 number)
{
	struct chario_buffer *buffer = xa_erase(&file->buffers, number);

	if (!buffer)
		return -ENOENT;
	chario_buffer_put(buffer);
	return 0;
}

/* For a transfer of the calling task, which releases it. Errors: -ENOENT, -EPERM. */
struct chario_buffer *chario_buffer_get(struct chario_file *file, u32 number)
{
	struct chario_buffer *buffer;

	rcu_read_lock();
	buffer = xa_load(&file->buffers, number);
	if (!buffer || !kref_get_unless_zero(&buffer->ref))
		buffer = ERR_PTR(-ENOENT);
	rcu_read_unlock();
	if (IS_ERR(buffer) || buffer->mm == current->mm)
		return buffer;
	chario_buffer_put(buffer);
	return ERR_PTR(-EPERM);
}

/* Called at the last close, when no transfer runs. */
void chario_buffers_free(struct chario_file *file)
{
	struct chario_buffer *buffer;
	unsigned long number;

	xa_for_each(&file->buffers, number, buffer)
		chario_buffer_put(buffer);
	xa_destroy(&file->buffers);
}
