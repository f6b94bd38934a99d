// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output.

use std::io::{self, Write};

use anyhow::anyhow;

use crate::exit::{Failure, Status};

/// A reader that ends early (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::with(Status::Failed)(anyhow!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
