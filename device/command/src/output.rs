// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes to standard output. All commands print with it.

use std::io::{self, Write};

use anyhow::anyhow;
use steadyio_core::diagnostic;

use crate::exit::{Failure, Status};

/// Prints text. A reader that ends early (`| head`) is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    print_while_read(text).map(|_| ())
}

/// Prints one of many texts; false if the reader has ended.
pub fn print_while_read(text: &str) -> Result<bool, Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::with(Status::Failed)(anyhow!("standard output: {error}"))),
    }
}

/// Prints what was changed. If that fails, standard error gets it: the exit status documents the
/// change, and another one would deny it.
pub fn print_done(text: &str) {
    if let Err(failure) = print(text) {
        diagnostic!("steady: {:#}; this was done:\n{}", failure.source, text.trim_end());
    }
}
