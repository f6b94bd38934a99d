// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady probe --verdict`: one page that says whether a card holds a rate.

use std::path::Path;

use anyhow::anyhow;
use serde_json::json;
use steadyio_probe::claims::Claims;
use steadyio_probe::profile::{Profile, Seen};
use steadyio_probe::verdict::{Answer, Verdict, verdict};

use super::blank_text::of_blank;
use super::comparing::read;
use super::text::of_seen;
use crate::exit::{Failure, Status};
use crate::output::print;
use crate::table::align;

const SCHEMA: &str = "steadyio.verdict/1";
const WORDS: [usize; 2] = [0, 1];

pub fn run(path: &Path, rate_kib_s: u64, block_kib: u64, json: bool) -> Result<Status, Failure> {
    let profile = read(path).map_err(Failure::with(Status::Usage))?;
    let found = verdict(&profile, rate_kib_s, block_kib);
    let (Some(found), Some(seen)) = (found, &profile.seen.write) else {
        let name = path.display();
        let text = anyhow!("{name}: writes were not measured (probe with --write)");
        return Err(Failure::with(Status::Flawed)(text));
    };
    print(&if json { document(&profile, &found, seen) } else { page(&profile, &found, seen) })?;
    let holds = matches!(found.answer, Answer::Holds | Answer::HoldsWithBuffer);
    Ok(if holds { Status::Done } else { Status::Flawed })
}

fn document(profile: &Profile, found: &Verdict, seen: &Seen) -> String {
    let document = json!({
        "schema": SCHEMA,
        "tool": { "steady": env!("CARGO_PKG_VERSION") },
        "title": profile.title,
        "claims": profile.claims,
        "claimed_kib_s": profile.claims.as_ref().and_then(Claims::written_kib_s),
        "verdict": found,
        "confidence": of_seen("write", seen),
        "full": profile.full,
        "deleting": profile.deleting,
        "verified": profile.verified,
        "not_tried": not_tried(profile),
    });
    format!("{document:#}\n")
}

/// The first three by a probe of a card that is not blank, the others by no probe.
fn not_tried(profile: &Profile) -> String {
    let all = [
        ("a full card", profile.full.is_none()),
        ("files that are deleted meanwhile", profile.deleting.is_none()),
        ("whether what was written can be read back", profile.verified.is_none()),
        ("a worn card", true),
        ("heat", true),
    ];
    let names: Vec<&str> = all.into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
    names.join(", ")
}

fn answer(found: &Verdict) -> String {
    let rate = found.rate_kib_s;
    match found.answer {
        Answer::Holds => format!("holds {rate} KiB/s with two blocks"),
        Answer::HoldsWithBuffer => {
            format!("holds {rate} KiB/s with a buffer of {} KiB", found.buffer_kib)
        }
        Answer::Unknown => {
            let (least, most) = (found.least_kib_s, found.most_kib_s);
            format!("unknown for {rate} KiB/s: it writes {least} to {most} KiB/s in such blocks")
        }
        Answer::DoesNotHold => format!("does not hold {rate} KiB/s, but {}", found.least_kib_s),
        Answer::LosesData => "loses data, and holds no rate".into(),
    }
}

/// Why the answer is unknown.
fn reason(found: &Verdict) -> &'static str {
    if found.may_be_faster {
        return "the profile has only limits of the time of such large commands";
    }
    "how often a deletion delays a write so long is not known"
}

/// How to get an answer where the profile has none.
fn find_out(found: &Verdict, seen: &Seen) -> String {
    let (rate, block) = (found.rate_kib_s, found.block_kib);
    if !found.may_be_faster {
        return format!("write {rate} KiB/s in durable blocks of {block} KiB, and delete as much");
    }
    let exact = seen.exact_kib.filter(|kib| *kib > 0);
    let smaller = exact.map_or(String::new(), |kib| {
        format!("; or ask for --block {kib} or less, whose time the profile has")
    });
    format!("write {rate} KiB/s to the card in durable blocks of {block} KiB{smaller}")
}

fn page(profile: &Profile, found: &Verdict, seen: &Seen) -> String {
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut say = |name: &str, text: String| rows.push([name.into(), text]);
    say("verdict", answer(found));
    if let Some(claims) = &profile.claims {
        say("it claims", claims.words().join(", "));
        if let Some(kib_s) = claims.written_kib_s() {
            say("", format!("{kib_s} KiB/s or more in sequential writes"));
        }
    }
    let block = format!("blocks of {} KiB, each durable", found.block_kib);
    let or_more = if found.may_be_faster { " or more" } else { "" };
    say("it writes", format!("{} KiB/s{or_more} in {block}", found.usual_kib_s));
    let worst = if profile.deleting.is_some() { "pauses and deletions" } else { "pauses" };
    say("", format!("{} KiB/s if all {worst} are as the worst ones", found.least_kib_s));
    if found.answer == Answer::Unknown {
        say("reason", reason(found).into());
        say("find out", find_out(found, seen));
    }
    let longest_ms = found.longest_ns as f64 / 1e6;
    say("it stalls", format!("for {longest_ms:.1} ms at most, as measured"));
    for (name, line) in of_blank(profile) {
        say(name, line);
    }
    for (at, line) in of_seen("write", seen).into_iter().enumerate() {
        say(if at == 0 { "confidence" } else { "" }, line);
    }
    say("not tried", not_tried(profile));
    let source = format!("{}, {} s of writes", profile.source, seen.seconds);
    say("measured by", source);
    format!("{}\n{}", profile.title, align(&rows, &WORDS))
}
