/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The commands whose times a user states. */
#ifndef K2_DEVICE_H
#define K2_DEVICE_H

#include "types.h"

#define K2_DEVICE_OPS 2 /* read, write */
/* Sizes are rounded up to this; no piece is smaller. */
#define K2_PIECE_MIN_SHIFT 12
#define K2_PIECE_MIN	   4096U

#endif /* K2_DEVICE_H */
