// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface, from C, from C++ and from its own side.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod buffer;
mod c_example;
mod layout;
mod misuse;
mod store;
mod symbols;
