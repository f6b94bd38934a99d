// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which kernel was measured, as every record says it.

use serde::Serialize;

/// The running kernel, as `uname` says.
#[derive(Clone, Debug, Serialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
}

impl Kernel {
    /// The kernel this runs on.
    pub fn running() -> Kernel {
        let uname = rustix::system::uname();
        Kernel {
            release: uname.release().to_string_lossy().into_owned(),
            version: uname.version().to_string_lossy().into_owned(),
        }
    }
}
