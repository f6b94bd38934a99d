/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contents of an emulated device of any kind. Kernel log lines begin with the module's name.
 *
 *   media_store     stable pages or a file, and the volatile cache
 *   media_log       the write log: its changes, for rebuilding it at any moment
 *   media_file      files of the host, for both
 */
#ifndef STEADY_MEDIA_H
#define STEADY_MEDIA_H

#include <linux/types.h>

#include "flash_model.h"

struct file;

struct file *media_file_open(const char *key, const char *path, int flags);
int media_file_read(struct file *file, u64 pos, void *to, size_t len);
int media_file_write(struct file *file, u64 pos, const void *from, size_t len);

struct media_store;

struct media_store *media_store_create(u64 bytes, const char *path);
void media_store_destroy(struct media_store *store);
int media_store_read(struct media_store *store, u64 pos, void *to, size_t len);
int media_store_write(struct media_store *store, u64 pos, const void *from, size_t len);
int media_store_write_cached(struct media_store *store, u64 pos, const void *from, size_t len);
int media_store_zero(struct media_store *store, u64 pos, u64 len);
void media_store_discard(struct media_store *store, u64 pos, u64 len);
int media_store_drain(struct media_store *store);
unsigned long media_store_drop_cached(struct media_store *store);

/* The kind of a record of the write log; part of the file's format. */
enum media_log_kind {
	MEDIA_LOG_WRITE = 1,
	MEDIA_LOG_ZERO = 2, /* erase, trim: the range reads as zeroes, stable */
	MEDIA_LOG_DISCARD = 3,
	MEDIA_LOG_FLUSH = 4, /* cached data becomes stable */
	MEDIA_LOG_POWER_OFF = 5, /* the cache is lost */
};

struct media_log;

/* NULL stands for no log; then these do nothing. */
struct media_log *media_log_create(const char *path, u64 sectors, u32 cache_kib, u32 queue_depth);
void media_log_destroy(struct media_log *log);
void media_log_write(struct media_log *log, const struct flash_request *request, u64 arrived_ns,
		     const struct flash_result *result, const void *data);
void media_log_no_data(struct media_log *log, enum media_log_kind kind,
		       const struct flash_request *request, u64 arrived_ns, u64 finish_ns);
void media_log_power_off(struct media_log *log);

#endif
