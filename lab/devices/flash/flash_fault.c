// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Injected faults of any emulated device: selects the operations that fail, and how. */
#include "flash_draw.h"
#include "flash_fault.h"

#define STREAM_FAULT 16 /* random numbers: each fault has a stream from here on */

bool flash_fault_valid(const struct flash_fault *fault)
{
	if (fault->outcome != FLASH_FAILED && fault->outcome != FLASH_SILENT)
		return false;
	switch (fault->when) {
	case FLASH_AT_OP:
		return fault->first > 0;
	case FLASH_AT_SECTORS:
		return fault->first <= fault->last;
	case FLASH_AT_RANDOM:
		return fault->first <= 1000000;
	}
	return false;
}

static bool hits(const struct flash_faults *faults, u32 i, enum flash_op op, u64 sector,
		 u64 sectors)
{
	const struct flash_fault *fault = &faults->fault[i];
	u64 seen;

	if (fault->on != FLASH_ANY_OP && fault->on != op)
		return false;
	seen = ++faults->seen[i];
	switch (fault->when) {
	case FLASH_AT_OP:
		return seen == fault->first;
	case FLASH_AT_SECTORS:
		return sectors && sector <= fault->last && sector + sectors > fault->first;
	case FLASH_AT_RANDOM:
		return flash_draw(faults->seed, STREAM_FAULT + i, seen, 1000000) < fault->first;
	}
	return false;
}

enum flash_outcome flash_faults_outcome(const struct flash_faults *faults, enum flash_op op,
					u64 sector, u64 sectors)
{
	enum flash_outcome outcome = FLASH_DONE;
	u32 i;

	for (i = 0; i < faults->count; i++)
		if (hits(faults, i, op, sector, sectors) && outcome == FLASH_DONE)
			outcome = faults->fault[i].outcome;
	return outcome;
}
