// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables that a profile has if the card was blank: how full it was, what deleting added, and
//! what it had kept. No bound depends on them: they say what happened, and not what is longest.

use serde::Deserialize;
use steadyio_core::range::bounded;

use super::limits::LONGEST_NS;
use crate::fault::{Fault, fault};

/// Of a card's contents: 1 PiB.
const KIB_MAX: u64 = 1 << 40;
/// 1 TiB/s.
const KIB_S_MAX: u64 = 1 << 30;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Full {
    #[serde(rename = "percent", deserialize_with = "bounded::<_, 1, 100>")]
    _percent: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deleting {
    #[serde(rename = "samples", deserialize_with = "bounded::<_, 1, KIB_MAX>")]
    _samples: u64,
    #[serde(rename = "deleted_kib", deserialize_with = "bounded::<_, 0, KIB_MAX>")]
    _deleted_kib: u64,
    #[serde(rename = "longest_ns", deserialize_with = "bounded::<_, 0, LONGEST_NS>")]
    _longest_ns: u64,
    #[serde(rename = "kib_s", deserialize_with = "bounded::<_, 1, KIB_S_MAX>")]
    _kib_s: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verified {
    #[serde(deserialize_with = "bounded::<_, 1, KIB_MAX>")]
    written_kib: u64,
    #[serde(deserialize_with = "bounded::<_, 0, KIB_MAX>")]
    right_kib: u64,
    #[serde(default, rename = "wrong_at_kib", deserialize_with = "bounded::<_, 0, KIB_MAX>")]
    _wrong_at_kib: u64,
    #[serde(default, rename = "belongs_at_kib", deserialize_with = "bounded::<_, 0, KIB_MAX>")]
    _belongs_at_kib: u64,
}

impl Verified {
    /// Rejects more that was right than was written.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let (right_kib, written_kib) = (self.right_kib, self.written_kib);
        if right_kib <= written_kib {
            return Ok(());
        }
        let limit = format!("must be 0 to written_kib = {written_kib}");
        fault("verified/right_kib", format!("verified.right_kib = {right_kib}: {limit}"))
    }
}
