// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completes a segment in place that a power cut, a kill or a crash left unfinished.
//! [`super::files`] calls it.
//!
//! The order makes a second cut at any point harmless. No block of data is ever written. The end
//! block goes after the last one of this life, and overwrites no valid block. The tail follows when
//! the end block is durable; the gate opens when the tail is. A repeated recovery finds the same
//! blocks and writes the same bytes. Where blocks are damaged, only the head of the first one's
//! first record changes. That head is the same in all blocks, so none of their data is lost.

use std::io;

use super::account::{ChannelLedger, CompletedBy, Gaps};
use super::digest::ChannelDigest;
use super::encoder::{Encoder, FileRange};
use super::evidence::{Evidence, durable, segment_messages_max};
use super::follow::{definitions_copy, has_block, holds_our_blocks, scan};
use super::layout::{ALIGN_BYTES, ANY_BLOCK_BYTES_LIMIT, HEAD_BYTES, Placement};
use super::private::{
    BLOCK_RECORD_BYTES, BlockKind, BlockRecord, COMPRESSED_VERSION, FORMAT_VERSION, GATE_OFFSET,
    Identity, Life, get_head, is_ours, private_op, profile_in_head, profile_in_metadata, put_head,
};
use super::scan::{Scanned, Scanner, Stop};
use super::sealed::{Sealed, read_exactly, sealed};
use super::sectors::{Sectors, Unreadable};
use super::storage::{Storage, WritableStorage};
use super::wire::{Get, MAGIC, Put, RECORD_HEAD_BYTES, op};

/// The reason why a file stays unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is in another format.
    #[error("not an MCAP file (bad magic)")]
    NotMcap,
    /// The file is a segment of another version, or is damaged in head and definitions.
    #[error(
        "is a segment of a steadyio recorder, but head and definitions are damaged, or of another \
         version than {FORMAT_VERSION} or {COMPRESSED_VERSION}: it was not changed"
    )]
    UnknownLife,
    /// The file is an MCAP file without an end, from another program.
    #[error(
        "was not written by a steadyio recorder, and has no end: it was not changed; 'mcap recover' \
         completes such files"
    )]
    Foreign,
    /// The segment has another size than its head says.
    #[error("has {file} bytes, but its head says {head}: it was changed by something else")]
    WrongSize { file: u64, head: u64 },
    /// The device cannot read the part that identifies the file.
    #[error("{0}, and the rest does not identify its contents: it was not changed")]
    Unreadable(Unreadable),
}

impl RecoverError {
    /// Whether the device failed, and not the file.
    pub fn is_io(&self) -> bool {
        matches!(self, RecoverError::Io(_))
    }
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A segment of the pool that was never used.
    Unused,
    /// A life began, but nothing was recorded in it.
    Blank,
    /// The file is complete.
    Finished,
    /// The file is complete, but still hidden or without a valid head. The head must be rewritten.
    Hidden,
    /// The recorder did not end the file.
    Unfinished,
    /// The file has data of its life, but the definitions are missing. It stays unchanged.
    Damaged,
}

impl State {
    /// The state, for reports.
    pub fn describe(self) -> &'static str {
        match self {
            State::Unused => "unused",
            State::Blank => "blank",
            State::Finished => "finished",
            State::Hidden => "hidden",
            State::Unfinished => "unfinished",
            State::Damaged => "damaged",
        }
    }

    /// Whether something is missing that the recovery adds.
    pub fn is_incomplete(self) -> bool {
        matches!(self, State::Hidden | State::Unfinished)
    }
}

/// A channel of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelFound {
    /// The id in the file.
    pub id: u16,
    pub topic: String,
    pub messages: u64,
    /// The digest, if all blocks were read.
    pub digest: Option<ChannelDigest>,
    /// The last ledger in the file.
    pub ledger: ChannelLedger,
}

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The channels, in the order of the definitions.
    pub channels: Vec<ChannelFound>,
    /// The earliest and the latest log time; zero without messages.
    pub times_ns: (u64, u64),
    pub chunks: u64,
    /// The end of the valid data.
    pub data_end: u64,
}

/// The contents of a file, and the remaining steps of its recovery.
#[derive(Debug)]
pub struct Examined {
    pub state: State,
    /// The life; None for files of other programs.
    pub life: Option<Life>,
    /// The contents; None for unused and blank files, and for those of other programs.
    pub contents: Option<Contents>,
    /// The reason why the data ends, if all blocks were read.
    pub stop: Option<Stop>,
    /// Whether a finished file has other blocks than its tail describes: they were changed later.
    pub damaged: bool,
    /// The missing blocks. For a finished file that was not read completely, these are the blocks
    /// that the recovery counted.
    pub gaps: Gaps,
    /// The part that the device could not read although a recovery needs it. The file stays
    /// unchanged.
    pub unreadable: Option<Unreadable>,
    /// The number of messages that it should hold.
    pub evidence: Evidence,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Nothing,
    Gate(Life),
    Blocks(Box<(Life, Scanned)>),
}

/// Examines a file without changing it. With `verify`, finished files are read completely, too. A
/// part that the device cannot read counts as damaged.
pub fn examine(storage: &dyn Storage, verify: bool) -> Result<Examined, RecoverError> {
    examine_sectors(&Sectors::new(storage), verify)
}

pub(super) fn examine_sectors(
    sectors: &Sectors<'_>,
    verify: bool,
) -> Result<Examined, RecoverError> {
    let found = examine_readable(sectors, verify);
    let Some(unreadable) = sectors.unreadable() else { return found };
    match found {
        Err(error) if !error.is_io() => Err(RecoverError::Unreadable(unreadable)),
        found => found.map(|found| found.with_unreadable(unreadable)),
    }
}

fn examine_readable(storage: &dyn Storage, verify: bool) -> Result<Examined, RecoverError> {
    let Some((life, head_good)) = find_life(storage)? else { return examine_headless(storage) };
    let file = storage.bytes()?;
    if file > life.segment_bytes && life.placement == Placement::Recycled {
        return Err(RecoverError::WrongSize { file, head: life.segment_bytes });
    }
    if let Some(tail) = sealed(storage, &life)? {
        let state = if head_good { State::Finished } else { State::Hidden };
        let rest = if head_good { Rest::Nothing } else { Rest::Gate(life) };
        let reads = verify || tail.end_is_lost;
        let scanned =
            if reads { Some(scan(storage, life, Some(&tail.definitions))?) } else { None };
        let evidence = Evidence::of_tail(&life, &tail, begun(storage, &life)?);
        return Ok(finished(state, life, &tail, scanned, rest).with_tail(evidence));
    }
    // A recycled file keeps its size, and its gate is opened after its end block and tail are
    // written.
    let was_whole = head_good || file < life.segment_bytes;
    let found = unfinished(storage, life)?;
    let is_recycled = life.placement == Placement::Recycled;
    if !is_recycled || !was_whole {
        return Ok(found);
    }
    let is_cut = file < life.segment_bytes;
    // After a power cut, a partly written head may look complete, over the blocks of an earlier
    // life.
    if found.state == State::Blank && (is_cut || !holds_our_blocks(storage)?) {
        return Ok(found.without_its_blocks(&life));
    }
    Ok(found.without_its_end(is_cut))
}

/// The durable messages of the recording before this life.
pub(super) fn begun(storage: &dyn Storage, life: &Life) -> io::Result<Option<u64>> {
    let block = definitions_block(storage, life)?;
    let mut scanner = Scanner::new(*life);
    let accepted = block.is_some_and(|block| scanner.accept(HEAD_BYTES as u64, &block).is_ok());
    let scanned = if accepted { scanner.finish() } else { None };
    Ok(scanned.and_then(|scanned| scanned.begun_ledger).map(|ledger| durable(&ledger)))
}

fn unfinished(storage: &dyn Storage, life: Life) -> Result<Examined, RecoverError> {
    let (stop, scanned) = scan(storage, life, None)?;
    // The copy of the definitions exists as soon as a life begins.
    let is_begun = |scanned: &Scanned| scanned.blocks > 1 || !scanned.is_defined_by_copy;
    let damaged = scanned.is_none() && has_block(storage, &life)?;
    let Some(scanned) = scanned.filter(is_begun) else {
        let nothing = Examined::new(State::Blank, Some(life), None, Rest::Nothing);
        let nothing = Examined { stop: Some(stop), ..nothing };
        return Ok(if damaged { nothing.without_its_blocks(&life) } else { nothing });
    };
    let gaps = scanned.gaps;
    let evidence = Evidence::of_blocks(&life, &scanned);
    let contents = Some(scanned_contents(&scanned));
    let rest = Rest::Blocks(Box::new((life, scanned)));
    Ok(Examined {
        stop: Some(stop),
        gaps,
        evidence,
        ..Examined::new(State::Unfinished, Some(life), contents, rest)
    })
}

/// Examines a file whose head and definitions name no life; the copy at its end may.
fn examine_headless(storage: &dyn Storage) -> Result<Examined, RecoverError> {
    let copy = definitions_copy(storage)?;
    let life = copy.as_deref().and_then(|copy| Life::get(copy.get(BLOCK_RECORD_BYTES..)?));
    // The copy may be the only part of its life that was written.
    match life.map(|life| unfinished(storage, life)).transpose()? {
        Some(found) if found.state == State::Unfinished => Ok(found),
        _ => examine_other(storage),
    }
}

fn finished(
    state: State,
    life: Life,
    tail: &Sealed,
    scanned: Option<(Stop, Option<Scanned>)>,
    rest: Rest,
) -> Examined {
    let mut found = Examined::new(state, Some(life), Some(sealed_contents(tail)), rest);
    found.gaps = tail.gaps;
    if let Some((stop, scanned)) = scanned {
        let read = scanned.as_ref().map(scanned_contents);
        let complete = |scanned: &Scanned| {
            let ends = scanned.end.is_some_and(|end| end.offset == tail.end_offset);
            ends && scanned.gaps == tail.gaps && !scanned.is_defined_by_copy && !tail.end_is_lost
        };
        found.damaged = !scanned.as_ref().is_some_and(complete);
        found.gaps = scanned.as_ref().map_or(found.gaps, |scanned| scanned.gaps);
        found.stop = Some(stop);
        found.contents = read.or(found.contents);
    }
    found
}

fn examine_other(storage: &dyn Storage) -> Result<Examined, RecoverError> {
    let mut start = [0; ALIGN_BYTES];
    let count = storage.read(0, &mut start)?;
    if was_never_used(&start[..count]) {
        return Ok(Examined::new(State::Unused, None, None, Rest::Nothing));
    }
    if !start[..count].starts_with(&MAGIC) {
        return Err(RecoverError::NotMcap);
    }
    // With much damage, only its blocks show that the file is a segment.
    if is_ours(&start) || holds_our_blocks(storage)? {
        return Err(RecoverError::UnknownLife);
    }
    let end = storage.bytes()?.saturating_sub(MAGIC.len() as u64);
    let last = read_exactly(storage, end, MAGIC.len())?;
    // A file with nothing but a beginning has both at the same place.
    if end > 0 && last.is_some_and(|last| last == MAGIC) {
        return Ok(Examined::new(State::Finished, None, None, Rest::Nothing));
    }
    Err(RecoverError::Foreign)
}

/// Whether a file was never used: zeros, or only the gate of a first head. The sector before that
/// has the life, so nothing was recorded without it.
fn was_never_used(head: &[u8]) -> bool {
    let (front, gate) = head.split_at(head.len().min(GATE_OFFSET));
    let content = match gate.first() {
        Some(&private_op::GATE) => gate.get(RECORD_HEAD_BYTES..).unwrap_or_default(),
        _ => gate,
    };
    front.iter().chain(content).all(|byte| *byte == 0)
}

/// The newest life in the file, and whether the head has and shows it. If the head is lost, the
/// definitions block has a copy.
pub(super) fn find_life(storage: &dyn Storage) -> io::Result<Option<(Life, bool)>> {
    let head = read_exactly(storage, 0, HEAD_BYTES)?;
    let head = head.as_deref().and_then(get_head);
    let copy = life_copy(storage)?;
    let newest = |copy: &Life| match &head {
        Some((life, _)) => copy.identity.sequence > life.identity.sequence,
        None => true,
    };
    Ok(match copy.filter(newest) {
        Some(life) => Some((life, false)),
        None => head,
    })
}

fn life_copy(storage: &dyn Storage) -> io::Result<Option<Life>> {
    let Some(start) = read_exactly(storage, HEAD_BYTES as u64, ALIGN_BYTES)? else {
        return Ok(None);
    };
    let copy = BlockRecord::get(&start)
        .filter(|record| record.kind == BlockKind::Definitions)
        .zip(Life::get(&start[BLOCK_RECORD_BYTES..]))
        .filter(|(record, life)| record.identity == life.identity);
    Ok(copy.map(|(_, life)| life))
}

/// The profile of a life, from the head, or if that is damaged from the definitions.
pub(super) fn profile(storage: &dyn Storage, life: &Life) -> io::Result<String> {
    let head = read_exactly(storage, 0, HEAD_BYTES)?;
    if let Some(profile) = head.as_deref().and_then(|head| profile_in_head(head, life)) {
        return Ok(profile.into());
    }
    let block = definitions_block(storage, life)?;
    let records = block.as_deref().and_then(|block| block.get(BLOCK_RECORD_BYTES..));
    let mut records = Get::new(records.unwrap_or_default());
    let mut profile = "";
    while let Some((opcode, content)) = records.record() {
        if opcode == op::METADATA {
            profile = profile_in_metadata(content).unwrap_or_default();
        }
    }
    Ok(profile.into())
}

fn definitions_block(storage: &dyn Storage, life: &Life) -> io::Result<Option<Vec<u8>>> {
    let offset = HEAD_BYTES as u64;
    let Some(start) = read_exactly(storage, offset, ALIGN_BYTES)? else { return Ok(None) };
    let of_this_life = |record: &BlockRecord| {
        record.identity == life.identity && record.block_bytes as usize <= ANY_BLOCK_BYTES_LIMIT
    };
    let Some(record) = BlockRecord::get(&start).filter(of_this_life) else { return Ok(None) };
    let block = read_exactly(storage, offset, record.block_bytes as usize)?;
    Ok(block.filter(|block| record.fits(block)))
}

fn scanned_contents(scanned: &Scanned) -> Contents {
    let counts = scanned.index.channels().iter();
    let channels = counts.enumerate().map(|(at, channel)| ChannelFound {
        id: channel.id,
        topic: scanned.definitions.topics()[at].clone(),
        messages: channel.messages,
        digest: Some(scanned.digests[at]),
        ledger: scanned.ledger[at],
    });
    Contents {
        channels: channels.collect(),
        times_ns: scanned.index.times_ns(),
        chunks: u64::from(scanned.index.chunks()),
        data_end: scanned.end.map_or(scanned.offset, |end| end.offset),
    }
}

fn sealed_contents(tail: &Sealed) -> Contents {
    let ids = tail.definitions.channel_ids().iter();
    let channels = ids.enumerate().map(|(at, id)| ChannelFound {
        id: *id,
        topic: tail.definitions.topics()[at].clone(),
        messages: tail.counts.iter().find(|c| c.id == *id).map_or(0, |c| c.messages),
        digest: None,
        ledger: tail.ledger[at],
    });
    Contents {
        channels: channels.collect(),
        times_ns: tail.times_ns,
        chunks: u64::from(tail.chunks),
        data_end: tail.end_offset,
    }
}

impl Examined {
    fn new(state: State, life: Option<Life>, contents: Option<Contents>, rest: Rest) -> Examined {
        let gaps = Gaps::default();
        let (stop, unreadable) = (None, None);
        let evidence = Evidence::default();
        Examined { state, life, contents, stop, damaged: false, gaps, unreadable, evidence, rest }
    }

    /// Adds the count of a tail, and the messages that were found.
    fn with_tail(self, evidence: Evidence) -> Examined {
        let evidence = evidence.with_found(self.messages());
        Examined { evidence, ..self }
    }

    /// Marks a file that had an end block and a summary. Without the end block nothing may be
    /// written over their places.
    fn without_its_end(self, is_cut: bool) -> Examined {
        let (Rest::Blocks(blocks), Some(contents)) = (&self.rest, &self.contents) else {
            return self;
        };
        let (life, scanned) = &**blocks;
        if scanned.end.is_some() && !is_cut {
            return self;
        }
        let evidence = self.evidence.with_lost_end(life, contents.data_end);
        Examined { damaged: true, evidence, ..self }
    }

    /// Marks a file that held data of which nothing is readable.
    fn without_its_blocks(self, life: &Life) -> Examined {
        let missing_at_most = segment_messages_max(life.is_compressed, life.segment_bytes);
        let evidence = Evidence { missing_at_most, ..self.evidence };
        Examined { state: State::Damaged, damaged: true, evidence, ..self }
    }

    /// Marks a part that could not be read, and may have been data.
    fn with_unreadable(self, unreadable: Unreadable) -> Examined {
        let state = match self.state {
            State::Unused | State::Blank => State::Damaged,
            state => state,
        };
        Examined { state, damaged: true, unreadable: Some(unreadable), ..self }
    }

    /// Whether the recovery can add the missing parts. It writes nothing to a file with unreadable
    /// parts, because they may be readable with another device or later.
    pub fn can_be_completed(&self) -> bool {
        let lost_its_end = self.state == State::Unfinished && self.damaged;
        self.state.is_incomplete() && self.unreadable.is_none() && !lost_its_end
    }

    /// Whether the file has records, readable or not.
    pub fn holds_data(&self) -> bool {
        let has_messages = self.state != State::Blank && self.messages() > 0;
        has_messages || self.damaged || self.evidence.counted.is_some_and(|count| count > 0)
    }

    /// The number of messages found.
    pub fn messages(&self) -> u64 {
        let channels = self.contents.iter().flat_map(|contents| &contents.channels);
        channels.map(|channel| channel.messages).sum()
    }

    /// Whether its summary was trusted, and no block was read.
    pub fn is_unread(&self) -> bool {
        let channels = self.contents.iter().flat_map(|contents| &contents.channels);
        channels.filter(|channel| channel.messages > 0).any(|channel| channel.digest.is_none())
    }

    /// The identity of its life; None for files of other programs.
    pub fn identity(&self) -> Option<Identity> {
        self.life.map(|life| life.identity)
    }

    /// The blocks of a segment without a summary.
    pub(super) fn into_blocks(self) -> Option<(Life, Scanned)> {
        match self.rest {
            Rest::Blocks(blocks) => Some(*blocks),
            _ => None,
        }
    }

    /// Completes the file. It does nothing if nothing is missing, or if the file must stay
    /// unchanged.
    pub fn complete(self, storage: &mut dyn WritableStorage) -> io::Result<()> {
        if !self.can_be_completed() {
            return Ok(());
        }
        match self.rest {
            Rest::Nothing => Ok(()),
            Rest::Gate(life) => open_gate(storage, &life),
            Rest::Blocks(blocks) => {
                let (life, scanned) = *blocks;
                complete_blocks(storage, life, scanned)
            }
        }
    }
}

fn complete_blocks(
    storage: &mut dyn WritableStorage,
    life: Life,
    scanned: Scanned,
) -> io::Result<()> {
    let ledger = scanned.ledger.clone();
    let mut buffer = vec![0; scanned.layout.buffer_bytes()];
    if scanned.is_defined_by_copy {
        let mut encoder = Encoder::new(scanned.layout.clone(), scanned.definitions.clone());
        encoder.begin_with(life.identity, life.created_ns, scanned.begun);
        // A wrong ledger would hide messages missing before this segment.
        let place = encoder.definitions(&mut buffer, &[]);
        put(storage, place, &buffer)?;
    }
    for gap in &scanned.gap_places {
        let mut head = [0; RECORD_HEAD_BYTES];
        let content_bytes = gap.bytes - RECORD_HEAD_BYTES as u64;
        Put::new(&mut head).record(private_op::GAP, content_bytes);
        storage.write(gap.offset, &head)?;
    }
    let mut encoder = Encoder::resume(life, scanned);
    if !encoder.is_ended() {
        let place = encoder.end_block(&mut buffer, &ledger, CompletedBy::Recovery);
        put(storage, place, &buffer)?;
    }
    let place = encoder.tail(&mut buffer);
    put(storage, place, &buffer)?;
    if life.placement == Placement::Growing {
        storage.truncate(place.offset + place.bytes as u64)?;
        storage.sync()?;
    }
    open_gate(storage, &life)
}

/// Writes, and makes it durable before the next write.
fn put(storage: &mut dyn WritableStorage, place: FileRange, buffer: &[u8]) -> io::Result<()> {
    storage.write(place.offset, &buffer[..place.bytes])?;
    storage.sync()
}

fn open_gate(storage: &mut dyn WritableStorage, life: &Life) -> io::Result<()> {
    let mut head = [0; HEAD_BYTES];
    put_head(&mut head, life, &profile(storage.as_storage(), life)?, true);
    storage.write(0, &head)?;
    storage.sync()
}
