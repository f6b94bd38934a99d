// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the report of `sysbench --histogram` (1.0): the times of its transactions or other
//! events. `source` calls it.

use std::str::FromStr;

use steadyio_core::histogram::Histogram;

use crate::record::ClassResult;

const NS_PER_MS: f64 = 1e6;

/// The events of a report as a class, and sysbench's version. The histogram's bins are 1.8 % wide;
/// minimum and maximum have a resolution of 10 us.
pub fn parse(text: &str) -> Result<(ClassResult, String), String> {
    let (min, max) = (ns(behind(text, "min:")?), ns(behind(text, "max:")?));
    if min > max {
        return Err("min: is above max:".into());
    }
    let histogram = Histogram::new(text.lines().filter_map(bin), min, max);
    let events: u64 = behind(text, "total number of events:")?;
    let count = histogram.count();
    if count == 0 || count != events {
        return Err(format!(
            "the histogram of sysbench (--histogram) has {count} of {events} events"
        ));
    }
    let found = ClassResult {
        op: "transaction".into(),
        bs_kib: None,
        count,
        bytes: None,
        mib_s: None,
        errors: behind(text, "ignored errors:").unwrap_or_default(),
        latency_ns: histogram.percentiles(),
        histogram_ns: histogram.bins(),
    };
    Ok((found, behind(text, "sysbench ")?))
}

/// The first word after a label at the start of a line.
fn behind<T: FromStr>(text: &str, label: &str) -> Result<T, String> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(label));
    let word = rest.and_then(|rest| rest.split_whitespace().next());
    let value = word.and_then(|word| word.parse().ok());
    value.ok_or_else(|| format!("not a sysbench report: no value after \"{label}\""))
}

/// The latency in ns and the count in a line such as `9.560 |************ 94`.
fn bin(line: &str) -> Option<(u64, u64)> {
    let (ms, rest) = line.split_once(" |")?;
    let count = rest.trim_start_matches('*').trim().parse().ok()?;
    Some((ns(ms.trim().parse().ok()?), count))
}

fn ns(ms: f64) -> u64 {
    (ms * NS_PER_MS).round() as u64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A report of sysbench 1.0.20.
    const REPORT: &str = "\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       8.895 |**                                       2
       9.560 |**************************************** 94
     112.670 |*                                        3
    1013.000 |                                         1
\x20
SQL statistics:
    ignored errors:                      7      (0.00 per sec.)

General statistics:
    total number of events:              100

Latency (ms):
         min:                                    8.91
         avg:                                   21.00
         max:                                 1005.25
         99th percentile:                      112.67
";

    #[test]
    fn percentiles_are_those_of_the_histogram_within_minimum_and_maximum() {
        let (found, version) = parse(REPORT).unwrap();
        let of = found.latency_ns;
        assert_eq!((of.min, of.max), (Some(8_910_000), Some(1_005_250_000)));
        assert_eq!((of.p50, of.p95), (Some(9_560_000), Some(9_560_000)));
        assert_eq!((of.p99, of.p999), (Some(112_670_000), Some(1_005_250_000)));
        assert_eq!((found.count, found.errors, found.bytes), (100, 7, None));
        assert_eq!(found.histogram_ns[0], (8_895_000, 2));
        assert_eq!(version, "1.0.20");
    }

    #[test]
    fn bins_that_are_printed_alike_count_together() {
        let twice = REPORT.replace(" 94\n", " 50\n       9.560 |**** 44\n");
        assert_eq!(parse(&twice).unwrap().0.histogram_ns, parse(REPORT).unwrap().0.histogram_ns);
    }

    #[test]
    fn a_report_that_is_not_understood_is_refused() {
        for (old, new, says) in [
            ("       8.895 |**                                       2\n", "", "98 of 100 events"),
            (" |", "  ", "0 of 100 events"),
            ("number of events", "number", "\"total number of events:\""),
            ("max:", "maximum:", "\"max:\""),
            ("8.91", "soon", "\"min:\""),
            ("1005.25", "1.00", "min: is above max:"),
            ("sysbench 1", "1", "\"sysbench \""),
        ] {
            assert!(REPORT.contains(old), "{old}");
            let said = parse(&REPORT.replace(old, new)).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
