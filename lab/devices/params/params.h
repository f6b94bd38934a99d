/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Module parameters of the emulated devices. The error for a wrong value is one line with key,
 * value and valid range, after the module's name.
 */
#ifndef STEADY_PARAMS_H
#define STEADY_PARAMS_H

#include <linux/moduleparam.h>
#include <linux/types.h>

#include "flash_model.h"

struct param_number {
	u64 value;
	u64 min;
	u64 max;
};

extern const struct kernel_param_ops param_number_ops;

/* A number, @name##_param.value, in a range. */
#define PARAM_NUMBER(name, preset, lowest, highest)                                                \
	static struct param_number name##_param = {                                                \
		.value = (preset),                                                                 \
		.min = (lowest),                                                                   \
		.max = (highest),                                                                  \
	};                                                                                         \
	module_param_cb(name, &param_number_ops, &name##_param, 0444)

/* Parses @text for the parameter @key. -EINVAL, with a line in the log, if out of range. */
int param_number_parse(const char *key, const char *text, u64 min, u64 max, u64 *value);

/* -EINVAL, with a line in the log, unless @text has 1..@chars printable characters and no blank. */
int param_name_check(const char *key, const char *text, size_t chars);

/*
 * Faults, each as operation:outcome:when:first[-last], such as read:error:sectors:2048-4095.
 * -EINVAL, with a line in the log, if one is invalid.
 */
int param_faults_parse(char *const *texts, u32 count, struct flash_fault *faults);

#endif
