// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ext4 recording paper's recipes. [`super::recipe`] has their names, [`session`] runs one.

pub mod background;
pub mod caller_writes;
pub mod flusher;
pub mod session;
pub mod sync_thread;
