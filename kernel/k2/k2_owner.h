/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef K2_OWNER_H
#define K2_OWNER_H

#include <linux/types.h>

struct cgroup;
struct pid;

struct k2_owner {
	struct pid *process; /* the one that declared the task */
	struct cgroup *cgroup; /* owns it instead, if not NULL */
};

/* The current process or its cgroup. False: it is in no cgroup but the root. */
bool k2_owner_get(struct k2_owner *owner, bool is_cgroup);
void k2_owner_put(struct k2_owner *owner);

/* Does the current thread act for @owner? Called for each real-time request. */
bool k2_owner_is_current(const struct k2_owner *owner);
bool k2_owner_is_same(const struct k2_owner *one, const struct k2_owner *other);
bool k2_owner_has_gone(const struct k2_owner *owner);

#endif /* K2_OWNER_H */
