// SPDX-License-Identifier: MIT OR Apache-2.0
//! Continues an encoder after existing blocks, for the recovery, and for a recording that continues
//! a finished segment. `recover` and the pool's stage call it.

use super::{Encoder, Step};
use crate::mcap::account::ChannelLedger;
use crate::mcap::definitions::Definitions;
use crate::mcap::index::MetadataPlace;
use crate::mcap::layout::Layout;
use crate::mcap::private::Life;
use crate::mcap::resume::Resumable;
use crate::mcap::scan::{EndBlock, Scanned};
use crate::mcap::wire::RECORD_HEAD_BYTES;

impl Encoder {
    /// Continues a finished segment. The next block replaces its end block, and all blocks before
    /// that are durable. The accounts begin with `ledger`.
    pub fn resume_life(&mut self, found: Resumable, ledger: &[ChannelLedger]) {
        let Resumable { life, scanned } = found;
        (self.begun, self.in_file) = (scanned.begun, scanned.definitions.mark());
        self.layout = Layout::of(*self.layout.config(), self.begun).grown(self.in_file);
        self.life = life;
        self.index = scanned.index;
        self.index.grow(&self.definitions);
        self.chunk.clear();
        self.lost_written.fill(0);
        for (written, channel) in self.lost_written.iter_mut().zip(ledger) {
            *written = channel.lost;
        }
        self.step = Step::Data;
        self.offset = scanned.end.map_or(scanned.offset, |end| end.offset);
        self.number = scanned.blocks - 1;
        self.durable = self.number;
    }

    /// Adds the channels that the segment to continue has besides those known.
    pub fn extended(mut self, definitions: &Definitions) -> Encoder {
        self.index.grow(definitions);
        let added = definitions.channel_ids().iter().skip(self.lost_written.len());
        added.for_each(|id| self.chunk.add_channel(*id));
        self.lost_written.resize(definitions.channel_ids().len(), 0);
        Encoder { definitions: definitions.clone(), ..self }
    }

    /// Removes all channels and schemas but the first ones. The next segment must be begun then.
    pub fn truncate(&mut self, channels: usize, schemas: usize) {
        self.definitions.truncate(channels, schemas);
        self.index.truncate(channels);
        self.chunk.truncate(channels);
        self.lost_written.truncate(channels);
    }

    /// The number of the next block.
    pub fn next_block(&self) -> u32 {
        self.number
    }

    /// Continues after the existing blocks of a life. Only the recovery calls it.
    pub(in crate::mcap) fn resume(life: Life, found: Scanned) -> Encoder {
        let mut encoder = Encoder::new(found.layout, found.definitions);
        encoder.life = life;
        encoder.index = found.index;
        encoder.offset = found.offset;
        encoder.number = found.blocks;
        encoder.durable = found.durable;
        encoder.step = Step::Data;
        encoder.gaps = found.gaps;
        if found.gaps.blocks > 0 {
            encoder.index.metadata[2] = Some(MetadataPlace::default());
        }
        if let Some(EndBlock { offset, padding_end }) = found.end {
            // If blocks are missing, the tail is shorter than the recorder's would have been.
            let between = encoder.seal_offset(offset).checked_sub(padding_end);
            if between.is_some_and(|bytes| bytes == 0 || bytes >= RECORD_HEAD_BYTES as u64) {
                encoder.step = Step::Ended { end_offset: offset, padding_end };
            } else {
                encoder.offset = offset;
                encoder.number -= 1;
            }
        }
        encoder
    }

    /// Whether the end block exists. Only the recovery calls it.
    pub(in crate::mcap) fn is_ended(&self) -> bool {
        matches!(self.step, Step::Ended { .. })
    }
}
