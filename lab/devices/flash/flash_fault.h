/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Injected faults; struct flash_fault is a parameter of the devices' models (flash_model.h). */
#ifndef STEADY_FLASH_FAULT_H
#define STEADY_FLASH_FAULT_H

#include "flash_model.h"

struct flash_faults {
	u64 seed; /* of random faults */
	u32 count;
	const struct flash_fault *fault;
	u64 *seen; /* operations of the fault's kind so far, for each fault */
};

/* Are its numbers within the ranges that flash_model.h states? */
bool flash_fault_valid(const struct flash_fault *fault);

/*
 * Called once per operation. The first fault that applies decides; all of them see the operation,
 * because each counts its own.
 */
enum flash_outcome flash_faults_outcome(const struct flash_faults *faults, enum flash_op op,
					u64 sector, u64 sectors);

#endif
