/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef K2_OWNER_H
#define K2_OWNER_H

#include <linux/types.h>

struct cgroup;
struct pid;

struct k2_owner {
	struct pid *process; /* the process that declared the task */
	struct cgroup *cgroup; /* if not NULL, the owner instead of the process */
};

/* Gets the current process or its cgroup. False: it is in the root cgroup. */
bool k2_owner_get(struct k2_owner *owner, bool is_cgroup);
void k2_owner_put(struct k2_owner *owner);

/* Does the current thread act for @owner? This is called for each real-time request. */
bool k2_owner_is_current(const struct k2_owner *owner);
bool k2_owner_is_same(const struct k2_owner *one, const struct k2_owner *other);
bool k2_owner_has_gone(const struct k2_owner *owner);

#endif /* K2_OWNER_H */
