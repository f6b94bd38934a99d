// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds the failed step to an I/O error. `capture`, `reader` and `program` use it.

use std::fmt::Display;
use std::io;

pub(super) fn because(what: impl Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}
