// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the limits on the command line of `steady tune`.

use std::str::FromStr;

use steadyio_tune::goal::Limit;

use crate::quantity;

/// A time, or a share of the tail without a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct TailMax(pub Limit<u64>);

/// A throughput in MiB/s, or a share of the throughput without a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct ThroughputMin(pub Limit<f64>);

impl FromStr for TailMax {
    type Err = String;

    fn from_str(text: &str) -> Result<TailMax, String> {
        if let Some(percent) = text.strip_suffix('%') {
            return Ok(TailMax(Limit::OfNone(percent.trim_end().parse()?)));
        }
        match quantity::duration(text).map(|time| u64::try_from(time.as_nanos())) {
            Ok(Ok(ns)) if ns > 0 => Ok(TailMax(Limit::Absolute(ns))),
            _ => Err("must be a percentage such as 50%, or a time such as 500us".into()),
        }
    }
}

impl FromStr for ThroughputMin {
    type Err = String;

    fn from_str(text: &str) -> Result<ThroughputMin, String> {
        if let Some(percent) = text.strip_suffix('%') {
            return Ok(ThroughputMin(Limit::OfNone(percent.trim_end().parse()?)));
        }
        // A number without a unit would mean bytes. More likely the unit was forgotten.
        let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
        match quantity::size(text) {
            Ok(bytes) if bytes > 0 && has_unit => {
                Ok(ThroughputMin(Limit::Absolute(bytes as f64 / f64::from(1 << 20))))
            }
            _ => Err("must be a percentage such as 50%, or bytes per second such as 200MiB".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_share_or_has_a_unit() {
        let tail = |text: &str| text.parse::<TailMax>().map(|limit| limit.0);
        assert_eq!(tail("50%"), tail("50 %"));
        assert_eq!(tail("2ms"), Ok(Limit::Absolute(2_000_000)));
        for text in ["50", "0%", "-1%", "101%", "0us", "nan%", "%", ""] {
            assert!(tail(text).is_err(), "{text}");
        }
        let throughput = |text: &str| text.parse::<ThroughputMin>().map(|limit| limit.0);
        assert_eq!(throughput("2MiB"), Ok(Limit::Absolute(2.0)));
        for text in ["50", "0%", "100.1%", "0MiB", "5us"] {
            assert!(throughput(text).is_err(), "{text}");
        }
    }
}
