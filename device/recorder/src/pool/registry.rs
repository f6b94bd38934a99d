// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of a recording's channels: the configured ones, and those declared later.
//! [`super::Recorder::add_channel`] uses it.
//!
//! The thread that declares a channel allocates its memory, and sends it to the writer thread. That
//! thread writes the definition before the channel's first record. append() is not involved.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::carried::Carried;
use super::latch::Latch;
use crate::channel::{Channel, Consumer, LateChannel, SharedChannels, open};
use crate::config::{
    ChannelConfig, ConfigError, LateLimits, RecorderConfig, Schemas, check_latched, wrong,
};
use crate::ledger::{Account, Ledger};
use crate::mcap::definitions::{ChannelSpec, DefinitionError, Definitions, SchemaSpec};
use crate::ring::RingReader;
use steadyio_core::memory::MemoryError;

/// A channel was not added. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// A value is not allowed, or no room is left.
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Definitions(#[from] DefinitionError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error("channel {0:?}: must share the ring, or have its own, as the other channels do")]
    OtherRing(String),
    #[error("channel {0:?}: the recording has ended")]
    Ended(String),
}

/// A channel on its way to the writer thread.
#[derive(Debug)]
pub struct Addition {
    /// The schema, if it is new.
    pub schema: Option<SchemaSpec>,
    pub channel: ChannelSpec,
    pub ledger: Arc<Ledger>,
    /// The ring of the channel; None if all channels share one.
    pub ring: Option<RingReader>,
    pub latch: Latch,
}

/// The counts of a channel's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStats {
    pub topic: String,
    pub account: Account,
}

#[derive(Debug)]
struct Inner {
    /// The topics and ledgers, in the order of the definitions.
    channels: Vec<(String, Arc<Ledger>)>,
    topics: HashSet<String>,
    schemas: Schemas,
    definitions: Definitions,
    /// The sum of the latched channels' longest records.
    latched_bytes: u64,
}

/// The list of channels.
#[derive(Debug)]
pub struct Registry {
    inner: Mutex<Inner>,
    additions: Mutex<Sender<Addition>>,
    limits: LateLimits,
    lock_memory: bool,
    channels_max: usize,
    late_channels: u64,
    definition_bytes_max: usize,
    late_definition_bytes: u64,
    /// The last messages of latched topics in an earlier recording.
    carried: Carried,
}

/// A lock is poisoned only if a caller panicked between two assignments.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// Makes the list from a checked configuration, with the ledgers. Also returns the receiver of
    /// additions, for the writer thread.
    pub(super) fn new(
        config: &RecorderConfig,
        definitions: Definitions,
        ledgers: &[Arc<Ledger>],
        carried: Carried,
    ) -> (Registry, Receiver<Addition>) {
        let mut schemas = Schemas::default();
        for channel in &config.channels {
            schemas.number_of(channel.schema.as_ref());
        }
        let topics = config.channels.iter().map(|channel| channel.topic.clone());
        let all = definitions.mark();
        let inner = Inner {
            channels: topics.clone().zip(ledgers.iter().cloned()).collect(),
            topics: topics.collect(),
            schemas,
            definitions,
            latched_bytes: config.latched_bytes(),
        };
        let (sender, additions) = channel();
        let registry = Registry {
            inner: Mutex::new(inner),
            additions: Mutex::new(sender),
            limits: config.late_limits(),
            lock_memory: config.lock_memory,
            // The checked numbers are small.
            channels_max: all.channels + config.late.channels as usize,
            late_channels: config.late.channels,
            definition_bytes_max: all.bytes() + config.late.definition_bytes as usize,
            late_definition_bytes: config.late.definition_bytes,
            carried,
        };
        (registry, additions)
    }

    /// Adds a channel with its own ring. It allocates and locks memory, so a real-time thread must
    /// not call it.
    pub fn add(&self, config: &ChannelConfig) -> Result<(Channel, Arc<Ledger>), AddError> {
        if self.limits.shared_ring_bytes.is_some() {
            return Err(AddError::OtherRing(config.topic.clone()));
        }
        config.check_late(&self.limits)?;
        let (channel, Consumer { ring, ledgers, .. }) = open(config, 0, self.lock_memory)?;
        let ledger = Arc::clone(&ledgers[0]);
        self.declare(config, &ledger, Some(ring))?;
        Ok((channel, ledger))
    }

    /// Adds a channel to those that share a ring, and returns its position.
    pub fn add_shared(
        &self,
        channels: &mut SharedChannels,
        config: &ChannelConfig,
    ) -> Result<usize, AddError> {
        if self.limits.shared_ring_bytes.is_none() {
            return Err(AddError::OtherRing(config.topic.clone()));
        }
        config.check_late(&self.limits)?;
        let (late, ledger) = LateChannel::new(config);
        self.declare(config, &ledger, None)?;
        Ok(channels.add(late))
    }

    fn declare(
        &self,
        config: &ChannelConfig,
        ledger: &Arc<Ledger>,
        ring: Option<RingReader>,
    ) -> Result<(), AddError> {
        let mut inner = lock(&self.inner);
        let (schema, channel) = inner.define(config, self)?;
        let latch = self.carried.latch(config);
        let addition = Addition { schema, channel, ledger: Arc::clone(ledger), ring, latch };
        // The lock is held: the order of additions is that of the definitions.
        let sent = lock(&self.additions).send(addition);
        sent.map_err(|_| AddError::Ended(config.topic.clone()))?;
        inner.latched_bytes += config.latched_bytes();
        inner.topics.insert(config.topic.clone());
        inner.channels.push((config.topic.clone(), Arc::clone(ledger)));
        Ok(())
    }

    /// The ledgers in the order of the definitions. They outlive the recorder.
    pub fn ledgers(&self) -> Vec<Arc<Ledger>> {
        lock(&self.inner).channels.iter().map(|(_, ledger)| Arc::clone(ledger)).collect()
    }

    /// The ledger of a topic; None if it is not declared.
    pub fn ledger_of(&self, topic: &str) -> Option<Arc<Ledger>> {
        let inner = lock(&self.inner);
        let found = inner.channels.iter().find(|(name, _)| name == topic);
        found.map(|(_, ledger)| Arc::clone(ledger))
    }

    /// The counts so far, by channel.
    pub fn channels(&self) -> Vec<ChannelStats> {
        let inner = lock(&self.inner);
        let stats = |(topic, ledger): &(String, Arc<Ledger>)| ChannelStats {
            topic: topic.clone(),
            account: ledger.snapshot(),
        };
        inner.channels.iter().map(stats).collect()
    }

    /// The sum of all channels.
    pub fn total(&self) -> Account {
        let inner = lock(&self.inner);
        let accounts = inner.channels.iter().map(|(_, ledger)| ledger.snapshot());
        accounts.fold(Account::default(), |sum, more| sum.plus(&more))
    }
}

impl Inner {
    /// Adds a definition. After an error nothing has changed.
    fn define(
        &mut self,
        config: &ChannelConfig,
        registry: &Registry,
    ) -> Result<(Option<SchemaSpec>, ChannelSpec), AddError> {
        let topic = &config.topic;
        if self.topics.contains(topic) {
            return Err(wrong("topic", topic, "another channel has this topic").into());
        }
        if self.channels.len() >= registry.channels_max {
            let reason = "all are taken; raise it, in steady record by --late-topics";
            return Err(wrong("late.channels", registry.late_channels, reason).into());
        }
        let latched_bytes = self.latched_bytes + config.latched_bytes();
        check_latched(topic, latched_bytes, registry.limits.latched_bytes_max)?;
        let (number, schema) = self.schemas.number_of(config.schema.as_ref());
        let channel = config.spec(number);
        let needed = Definitions::bytes_of(schema.as_ref(), &channel);
        let left = registry.definition_bytes_max - self.definitions.bytes();
        let defined = if needed > left {
            let reason = format!(
                "{left} are left, {needed} needed; raise it, in steady record by --late-definitions"
            );
            let bytes = registry.late_definition_bytes;
            Err(wrong("late.definition_bytes", bytes, reason).into())
        } else {
            self.definitions.add(schema.as_ref(), &channel).map_err(AddError::from)
        };
        if let (Err(_), Some(_), Some(schema)) = (&defined, &schema, &config.schema) {
            self.schemas.forget(schema);
        }
        defined.map(|()| (schema, channel))
    }
}
