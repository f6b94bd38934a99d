// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a [`Stage`], which its modules share.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use steadyio_core::latency::Latencies;

use crate::config::{OnFailure, WhenFull};
use crate::ledger::Ledger;
use crate::mcap::account::ChannelLedger;
use crate::mcap::definitions::Mark;
use crate::mcap::encoder::Encoder;
use crate::mcap::layout::Layout;
use crate::mcap::private::Identity;
use crate::mcap::resume::Resumable;
use crate::pool::direct_io::Disk;
use crate::pool::files::Pool;
use crate::pool::flight::Flight;
use crate::pool::job::Job;
use crate::pool::latch::Latch;
use crate::pool::meters::Meters;
use crate::pool::renamer::Renamer;
use crate::sizing::{BUFFERS_MAX, buffers};

// These buffers follow those of the blocks. A segment needs them for its other parts.
pub(super) const BLOCKS: usize = BUFFERS_MAX;
pub(super) const TAIL: usize = BLOCKS;
pub(super) const GATE: usize = BLOCKS + 1;
pub(super) const COPY: usize = BLOCKS + 2;
pub(super) const HEAD: usize = BLOCKS + 3;

/// The number of buffers for blocks that are in use.
pub(super) fn blocks_used(layout: &Layout) -> usize {
    buffers(layout.block_buffer_bytes())
}

/// The reason why a call of a stage failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The stage left the segment and lost its unfinished blocks. The next record begins another
    /// segment.
    SegmentLost,
    /// All segments are full, and none may be overwritten.
    AllFull,
    /// The device fails, and the recorder does not wait for it any longer.
    Failed,
}

/// The parts of a stage.
pub struct Parts {
    /// Turns records into blocks.
    pub encoder: Encoder,
    pub disk: Disk,
    pub pool: Pool,
    /// The thread that renames segments; None if no segment is unused.
    pub renamer: Option<Renamer>,
    /// The ledgers, one per channel.
    pub ledgers: Vec<Arc<Ledger>>,
    /// The latched messages, one per channel.
    pub latches: Vec<Latch>,
    /// Statistics for other threads.
    pub meters: Arc<Meters>,
    /// The longest time whose records a power cut may lose.
    pub loss_window: Duration,
    /// A block is submitted when its oldest record is this old.
    pub flush_after: Duration,
    /// Whether full pools overwrite segments.
    pub when_full: WhenFull,
    /// Whether to wait for a failing device.
    pub on_failure: OnFailure,
    /// Set when no more records come; the thread is then unparked.
    pub stop: Arc<AtomicBool>,
    /// A new id for each recording, unless it continues a segment.
    pub recording_id: [u8; 16],
    /// The segment to continue, and its file.
    pub resumed: Option<(Box<Resumable>, File)>,
    /// The number of schemas of this recording.
    pub own_schemas: usize,
}

/// The state of the path from records to segments.
pub struct Stage {
    pub(super) parts: Parts,
    pub(super) flight: Flight,
    /// The file in use; None before the first record, and during a rotation.
    pub(super) file: Option<InUse>,
    /// A full segment. Its data is durable, and its summary is being written.
    pub(super) ending: Option<Ending>,
    pub(super) next: Option<Next>,
    /// Whether preparing the next segment was tried while this one is in use.
    pub(super) looked_ahead: bool,
    /// The buffer that is being filled.
    pub(super) slot: usize,
    pub(super) trouble: Option<Trouble>,
    /// Whether the last sync of any segment succeeded; false before the first.
    pub(super) sync_worked: bool,
    /// Whether a segment was given up since a record became durable.
    pub(super) gave_up: bool,
    /// Whether no more records come.
    pub(super) finishing: bool,
    /// Whether the segment in use is new, so that latched messages must be repeated in it.
    pub(super) repeats_due: bool,
    /// The time since which the next segment holds all records; None: since it begins.
    pub(super) begun_ns: Option<u64>,
    pub(super) synced_ns: u64,
    pub(super) accounts: Vec<ChannelLedger>,
    /// The numbers of channels and schemas of this recording. The definitions may have more, of an
    /// earlier one.
    pub(super) own: (usize, usize),
    /// The ledgers of the recording that is continued.
    pub(super) base: Vec<ChannelLedger>,
    /// Writes so far.
    pub writes: Latencies,
    /// Syncs so far.
    pub syncs: Latencies,
    /// Rotations so far.
    pub rotations: Latencies,
}

/// The segment that takes records.
pub(super) struct InUse {
    pub(super) file: File,
    pub(super) identity: Identity,
    /// Whether any record in it is durable.
    pub(super) holds_records: bool,
}

/// A full segment whose summary is being written.
pub(super) struct Ending {
    pub(super) job: Job,
    pub(super) sequence: u64,
}

/// The next segment, whose head for its next life is being written.
pub(super) struct Next {
    pub(super) job: Job,
    pub(super) identity: Identity,
    pub(super) created_ns: u64,
    /// The mark of its definitions.
    pub(super) begun: Mark,
    /// Set if the recording continues this segment.
    pub(super) resumed: Option<Box<Resumable>>,
    /// Whether it failed, and is tried again when it is needed.
    pub(super) rests: bool,
}

/// The state since the first failure.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) since_ns: u64,
    pub(super) pause: Duration,
    /// The time since which syncs succeed and a write does not.
    pub(super) bad_since_ns: Option<u64>,
    /// Whether the segment in use has a bad place. Data that cannot be written is lost.
    pub(super) given_up: bool,
    /// Whether some written blocks are not on the medium.
    pub(super) segment_lost: bool,
}
