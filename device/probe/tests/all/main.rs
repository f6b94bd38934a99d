// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]

mod deleting;
mod fit;
mod queue;
mod verdict;
mod verify;
