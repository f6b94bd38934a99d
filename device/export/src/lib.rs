// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes one MCAP file from the segments of a recorder: compressed, in order of log time, with an
//! index. `steady export`, `cat` and `info` and the Python package use it.
//!
//! A pool is many files of a fixed size, compressed quickly or not at all, because it is written
//! while a loop with a deadline runs. An export is one file to take to a desk. It changes and locks
//! nothing in the pool: a recorder may continue, and the export reports the blocks that were
//! overwritten meanwhile.
//!
//! Reading order: [`survey`] finds the segments, [`selection`] the messages, [`merge`] their order.
//! `copies` reads segments that are there twice. [`export`] and [`files`] write the file, and
//! [`summary`] describes it. [`overview`] describes the pool without its messages. [`behind`]
//! follows a running recorder. [`rosbag2`] has the metadata of ROS 2 bags.

pub mod behind;
mod copies;
pub mod export;
pub mod files;
mod latched;
pub mod merge;
pub mod overview;
pub mod rosbag2;
pub mod selection;
pub mod summary;
pub mod survey;
