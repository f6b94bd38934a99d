// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of the measured kernel, as in every record. The bench, trace and `steady` write
//! it.

use serde::Serialize;

/// The running kernel, from `uname`.
#[derive(Clone, Debug, Serialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
}

impl Kernel {
    /// The kernel of this machine.
    pub fn running() -> Kernel {
        let uname = rustix::system::uname();
        Kernel {
            release: uname.release().to_string_lossy().into_owned(),
            version: uname.version().to_string_lossy().into_owned(),
        }
    }
}
