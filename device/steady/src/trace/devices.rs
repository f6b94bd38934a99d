// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which devices are meant.

use std::collections::BTreeSet;

use anyhow::anyhow;
use steadyio::trace::event::Dev;

/// What is named as `MAJOR:MINOR`, on any machine.
pub fn find_number(text: &str) -> anyhow::Result<BTreeSet<Dev>> {
    let dev = number(text).ok_or_else(|| {
        anyhow!(
            "--device {text}: a file does not tell names, so it must be MAJOR:MINOR, such as 179:0"
        )
    })?;
    Ok(BTreeSet::from([dev]))
}

fn number(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(Dev { major: major.parse().ok()?, minor: minor.parse().ok()? })
}
