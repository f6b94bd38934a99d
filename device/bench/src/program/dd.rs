// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses dd's standard error: the number of bytes, and the time. `source` calls it.

use std::str::FromStr;

use steadyio_core::histogram::Histogram;

use crate::record::{ClassResult, rounded};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The properties that dd does not print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copying {
    op: String,
    /// The size of its I/Os; None: they are counted in MiB.
    bs_kib: Option<u64>,
}

impl FromStr for Copying {
    type Err = String;

    /// Options of the format, such as `op=copy,bs_kib=512`.
    fn from_str(text: &str) -> Result<Copying, String> {
        let mut copying = Copying { op: "dd".into(), bs_kib: None };
        for option in text.split(',').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("op", op)) if !op.is_empty() => copying.op = op.into(),
                Some(("bs_kib", kib)) => {
                    let kib = kib.parse().ok().filter(|kib| (1..=MIB).contains(kib));
                    copying.bs_kib = Some(kib.ok_or("bs_kib must be a whole number of KiB")?);
                }
                _ => return Err(format!("{option}: the options of dd are op=WORD and bs_kib=N")),
            }
        }
        Ok(copying)
    }
}

/// The sum of the runs of dd in one file, which ran one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copied {
    bytes: u64,
    mib_s: f64,
}

pub fn parse(text: &str) -> Result<Copied, String> {
    let runs: Vec<(u64, f64)> = text.lines().filter_map(run).collect();
    let seconds: f64 = runs.iter().map(|(_, seconds)| seconds).sum();
    if seconds <= 0.0 {
        return Err("has no line \"N bytes ... copied, T s\" of dd".into());
    }
    let bytes = runs.iter().map(|(bytes, _)| bytes).sum();
    Ok(Copied { bytes, mib_s: bytes as f64 / MIB as f64 / seconds })
}

/// The bytes and seconds in a line such as `67108864 bytes (67 MB, 64 MiB) copied, 1.5 s, 44.7
/// MB/s`.
fn run(line: &str) -> Option<(u64, f64)> {
    let (bytes, rest) = line.split_once(" bytes ")?;
    let (seconds, _) = rest.split_once("copied, ")?.1.split_once(" s,")?;
    Some((bytes.parse().ok()?, seconds.parse().ok()?))
}

impl Copying {
    /// The class of several files, whose dd ran at the same time.
    pub fn class(&self, files: &[Copied]) -> ClassResult {
        let bytes = files.iter().map(|file| file.bytes).sum();
        let nothing = Histogram::default();
        ClassResult {
            op: self.op.clone(),
            bs_kib: self.bs_kib,
            count: bytes / self.bs_kib.map_or(MIB, |kib| kib * KIB),
            bytes: Some(bytes),
            mib_s: Some(rounded(files.iter().map(|file| file.mib_s).sum())),
            errors: 0,
            latency_ns: nothing.percentiles(),
            histogram_ns: nothing.bins(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const OUTPUT: &str = "1+0 records in\n0+0 records out\n0 bytes copied, 0.5 s, 0.0 kB/s\n\
                          128+0 records in\n128+0 records out\n\
                          67108864 bytes (67 MB, 64 MiB) copied, 1.5 s, 44.7 MB/s\n";

    #[test]
    fn runs_in_a_file_follow_each_other_and_files_are_side_by_side() {
        let file = parse(OUTPUT).unwrap(); // 64 MiB in 2 s
        let found = "op=copy,bs_kib=512".parse::<Copying>().unwrap().class(&[file, file]);
        assert_eq!((found.mib_s, found.bytes), (Some(64.0), Some(2 << 26)));
        assert_eq!((found.op.as_str(), found.bs_kib, found.count), ("copy", Some(512), 256));
        assert_eq!((found.latency_ns.max, found.histogram_ns.len()), (None, 0));
        let plain = "".parse::<Copying>().unwrap().class(&[file]);
        assert_eq!((plain.op.as_str(), plain.bs_kib, plain.count), ("dd", None, 64));
    }

    #[test]
    fn output_without_a_result_is_refused() {
        for text in ["", "dd: error reading\n", "67108864 bytes copied, x s, 1 MB/s\n"] {
            assert!(parse(text).unwrap_err().contains("copied"), "{text}");
        }
    }

    #[test]
    fn options_that_dd_does_not_have_are_named() {
        for text in ["op", "op=", "bs_kib=0", "bs_kib=4k", "count=1"] {
            assert!(text.parse::<Copying>().is_err(), "{text}");
        }
    }
}
