// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines about a blank card, in the summary and on the page of a verdict.

use steadyio_probe::deleting::{BLOCK_KIB, Deleting};
use steadyio_probe::profile::Profile;
use steadyio_probe::verify::Verified;

/// The results, with a name for each; nothing of another card.
pub fn of_blank(profile: &Profile) -> Vec<(&'static str, String)> {
    let full = profile.full.as_ref().zip(profile.seen.write.as_ref()).map(|(full, seen)| {
        let (percent, samples) = (full.percent, seen.samples);
        let longest_ms = seen.longest_ns as f64 / 1e6;
        let text = format!(
            "{longest_ms:.1} ms for the longest of {samples} writes while {percent} % of the card held \
             data"
        );
        ("full", text)
    });
    let deleting = profile.deleting.as_ref().map(|found| ("deleting", of_deleting(found)));
    let verified = profile.verified.as_ref().map(|found| ("read back", of_verified(found)));
    full.into_iter().chain(deleting).chain(verified).collect()
}

fn of_deleting(found: &Deleting) -> String {
    let Deleting { kib_s, samples, deleted_kib, longest_ns } = found;
    let (longest_ms, mib) = (*longest_ns as f64 / 1e6, deleted_kib >> 10);
    format!(
        "{kib_s} KiB/s in blocks of {BLOCK_KIB} KiB, each durable, {longest_ms:.1} ms for the longest \
         of {samples}, while {mib} MiB were deleted"
    )
}

/// Also printed as soon as data are lost.
pub fn of_verified(found: &Verified) -> String {
    let (mib, right_mib) = (found.written_kib >> 10, found.right_kib >> 10);
    if !found.lost_data() {
        return format!("all of {mib} MiB that were written");
    }
    let at_kib = found.wrong_at_kib.unwrap_or(0);
    let has = match found.belongs_at_kib {
        Some(kib) => format!("what was written at {kib} KiB"),
        None => "what was never written".into(),
    };
    format!(
        "only {right_mib} of {mib} MiB that were written: the card holds no more; the first wrong \
         block, at {at_kib} KiB, has {has}"
    )
}
