// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the messages of many segments in the order of their log times, with bounded memory.
//! `export` and `steady cat` call it.
//!
//! A block is read when its earliest message may be the next one, and kept until all of its
//! messages are returned. Recordings are nearly in order, so few blocks are kept at a time. If they
//! are not in order, at most [`HELD_BYTES_MAX`] are kept; then a message comes late, and is
//! counted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use rustix::io::Errno;
use steadyio_recorder::mcap::definitions::Definitions;
use steadyio_recorder::mcap::index::BlockSpan;
use steadyio_recorder::mcap::private::{Identity, Life};
use steadyio_recorder::mcap::reading::{MessageInBlock, Readable, life, messages, read_block};
use steadyio_recorder::mcap::recover::RecoverError;
use steadyio_recorder::mcap::sectors::Sectors;

use crate::copies::{open, open_again};
use crate::latched::{Latched, LatchedMessage, standing};
use crate::selection::Selection;
use crate::summary::Missing;
use crate::survey::{Segment, Survey};

/// The limit of kept blocks, beyond which the order is given up.
pub const HELD_BYTES_MAX: usize = 256 << 20;

/// A segment that is being read.
struct Open {
    /// None if it was closed, because the process had too many open files.
    file: Option<File>,
    life: Life,
    definitions: Definitions,
    /// Whether each channel is selected, by position in the definitions.
    wanted: Vec<bool>,
    /// The number of each channel's topic, if it is latched.
    latched: Vec<Option<usize>>,
    /// The unread blocks, the earliest first.
    blocks: VecDeque<BlockSpan>,
}

/// A message that waits for its turn. The order of the fields defines the order of messages: by
/// time, and for equal times in the order of the recording.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    log_time_ns: u64,
    segment: usize,
    offset: u64,
    payload_start: usize,
    payload_end: usize,
    slot: usize,
    sequence: u32,
    publish_time_ns: u64,
    block: usize,
    /// The number of its topic if that is latched, and whether it repeats a message of another
    /// segment.
    latched: Option<(usize, bool)>,
}

/// A block with waiting messages.
struct Held {
    bytes: Vec<u8>,
    waiting: usize,
}

/// The next message.
#[derive(Debug, Clone)]
pub struct Next {
    /// The position of its segment in the survey.
    pub segment: usize,
    /// The position of its channel in the definitions of the segment.
    pub slot: usize,
    pub sequence: u32,
    pub log_time_ns: u64,
    pub publish_time_ns: u64,
    block: usize,
    payload: Range<usize>,
}

/// The next item of a merge.
pub enum Item {
    /// The next messages are from this segment: its position in the survey, and its index.
    Segment(usize, Box<Readable>),
    Message(Next),
    /// This number of bytes was read.
    Read(u64),
}

/// A merge in progress.
pub struct Merge {
    segments: Vec<Segment>,
    selection: Selection,
    /// Whether a segment has messages that are valid at the beginning of the selection, by
    /// position.
    standing: Vec<bool>,
    latched: Latched,
    /// Whether a segment is read at all, by position.
    chosen: Vec<bool>,
    /// The positions of segments that were not opened yet, the earliest first.
    unopened: VecDeque<usize>,
    open: Vec<Option<Open>>,
    /// The earliest unread block of each open segment: its first log time, and the segment.
    next_blocks: BTreeSet<(u64, usize)>,
    heap: BinaryHeap<Reverse<Waiting>>,
    held: Vec<Option<Held>>,
    held_bytes: usize,
    held_bytes_max: usize,
    /// The block of the last message, if all of its messages have been returned.
    taken: Option<usize>,
    last_ns: u64,
    /// The number of messages that came after later ones.
    pub late: u64,
    pub missing: Missing,
}

impl Merge {
    /// Merges the segments of a survey.
    pub fn new(survey: &Survey, selection: Selection, held_bytes_max: usize) -> Self {
        let segments = survey.segments.clone();
        let mut missing = Missing::default();
        survey.losses_in(&selection).for_each(|loss| missing.add_loss(loss));
        let mut is_standing = vec![false; segments.len()];
        standing(&segments, &selection).into_iter().for_each(|at| is_standing[at] = true);
        let wanted =
            |at: &usize| is_standing[*at] || selection.wants_some_of(segments[*at].times_ns);
        let mut unopened: Vec<usize> = (0..segments.len()).filter(wanted).collect();
        let chosen = (0..segments.len()).map(|at| unopened.binary_search(&at).is_ok()).collect();
        unopened.sort_by_key(|at| segments[*at].times_ns.0);
        Merge {
            open: segments.iter().map(|_| None).collect(),
            next_blocks: BTreeSet::new(),
            segments,
            selection,
            standing: is_standing,
            latched: Latched::default(),
            chosen,
            unopened: unopened.into(),
            heap: BinaryHeap::new(),
            held: Vec::new(),
            held_bytes: 0,
            held_bytes_max,
            taken: None,
            last_ns: 0,
            late: 0,
            missing,
        }
    }

    /// The size of all blocks to read, at most.
    pub fn bytes(&self) -> u64 {
        self.unopened.iter().map(|at| self.segments[*at].bytes).sum()
    }

    /// Takes the next step; None at the end. The payload of a message stays valid until the next
    /// call.
    pub fn step(&mut self) -> io::Result<Option<Item>> {
        self.release();
        let next_segment = self.unopened.front().map(|at| self.segments[*at].times_ns.0);
        let next_block = self.next_blocks.first().copied();
        let next_read =
            next_segment.into_iter().chain(next_block.map(|(start_ns, _)| start_ns)).min();
        let is_full = self.held_bytes >= self.held_bytes_max;
        let may_come = self.heap.peek().is_some_and(|Reverse(waiting)| {
            is_full || next_read.is_none_or(|start_ns| waiting.log_time_ns < start_ns)
        });
        if may_come {
            // A copy of a message that was returned before is skipped.
            return Ok(Some(self.take().map_or(Item::Read(0), Item::Message)));
        }
        match (next_segment, next_block) {
            (None, None) => Ok(None),
            (Some(segment_ns), Some((block_ns, _))) if segment_ns <= block_ns => self.open_next(),
            (_, Some((_, at))) => self.load(at).map(Some),
            (Some(_), None) => self.open_next(),
        }
    }

    /// The payload of the last message that [`Merge::step`] returned.
    pub fn payload(&self, message: &Next) -> &[u8] {
        let held = self.held[message.block].as_ref();
        held.map_or(&[], |held| &held.bytes[message.payload.clone()])
    }

    fn open_next(&mut self) -> io::Result<Option<Item>> {
        let Some(at) = self.unopened.pop_front() else { return Ok(None) };
        let segment = &self.segments[at];
        let is_wanted = self.selection.wants_some_of(segment.times_ns);
        let passed = Ok(Some(Item::Read(segment.bytes)));
        let mut opened = self.open_again(at);
        if opened.as_ref().is_err_and(is_full) {
            self.close_files();
            opened = self.open_again(at);
        }
        let segment = &self.segments[at];
        let (file, found) = match opened {
            Ok(Some(opened)) => opened,
            Ok(None) => {
                self.missing.overwritten_segments += u64::from(is_wanted);
                return passed;
            }
            Err(error) => return Err(named(segment, &error)),
        };
        let mut open = self.opened(file, &found);
        let channels = open.latched.iter().zip(&open.wanted);
        let is_latched = |(latched, wanted): (&Option<usize>, &bool)| latched.is_some() && *wanted;
        let is_standing = self.standing[at] && channels.into_iter().any(is_latched);
        if !is_wanted && !is_standing {
            return passed;
        }
        let is_wanted_block =
            |block: &&BlockSpan| self.selection.wants_some_of((block.start_ns, block.end_ns));
        let mut blocks: Vec<BlockSpan> =
            found.blocks.iter().filter(is_wanted_block).copied().collect();
        blocks.sort_by_key(|block| block.start_ns);
        if is_wanted {
            self.missing.add_gaps(&found.gaps);
            self.missing.add_unreadable(found.unreadable);
        }
        if is_standing {
            self.hold_standing(at, &open, &found.blocks)?;
        }
        open.blocks = blocks.into();
        self.next_blocks.extend(open.blocks.front().map(|block| (block.start_ns, at)));
        self.open[at] = (!open.blocks.is_empty()).then_some(open);
        Ok(Some(Item::Segment(at, found)))
    }

    fn open_again(&self, at: usize) -> Result<Option<(File, Box<Readable>)>, RecoverError> {
        let Segment { path, life, copies, .. } = &self.segments[at];
        open_again(path, life, copies)
    }

    /// A segment without the blocks to read.
    fn opened(&mut self, file: File, found: &Readable) -> Open {
        let latched = self.latched.topics_of(&found.definitions);
        let topics = found.definitions.topics().iter();
        let wanted = topics.map(|topic| self.selection.wants_topic(topic)).collect();
        let (life, definitions) = (found.life, found.definitions.clone());
        let file = Some(file);
        Open { file, life, definitions, wanted, latched, blocks: VecDeque::new() }
    }

    /// Adds the last messages of latched topics before the beginning of the selection.
    fn hold_standing(&mut self, at: usize, open: &Open, blocks: &[BlockSpan]) -> io::Result<()> {
        let from_ns = self.selection.times_ns.start;
        for (topic, (message, payload)) in self.standing_in(at, open, blocks)? {
            let message = MessageInBlock { payload: 0..payload.len(), ..message };
            let message = MessageInBlock { log_time_ns: from_ns, ..message };
            let number = self.hold(payload, 1);
            self.heap.push(Reverse(waiting(at, 0, number, message, Some((topic, true)))));
        }
        Ok(())
    }

    /// These messages by topic. If a segment's copies of earlier ones are damaged, those of the
    /// segment before count.
    fn standing_in(
        &mut self,
        at: usize,
        open: &Open,
        blocks: &[BlockSpan],
    ) -> io::Result<BTreeMap<usize, (MessageInBlock, Vec<u8>)>> {
        let from_ns = self.selection.times_ns.start;
        let mut last = BTreeMap::new();
        for span in blocks.iter().filter(|span| span.start_ns < from_ns) {
            let Some(file) = &open.file else { break };
            let block = read_block(&Sectors::new(file), &open.life, span);
            let block = block.map_err(|error| named(&self.segments[at], &error))?;
            let block = block.or_else(|| block_of_copy(&self.segments[at], span));
            let found = block.as_deref().and_then(|block| messages(block, &open.definitions));
            let Some((block, found)) = block.as_deref().zip(found) else {
                match self.previous(at).filter(|_| span.repeats) {
                    Some(older) => last.extend(self.standing_of(older)?),
                    None => self.add_unknown(span),
                }
                continue;
            };
            for message in found {
                let stands = open.wanted[message.slot] && message.log_time_ns < from_ns;
                if let Some(topic) = open.latched[message.slot].filter(|_| stands) {
                    let payload = block[message.payload.clone()].to_vec();
                    last.insert(topic, (message, payload));
                }
            }
        }
        Ok(last)
    }

    /// The same of a segment that is not open. The positions of its channels are those of later
    /// segments.
    fn standing_of(&mut self, at: usize) -> io::Result<BTreeMap<usize, (MessageInBlock, Vec<u8>)>> {
        self.close_files();
        let opened = self.open_again(at);
        let opened = opened.map_err(|error| named(&self.segments[at], &error))?;
        let Some((file, found)) = opened else {
            self.missing.overwritten_segments += 1;
            return Ok(BTreeMap::new());
        };
        let open = self.opened(file, &found);
        self.standing_in(at, &open, &found.blocks)
    }

    /// A damaged block may have had the last message of a latched topic. One that is selected is
    /// counted when it is read.
    fn add_unknown(&mut self, span: &BlockSpan) {
        if !self.selection.wants_some_of((span.start_ns, span.end_ns)) {
            self.missing.add_block(span, false);
            self.missing.messages_at_most = true;
        }
    }

    /// Reads the next block of this segment.
    fn load(&mut self, at: usize) -> io::Result<Item> {
        self.open_file(at).map_err(|error| named(&self.segments[at], &error))?;
        let Some(open) = &mut self.open[at] else { return Ok(Item::Read(0)) };
        let Some(span) = open.blocks.pop_front() else { return Ok(Item::Read(0)) };
        self.next_blocks.remove(&(span.start_ns, at));
        self.next_blocks.extend(open.blocks.front().map(|block| (block.start_ns, at)));
        let Some(file) = &open.file else {
            self.missing.add_block(&span, true);
            return Ok(Item::Read(span.bytes));
        };
        let sectors = Sectors::new(file);
        let block = read_block(&sectors, &open.life, &span);
        let block = block.map_err(|error| named(&self.segments[at], &error))?;
        let block = block.or_else(|| block_of_copy(&self.segments[at], &span));
        if block.is_none() {
            self.missing.add_unreadable(sectors.unreadable());
        }
        let is_wanted = |message: &MessageInBlock| {
            open.wanted[message.slot] && self.selection.wants_time(message.log_time_ns)
        };
        let found = block.as_deref().and_then(|block| messages(block, &open.definitions));
        let found: Option<Vec<_>> = found.map(|found| found.filter(is_wanted).collect());
        match block.zip(found) {
            Some((_, found)) if found.is_empty() => {}
            Some((bytes, found)) => {
                let topics: Vec<_> =
                    found.iter().map(|message| open.latched[message.slot]).collect();
                let number = self.hold(bytes, found.len());
                self.heap.extend(found.into_iter().zip(topics).map(|(message, topic)| {
                    let latched = topic.map(|topic| (topic, span.repeats));
                    Reverse(waiting(at, span.offset, number, message, latched))
                }));
            }
            None => {
                let now = life(file);
                let now = now.map_err(|error| named(&self.segments[at], &error))?;
                let overwritten = now.is_none_or(|now| now.identity != open.life.identity);
                // What a block repeats is in the segment before, or is counted there.
                let is_copy = span.repeats && self.previous(at).is_some_and(|at| self.chosen[at]);
                let messages = if is_copy { 0 } else { span.messages };
                self.missing.add_block(&BlockSpan { messages, ..span }, overwritten);
            }
        }
        if self.open[at].as_ref().is_some_and(|open| open.blocks.is_empty()) {
            self.open[at] = None;
        }
        Ok(Item::Read(span.bytes))
    }

    /// Closes all files. Their segments are opened again when a block is read.
    fn close_files(&mut self) {
        self.open.iter_mut().flatten().for_each(|open| open.file = None);
    }

    /// Opens the file of a segment again, if it was closed; not if it is gone.
    fn open_file(&mut self, at: usize) -> io::Result<()> {
        if !matches!(&self.open[at], Some(Open { file: None, .. })) {
            return Ok(());
        }
        let mut file = open(&self.segments[at].path);
        if file.as_ref().is_err_and(is_too_many) {
            self.close_files();
            file = open(&self.segments[at].path);
        }
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened?.0),
        };
        if let Some(open) = &mut self.open[at] {
            open.file = file;
        }
        Ok(())
    }

    /// The position of the same recording's segment before this one.
    fn previous(&self, at: usize) -> Option<usize> {
        let Identity { recording_id, sequence } = self.segments[at].life.identity;
        let sequence = sequence.checked_sub(1)?;
        let identity = Identity { recording_id, sequence };
        self.segments.iter().position(|segment| segment.life.identity == identity)
    }

    /// Keeps a block until this number of its messages has been returned. Returns its index.
    fn hold(&mut self, bytes: Vec<u8>, waiting: usize) -> usize {
        let number = self.held.iter().position(Option::is_none).unwrap_or(self.held.len());
        self.held_bytes += bytes.len();
        let held = Some(Held { bytes, waiting });
        if number == self.held.len() {
            self.held.push(held);
        } else {
            self.held[number] = held;
        }
        number
    }

    /// The next message; None if it is a copy of one that was returned before.
    fn take(&mut self) -> Option<Next> {
        let Reverse(next) = self.heap.pop()?;
        let held = self.held[next.block].as_mut()?;
        held.waiting -= 1;
        self.taken = (held.waiting == 0).then_some(next.block);
        if let Some((topic, repeats)) = next.latched {
            let message = LatchedMessage {
                topic,
                identity: self.segments[next.segment].life.identity,
                sequence: next.sequence,
                publish_time_ns: next.publish_time_ns,
                bytes: next.payload_end - next.payload_start,
                repeats,
            };
            if !self.latched.is_news(&message) {
                return None;
            }
        }
        self.late += u64::from(next.log_time_ns < self.last_ns);
        self.last_ns = self.last_ns.max(next.log_time_ns);
        Some(Next {
            segment: next.segment,
            slot: next.slot,
            sequence: next.sequence,
            log_time_ns: next.log_time_ns,
            publish_time_ns: next.publish_time_ns,
            block: next.block,
            payload: next.payload_start..next.payload_end,
        })
    }

    /// Releases the block of the last message.
    fn release(&mut self) {
        if let Some(held) = self.taken.take().and_then(|at| self.held[at].take()) {
            self.held_bytes -= held.bytes.len();
        }
    }
}

fn waiting(
    segment: usize,
    offset: u64,
    block: usize,
    message: MessageInBlock,
    latched: Option<(usize, bool)>,
) -> Waiting {
    Waiting {
        log_time_ns: message.log_time_ns,
        segment,
        offset,
        payload_start: message.payload.start,
        payload_end: message.payload.end,
        slot: message.slot,
        sequence: message.sequence,
        publish_time_ns: message.publish_time_ns,
        block,
        latched,
    }
}

/// Whether the process has too many open files.
fn is_too_many(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::MFILE.raw_os_error())
}

fn is_full(error: &RecoverError) -> bool {
    matches!(error, RecoverError::Io(error) if is_too_many(error))
}

/// Reads a block from a copy of the segment, if it is damaged in the segment itself.
fn block_of_copy(segment: &Segment, span: &BlockSpan) -> Option<Vec<u8>> {
    let read = |path: &PathBuf| {
        let file = File::open(path).ok()?;
        read_block(&Sectors::new(&file), &segment.life, span).ok()?
    };
    segment.copies.iter().find_map(read)
}

fn named(segment: &Segment, error: &dyn Display) -> io::Error {
    io::Error::other(format!("{}: {error}", segment.path.display()))
}
