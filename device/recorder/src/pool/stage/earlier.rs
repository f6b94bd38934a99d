// SPDX-License-Identifier: MIT OR Apache-2.0
//! Channels that an earlier recording declared while it ran. A recording that continues its segment
//! keeps them, because most programs declare the same topics in the same order at each start.
//!
//! A channel of another kind cannot have the place of an earlier one. The segment is then left, and
//! another recording begins in the next one, without the earlier channels. [`super`] calls it.

use std::sync::Arc;

use steadyio_core::diagnostic;

use super::state::{Stage, Stop};
use crate::ledger::Ledger;
use crate::mcap::account::ChannelLedger;
use crate::pool::latch::Latch;
use crate::pool::random_id;
use crate::pool::registry::Addition;

impl Stage {
    /// Makes room for the channels that the segment to continue has besides those of this recording.
    pub(super) fn keep_earlier(&mut self) {
        while self.parts.ledgers.len() < self.base.len() {
            // Nothing is counted for them.
            let none = Arc::new(Ledger::default());
            self.parts.ledgers.push(Arc::clone(&none));
            self.flight.add_channel(none);
            self.parts.latches.push(Latch::Off);
            self.accounts.push(ChannelLedger::default());
        }
    }

    /// Gives added channels the places of earlier ones of the same kind. Returns the others.
    pub(super) fn adopt(&mut self, mut added: Vec<Addition>) -> Vec<Addition> {
        if self.own.0 == self.base.len() {
            return added;
        }
        let Some((schemas, channels)) = self.parts.encoder.all_definitions().specs() else {
            return added;
        };
        let (mut own_channels, mut own_schemas) = self.own;
        let is_same = |addition: &&Addition| {
            let has_schema = addition.schema.is_some();
            let same_schema = !has_schema || schemas.get(own_schemas) == addition.schema.as_ref();
            let is_same = same_schema && channels.get(own_channels) == Some(&addition.channel);
            own_channels += usize::from(is_same);
            own_schemas += usize::from(is_same && has_schema);
            is_same
        };
        let count = added.iter().take_while(is_same).count();
        let others = added.split_off(count);
        for (at, Addition { ledger, latch, .. }) in (self.own.0..).zip(added) {
            self.flight.replace_channel(at, Arc::clone(&ledger));
            (self.parts.ledgers[at], self.parts.latches[at]) = (ledger, latch);
        }
        self.own = (own_channels, own_schemas);
        others
    }

    /// Leaves the segment of the earlier channels, if any are left.
    pub(super) fn leave_earlier(&mut self) -> Result<(), Stop> {
        if self.own.0 == self.base.len() {
            return Ok(());
        }
        let left = self.leave_segment();
        if left.is_err() {
            // Whatever becomes of the segment, the channels must fit to the next one.
            self.parts.disk.settle();
        }
        if let Some(next) = self.next.take() {
            self.parts.pool.stays_empty(next.identity.sequence);
        }
        let (channels, schemas) = self.own;
        self.parts.encoder.truncate(channels, schemas);
        self.flight.truncate(channels);
        self.parts.ledgers.truncate(channels);
        self.parts.latches.truncate(channels);
        self.accounts.truncate(channels);
        // Its accounts lack those of the earlier channels.
        self.base = vec![ChannelLedger::default(); channels];
        match random_id() {
            Ok(id) => self.parts.recording_id = id,
            Err(error) => diagnostic!("steady: {error}; missing messages may not be counted"),
        }
        left
    }

    fn leave_segment(&mut self) -> Result<(), Stop> {
        // One that was prepared has lost its end.
        if self.next.as_ref().is_some_and(|next| next.resumed.is_some()) {
            self.next_segment()?;
        }
        self.parts.resumed = None;
        if self.file.is_some() {
            self.end_segment()?;
        }
        self.wait_for_all()
    }
}
