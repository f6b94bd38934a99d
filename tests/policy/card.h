/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The card of the K2-split paper as a simulation sees it: commands in, the times they end out. */
#ifndef CARD_H
#define CARD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * @queue: with a command queue and four units that work side by side, as it might be. @pause_ns: so
 * much longer is one write in each 4 MiB.
 */
void card_begin(bool queue, uint64_t pause_ns);
uint64_t card_command(bool write, uint64_t sector, uint32_t bytes, uint64_t now_ns);

#endif /* CARD_H */
