// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady probe --blank`: fills a card that may be overwritten, and reads it back, before its times
//! are measured.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_probe::discard;
use steadyio_probe::place::{Place, ProbeError, Way};
use steadyio_probe::profile::Full;
use steadyio_probe::verify::{BLOCK_BYTES, Pattern, Verified, fill, read_back};

use super::blank_text::of_verified;
use crate::progress::Pace;

/// Half of the filled part must be large enough for a probe.
const LEAST_MIB: u64 = 128;
/// The contents of a card in production. The rest is deleted again.
const FULL_PERCENT: u64 = 80;
/// The end of the kept part is a multiple of this, so that the card can erase behind it.
const ERASE_BYTES: u64 = 4 << 20;

/// A card ready to be measured.
pub struct Filled {
    /// The part that holds data.
    pub size_bytes: u64,
    pub full: Full,
    pub verified: Verified,
}

/// Before anything is written.
pub fn check_size(path: &Path, size_bytes: u64) -> anyhow::Result<()> {
    let (name, mib) = (path.display(), size_bytes >> 20);
    ensure!(mib >= LEAST_MIB, "--blank: {name} has {mib} MiB: must have at least {LEAST_MIB} MiB");
    Ok(())
}

/// Fills all of a region: a counterfeit may lack any part of it. Without discards it stays full.
pub fn prepare(
    path: &Path,
    size_bytes: u64,
    takes_discards: bool,
    stop: &Interrupt,
) -> Result<Filled, ProbeError> {
    let size_bytes = size_bytes / BLOCK_BYTES * BLOCK_BYTES;
    let mut place = Place::open(path, size_bytes, Way::Write)?;
    let pattern = Pattern::new(seed());
    fill(&mut place, size_bytes, pattern, stop, &mut progress("filling", size_bytes))?;
    let tick = &mut progress("reading back", size_bytes);
    let verified = read_back(&mut place, size_bytes, pattern, stop, tick)?;
    if verified.lost_data() {
        diagnostic!("steady: read back: {}", of_verified(&verified));
    }
    if !takes_discards {
        return Ok(Filled { size_bytes, full: Full { percent: 100 }, verified });
    }
    let kept_bytes = size_bytes / 100 * FULL_PERCENT / ERASE_BYTES * ERASE_BYTES;
    discard::all(&place, kept_bytes, size_bytes, stop)?;
    Ok(Filled { size_bytes: kept_bytes, full: Full { percent: FULL_PERCENT }, verified })
}

/// Another one in each run.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Prints how far it is.
fn progress(what: &'static str, all_bytes: u64) -> impl FnMut(u64) {
    let all_mib = all_bytes >> 20;
    diagnostic!("steady: {what}, {all_mib} MiB");
    let (started, mut pace) = (Instant::now(), Pace::new());
    move |done_bytes| {
        if pace.is_due(started.elapsed()) {
            diagnostic!("steady: {what}: {} of {all_mib} MiB", done_bytes >> 20);
        }
    }
}
