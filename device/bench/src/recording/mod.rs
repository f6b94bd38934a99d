// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a caller sees that records periodic data: by the pool, or as the ext4 recording paper measured.
//!
//! [`recipe`] names the ways to record; [`caller`] is the measured thread, [`recipes`] are those ways in which it
//! writes itself; [`session`] leads through all of it, [`place`] says on which file system, [`result`] what came out.

pub mod caller;
pub mod place;
pub mod recipe;
pub mod recipes;
pub mod result;
pub mod session;
