// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the messages that are missing in a pool, by comparing its segments.
//!
//! A segment that is gone, or so damaged that it does not count its messages any more, is known by
//! its neighbours: each begins with the number of durable messages before it. [`manifest`] is the
//! list of segments that the last start or end of a recording left in the directory. Called by
//! recorders that start, by exports and by the recovery; so they count the same.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use self::manifest::{Gone, Listed, Manifest};
use crate::mcap::evidence::{Evidence, segment_messages_max};
use crate::mcap::private::{Identity, Life};

pub mod manifest;

/// A file of the pool, as it was found.
#[derive(Debug, Clone)]
pub enum Found {
    /// It has a life, with messages or without.
    Life { path: PathBuf, life: Life, times_ns: Option<(u64, u64)>, evidence: Evidence },
    /// The same in a file outside of the pool: renamed as damaged, or of another directory.
    Aside { life: Life, evidence: Evidence },
    /// It was never used.
    Unused,
    /// Nothing says whose it is.
    Unreadable,
}

impl Found {
    /// The file as another pool finds it; None if it has no life.
    pub fn aside(&self) -> Option<Found> {
        match *self {
            Found::Life { life, evidence, .. } | Found::Aside { life, evidence } => {
                Some(Found::Aside { life, evidence })
            }
            Found::Unused | Found::Unreadable => None,
        }
    }
}

/// Messages that are missing, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The segment, or those around it.
    pub place: String,
    pub messages: u64,
    /// Whether there may be fewer.
    pub at_most: bool,
    /// Log times of the segment, if it is one that can be read.
    pub times_ns: Option<(u64, u64)>,
    /// Whose it is, if that is known.
    pub identity: Option<Identity>,
    /// Sequences of the first and the last life that it is of, if that is known.
    pub lives: Option<(u64, u64)>,
    /// Whether it was so when the list was written.
    pub known: bool,
}

impl Loss {
    /// For diagnostics.
    pub fn describe(&self) -> String {
        let Loss { place, messages, at_most, .. } = self;
        let at_most = if *at_most { "at most " } else { "" };
        format!("{place}: {at_most}{messages} messages are missing")
    }
}

/// A life in the pool, and its evidence.
struct Piece<'a> {
    path: &'a Path,
    life: &'a Life,
    times_ns: Option<(u64, u64)>,
    evidence: Evidence,
}

/// A life that only files outside of the pool have, and the number of its messages there.
struct Aside {
    identity: Identity,
    present: u64,
}

impl Piece<'_> {
    fn identity(&self) -> Identity {
        self.life.identity
    }

    /// It was prepared, and nothing was recorded.
    fn is_blank(&self) -> bool {
        self.evidence == Evidence::default()
    }

    /// The number of messages that it had for sure.
    fn counted(&self) -> u64 {
        self.evidence.counted.unwrap_or(0).max(self.evidence.at_least)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// The losses in the files of one directory.
pub fn losses(files: &[Found], manifest: Option<&Manifest>) -> Vec<Loss> {
    let pieces = pieces(files);
    let aside = aside(files, &pieces);
    let mut found: Vec<Loss> =
        pieces.iter().filter_map(|piece| of_piece(piece, manifest)).collect();
    let others = files.iter().filter(|file| matches!(file, Found::Unused)).count();
    let unreadable = files.iter().filter(|file| matches!(file, Found::Unreadable)).count();
    let there = pieces.len() + others;
    let missing = manifest.map_or(unreadable, |list| list.segments.saturating_sub(there));
    let is_later = |list: &Manifest, piece: &Piece<'_>| piece.identity().sequence > list.newest();
    // Nothing was recorded since: the list has all lives.
    let complete = manifest
        .filter(|list| pieces.iter().all(|piece| piece.is_blank() || !is_later(list, piece)));
    let later = |list: &Manifest| pieces.iter().filter(|piece| is_later(list, piece)).count();
    // One that looks unused was not when the list was written, if others have been used since.
    let hidden = |list: &Manifest| others > list.empty().saturating_sub(later(list));
    let any_missing = complete.is_none() && (missing > 0 || manifest.is_some_and(hidden));
    let reported = reported(&pieces, &found, manifest);
    let around = Around { any_missing, manifest, reported: &reported, aside: &aside };
    let spans = spans(&pieces, &around, &mut found);
    found.extend(spans.losses);
    // Segments that were prepared since have lost the oldest lives, unless they were empty.
    let prepared = |list: &Manifest| match list.ended {
        true => 0,
        false => later(list).saturating_sub(list.empty()),
    };
    let (gone, absent) =
        complete.map_or((Vec::new(), 0), |list| absent(list, &pieces, &aside, prepared(list)));
    let known = spans.absent + absent;
    found.extend(gone);
    let untold = missing.saturating_sub(known);
    let unlisted = manifest.map_or(0, |list| list.unreadable);
    // A complete list has all that held records, but for those that could not be read.
    let lost = if complete.is_some_and(|list| list.ended) { untold.min(unlisted) } else { untold };
    found.extend(
        unknown(lost, files, manifest).map(|loss| Loss { known: lost <= unlisted, ..loss }),
    );
    found.extend(reported);
    found
}

/// Losses that a start has reported, of segments that it made again. They count until newer lives
/// would have overwritten them, less the losses that `found` has of the same lives.
fn reported(pieces: &[Piece<'_>], found: &[Loss], manifest: Option<&Manifest>) -> Vec<Loss> {
    let Some(list) = manifest else { return Vec::new() };
    let newest = pieces.last().map_or(0, |piece| piece.identity().sequence).max(list.newest());
    let is_kept = |gone: &&Gone| newest < gone.last + list.segments as u64;
    let loss_of = |gone: &Gone| {
        let within = |loss: &&Loss| {
            let sequence = loss.identity.map(|identity| identity.sequence);
            sequence.is_some_and(|sequence| (gone.first..=gone.last).contains(&sequence))
        };
        let again: u64 = found.iter().filter(within).map(|loss| loss.messages).sum();
        let place = match gone.first == gone.last {
            true => format!("segment {}, which was gone", gone.first),
            false => format!("segments {} to {}, of which some were gone", gone.first, gone.last),
        };
        let loss = loss(place, gone.messages.saturating_sub(again), gone.at_most, None)?;
        Some(Loss { lives: Some((gone.first, gone.last)), known: true, ..loss })
    };
    list.gone.iter().filter(is_kept).filter_map(loss_of).collect()
}

/// The losses of lives that are not `there`. A start that made their segments again writes them to
/// the list. A new loss of unknown lives counts as one of the next life, which has no segment.
pub fn gone(losses: &[Loss], there: &[Identity], newest: u64) -> Vec<Gone> {
    let of = |loss: &Loss| {
        let is_there = loss.identity.is_some_and(|identity| there.contains(&identity));
        let unknown = (!loss.known).then_some((newest + 1, newest + 1));
        let (first, last) = loss.lives.or(unknown).filter(|_| !is_there)?;
        Some(Gone { first, last, messages: loss.messages, at_most: loss.at_most })
    };
    losses.iter().filter_map(of).collect()
}

/// By age; the copies of a life are one.
fn pieces(files: &[Found]) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for file in files {
        if let Found::Life { path, life, times_ns, evidence } = file {
            pieces.push(Piece { path, life, times_ns: *times_ns, evidence: *evidence });
        }
    }
    let life = |piece: &Piece<'_>| (piece.identity().sequence, piece.identity().recording_id);
    pieces.sort_by_key(|piece| (life(piece), Reverse(piece.evidence.present)));
    pieces.dedup_by(|copy, kept| {
        let is_copy = life(copy) == life(kept);
        if is_copy {
            kept.evidence = kept.evidence.joined(copy.evidence);
        }
        is_copy
    });
    for file in files {
        let Found::Aside { life, evidence } = file else { continue };
        if let Some(piece) = pieces.iter_mut().find(|piece| piece.identity() == life.identity) {
            piece.evidence = piece.evidence.with_aside(*evidence);
        }
    }
    pieces
}

fn aside(files: &[Found], pieces: &[Piece<'_>]) -> Vec<Aside> {
    let mut all: Vec<Aside> = Vec::new();
    for file in files {
        let Found::Aside { life: Life { identity, .. }, evidence } = *file else { continue };
        if pieces.iter().any(|piece| piece.identity() == identity) {
            continue;
        }
        match all.iter_mut().find(|one| one.identity == identity) {
            Some(known) => known.present = known.present.max(evidence.present),
            None => all.push(Aside { identity, present: evidence.present }),
        }
    }
    all
}

/// By its own records, and by the list.
fn of_piece(piece: &Piece<'_>, manifest: Option<&Manifest>) -> Option<Loss> {
    let Evidence { present, counted, missing_at_most, .. } = piece.evidence;
    let listed = manifest.and_then(|list| list.messages(&piece.identity()));
    let less_than = |expected: u64| expected.saturating_sub(present);
    let surely = less_than(piece.counted());
    // Only the newest one that was listed as a recording began may have got more messages since.
    let may_have_grown =
        manifest.is_none_or(|list| !list.ended && piece.identity().sequence == list.newest());
    let is_open = counted.is_none() && (listed.is_none() || may_have_grown);
    let listed_guess = match listed {
        Some(listed) if listed.at_most => less_than(listed.messages),
        _ => 0,
    };
    let guess = listed_guess.max(if is_open { missing_at_most } else { 0 });
    let surely = surely.max(listed.map_or(0, |listed| match listed.at_most {
        true => 0,
        false => less_than(listed.messages),
    }));
    let (messages, at_most) = (surely.max(guess), guess > surely);
    let known = known_missing(piece, manifest).is_some_and(|known| messages <= known);
    loss(piece.name(), messages, at_most, Some(piece)).map(|loss| Loss { known, ..loss })
}

/// How many were missing when the list was written; None if others are there now.
fn known_missing(piece: &Piece<'_>, manifest: Option<&Manifest>) -> Option<u64> {
    let listed = manifest.and_then(|list| list.messages(&piece.identity()))?;
    let there = listed.messages.saturating_sub(listed.missing);
    (there == piece.evidence.present).then_some(listed.missing)
}

fn loss(place: String, messages: u64, at_most: bool, piece: Option<&Piece<'_>>) -> Option<Loss> {
    // Without a summary, the missing messages may be of any time.
    let with_summary = piece.filter(|piece| piece.evidence.counted.is_some());
    let times_ns = with_summary.and_then(|piece| piece.times_ns);
    let identity = piece.map(|piece| piece.identity());
    let lives = identity.map(|identity| (identity.sequence, identity.sequence));
    let loss = Loss { place, messages, at_most, times_ns, identity, lives, known: false };
    (messages > 0).then_some(loss)
}

/// Facts besides the lives in the pool.
struct Around<'a> {
    any_missing: bool,
    manifest: Option<&'a Manifest>,
    reported: &'a [Loss],
    aside: &'a [Aside],
}

impl Around<'_> {
    /// The lives in other files between two of a recording.
    fn aside_between(&self, one: Identity, other: Identity) -> impl Iterator<Item = &Aside> {
        let is_between = move |aside: &&Aside| {
            let Identity { recording_id, sequence } = aside.identity;
            recording_id == one.recording_id && one.sequence < sequence && sequence < other.sequence
        };
        self.aside.iter().filter(is_between)
    }
}

struct Spans {
    losses: Vec<Loss>,
    /// Lives that are not there, between those that are.
    absent: usize,
}

/// From one life to the next of the same recording whose beginnings say how many messages were
/// durable before. Replaces what was found of the single lives between if that is less, or a guess.
/// Losses in `reported` are no part of it.
fn spans(pieces: &[Piece<'_>], around: &Around<'_>, found: &mut Vec<Loss>) -> Spans {
    let &Around { any_missing, manifest, reported, .. } = around;
    let mut spans = Spans { losses: Vec::new(), absent: 0 };
    let known: Vec<usize> =
        (0..pieces.len()).filter(|&at| pieces[at].evidence.begun.is_some()).collect();
    for pair in known.windows(2) {
        let (first, next) = (pair[0], pair[1]);
        let (one, other) = (pieces[first].identity(), pieces[next].identity());
        let lives = (other.sequence - one.sequence) as usize;
        let absent = lives.saturating_sub(next - first);
        // An incident may have kept one that is older than those that were overwritten.
        if one.recording_id != other.recording_id || (absent > 0 && !any_missing) {
            continue;
        }
        let begun = |at: usize| pieces[at].evidence.begun.unwrap_or(0);
        let present: u64 = pieces[first..next].iter().map(|piece| piece.evidence.present).sum();
        let aside = around.aside_between(one, other).map(|aside| aside.present);
        let present = present + aside.sum::<u64>();
        let range = (one.sequence, other.sequence - 1);
        let is_within_range =
            |loss: &&Loss| loss.lives.is_some_and(|(from, to)| range.0 <= from && to <= range.1);
        let reported: u64 = reported.iter().filter(is_within_range).map(|loss| loss.messages).sum();
        let all = begun(next).saturating_sub(begun(first));
        let messages = all.saturating_sub(present + reported);
        // Without a loss, no segment is gone: a number was left out, or the segment was made again.
        spans.absent += match messages {
            0 => around.aside_between(one, other).count(),
            _ => absent,
        };
        let within = |loss: &Loss| {
            let inside = |identity: Identity| {
                pieces[first..next].iter().any(|piece| piece.identity() == identity)
            };
            loss.identity.is_some_and(inside)
        };
        let of_pieces: u64 = found
            .iter()
            .filter(|loss| within(loss) && !loss.at_most)
            .map(|loss| loss.messages)
            .sum();
        // Where there is a loss, it is this one: what single segments say is a part of it. Where
        // there is none, only an equal count of the segments shows that no guess is right.
        let counted = pieces[first..next].iter().map(Piece::counted).sum::<u64>();
        if messages < of_pieces || (messages == 0 && counted != all) {
            continue;
        }
        found.retain(|loss| !within(loss));
        let place = match next - first + absent {
            1 => pieces[first].name(),
            _ => format!("{} to {}", pieces[first].name(), pieces[next].name()),
        };
        let piece = if absent == 0 { Some(&pieces[first]) } else { None };
        let listed = pieces[first..next].iter().map(|piece| known_missing(piece, manifest));
        let known = absent == 0 && listed.sum::<Option<u64>>().is_some_and(|all| messages <= all);
        let loss = loss(place, messages, false, piece);
        spans.losses.extend(loss.map(|loss| Loss { known, lives: Some(range), ..loss }));
    }
    spans
}

/// Lives that the list has and the pool has not, when nothing was recorded since: the losses, and
/// the number of these lives.
fn absent(
    list: &Manifest,
    pieces: &[Piece<'_>],
    aside: &[Aside],
    overwritten: usize,
) -> (Vec<Loss>, usize) {
    let is_there = |identity: &Identity| pieces.iter().any(|piece| piece.identity() == *identity);
    let mut absent: Vec<(Identity, Listed)> =
        list.lives().filter(|(identity, _)| !is_there(identity)).collect();
    absent.sort_by_key(|(identity, _)| identity.sequence);
    let loss = |(identity, Listed { messages, missing, .. }): (Identity, Listed)| {
        let sequence = identity.sequence;
        let place = format!("segment {sequence}, which is gone");
        let of_life = aside.iter().filter(|aside| aside.identity == identity);
        let present: u64 = of_life.map(|aside| aside.present).sum();
        let loss = loss(place, messages.saturating_sub(missing + present), false, None)?;
        Some(Loss { lives: Some((sequence, sequence)), ..loss })
    };
    let absent = absent.split_off(overwritten.min(absent.len()));
    (absent.iter().copied().filter_map(loss).collect(), absent.len())
}

/// Whether any file of the directory, gone or not, may have compressed blocks. The list has it
/// before the first such block is written.
pub fn may_be_compressed(files: &[Found], manifest: Option<&Manifest>) -> bool {
    let is_compressed =
        |file: &Found| matches!(file, Found::Life { life, .. } if life.is_compressed);
    manifest.is_none_or(|list| list.compressed) || files.iter().any(is_compressed)
}

/// The losses of segments whose contents are unknown.
fn unknown(count: usize, files: &[Found], manifest: Option<&Manifest>) -> Option<Loss> {
    let of_file = |file: &Found| match file {
        Found::Life { life, .. } => Some(life.segment_bytes),
        _ => None,
    };
    let of_files = files.iter().filter_map(of_file).max();
    let segment_bytes = of_files.or(manifest.map(|list| list.segment_bytes)).unwrap_or(0);
    let is_compressed = may_be_compressed(files, manifest);
    let messages = count as u64 * segment_messages_max(is_compressed, segment_bytes);
    loss(format!("{count} segments, which are gone or cannot be read"), messages, true, None)
}

#[cfg(test)]
mod tests;
