// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows where an I/O spends its time, from the kernel's trace events, without BPF or BTF. `steady
//! trace` and `device/model` use it.
//!
//! The path, in reading order: a source gives [`event::Event`]s in time order, from this kernel or
//! from a file. `follow` makes them into the I/Os of [`io`], each with the time of each mark on its
//! path. All output is derived from those.
//!
//! The four spans are those of the e.MMC analysis paper (*Linux Storage System Analysis for e.MMC
//! With Command Queuing*, Huo and Szubbocsev, 2017): submission, block, device, post.

pub mod calls;
pub mod event;
pub mod follow;
pub mod intervals;
pub mod io;
pub mod open_files;
pub mod perfetto;
pub mod report;
pub mod sched;
pub mod source;
