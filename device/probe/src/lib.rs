// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long do the commands of this device take?
//!
//! Problem: a bound needs the device's times, and no data sheet of a card has them: it names a
//! throughput. So each kind of command is measured, one at a time and several at once, and a model
//! is fitted whose parts the bound and the lab's emulated card know (`docs/devices.md`).
//!
//! [`place`] reads and writes a device. [`rounds`] orders the measurements, and gives [`samples`].
//! [`fit`] makes times of them, with [`mod@line`], [`states`] and [`tail`]. [`queue`], [`cache`]
//! and [`discard`] measure features that only some devices have. [`traffic`] detects other users of
//! the disk meanwhile. On a card that may be overwritten, [`verify`] finds out whether it keeps what is
//! written, and [`deleting`] measures writes while data are deleted. [`profile`] is the result, with
//! the card's [`claims`]. [`mod@compare`] compares two, and [`mod@verdict`] judges whether the card holds
//! a rate.

pub mod cache;
pub mod claims;
pub mod compare;
pub mod deleting;
pub mod discard;
pub mod fit;
pub mod line;
pub mod place;
pub mod profile;
pub mod queue;
pub mod rounds;
pub mod samples;
pub mod states;
pub mod tail;
pub mod traffic;
pub mod verdict;
pub mod verify;
