// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events: of this kernel, and of files that other tools wrote.

mod asked_for;
mod calls;
mod capture;
mod files;
mod format;
mod pages;
mod pages_of_this_kernel;
mod program;
mod rwbs;
mod text;
mod text_random;
mod values;
mod watch;
