// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error for a file of k2 that cannot be parsed. `k2` and `declared` make it.

/// A file of k2 has unexpected contents.
#[derive(Debug, thiserror::Error)]
#[error(
    "iosched/{file}: cannot be understood: {line:?} has no {wanted}: is k2 of another release?"
)]
pub struct Unclear {
    file: String,
    line: String,
    wanted: String,
}

impl Unclear {
    pub(crate) fn in_file(self, file: &str) -> Unclear {
        Unclear { file: file.into(), ..self }
    }
}

pub(crate) fn unclear(line: &str, wanted: &str) -> Unclear {
    Unclear { file: String::new(), line: line.into(), wanted: wanted.into() }
}

pub(crate) fn number(text: &str, wanted: &str, line: &str) -> Result<u64, Unclear> {
    text.trim().parse().map_err(|_| unclear(line, wanted))
}
