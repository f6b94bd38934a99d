// SPDX-License-Identifier: MIT OR Apache-2.0
//! All producers of a recording, as one source of records. `steady record` uses it.
//!
//! With frames there are two phases. Nothing is recorded until the expected number of producers has
//! declared topics, so that memory can be divided by their needs; their records wait in the pipe.
//! Then recording starts. Topics that are declared later are added as far as the recording has
//! room; their producer is not read meanwhile.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};
use steadyio_core::interrupt::Interrupt;

use super::channels::{Channels, config_of};
use super::filter::TopicFilter;
use super::frames::{Frames, Topic, Undeclared};
use super::framing::{Framing, Problem, StreamError};
use super::lines::Lines;
use super::mcap::McapStream;
use super::producer::{BufferedRecord, Next, Producer};
use crate::config::ChannelConfig;
use crate::named_socket::{self, NamedSocket};
use crate::source::{Record, Source, wall_ns};

/// The number of connections at a time.
const PRODUCERS_MAX: usize = 64;
/// The longest time until Ctrl-C takes effect.
const LOOK: Duration = Duration::from_millis(200);
/// The time until the next attempt to accept a connection, after there was no room.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);
/// The number of files that producers must leave free: the writer thread opens a segment at each
/// rotation.
const FILES_LEFT: u64 = 8;

/// A FIFO without data for this time may have no producer.
const SILENCE: Duration = Duration::from_secs(1);

/// The origin of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A FIFO or a file.
    Path(PathBuf),
    /// A Unix socket, which is created and removed.
    Socket(PathBuf),
}

/// The encoding of records in the bytes.
#[derive(Debug, Clone)]
pub enum InputFraming {
    /// One record per line, all into this channel.
    Lines(ChannelConfig),
    /// Frames that declare topics; this has the values that they omit.
    Frames(Undeclared),
    /// MCAP, which declares its topics; records may be as long as the recording allows.
    Mcap,
}

#[derive(Debug)]
struct Listener {
    socket: NamedSocket,
    /// The time of the next attempt, if there was no room for another connection.
    full_until: Option<Instant>,
}

impl Listener {
    /// Accepts the next connection, if enough files are left.
    fn accept(&self) -> io::Result<UnixStream> {
        // The lowest free number: all below are in use.
        let next = rustix::io::dup(&self.socket.listener)?;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        if next.as_raw_fd() as u64 + FILES_LEFT >= limit {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        drop(next);
        self.socket.listener.accept().map(|(stream, _)| stream)
    }
}

/// A notice about producers that come and go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A producer was rejected, for this reason.
    Rejected(String),
    /// No producer can connect; or producers can connect again, and the waiting ones do; or none
    /// comes.
    Accepting(String),
}

/// Says why these channels cannot be recorded together.
pub type Check<'a> = &'a dyn Fn(&[ChannelConfig]) -> Result<(), String>;
/// Receives the notices.
pub type Tell = Box<dyn FnMut(Notice) + Send>;

/// All producers of a recording.
pub struct StreamSource {
    listener: Option<Listener>,
    framing: InputFraming,
    producers: Vec<Producer>,
    /// The producer to read next.
    turn: usize,
    accepted: u64,
    channels: Channels,
    /// A topic to add to the recording: its producer, and its identifier there.
    asks_for: Option<(usize, u16)>,
    started: bool,
    record_bytes_max: u64,
    /// The topics whose last message is repeated in each new segment.
    latched: Vec<String>,
    /// The filter; records of other topics are dropped.
    filter: TopicFilter,
    /// The time at which a FIFO fell silent. `None` once a notice has reported it.
    silent_since: Option<Instant>,
    tell: Tell,
}

fn name_of(input: &Input) -> String {
    match input {
        Input::Stdin => "stdin".into(),
        Input::Path(path) | Input::Socket(path) => path.display().to_string(),
    }
}

impl Input {
    /// Checks the input as far as possible without a producer.
    pub fn check(&self) -> io::Result<()> {
        let checked = match self {
            Input::Stdin => Ok(()),
            // A directory can be opened, but not read.
            Input::Path(path) => match fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
                metadata => metadata.map(drop),
            },
            Input::Socket(path) => named_socket::check(path),
        };
        checked.map_err(named(self))
    }
}

fn named(input: &Input) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", name_of(input)))
}

impl StreamSource {
    /// Opens the input. It rejects a producer whose stream is invalid, or that declares longer
    /// records than the recording allows. Without a socket there is one producer, and its end is
    /// the end of the recording.
    pub fn open(
        input: &Input,
        framing: InputFraming,
        record_bytes_max: u64,
        tell: Tell,
    ) -> io::Result<StreamSource> {
        let named = named(input);
        let file = match input {
            Input::Socket(_) => None,
            Input::Stdin => Some(File::from(rustix::io::dup(rustix::stdio::stdin())?)),
            // Non-blocking: opening a FIFO would otherwise wait for a producer, and Ctrl-C would
            // too.
            Input::Path(path) => {
                let mut options = OpenOptions::new();
                options.read(true).custom_flags(libc::O_NONBLOCK);
                Some(options.open(path).map_err(&named)?)
            }
        };
        let listener = match input {
            Input::Socket(path) => {
                let socket = NamedSocket::bind(path).map_err(named)?;
                Some(Listener { socket, full_until: None })
            }
            _ => None,
        };
        let mut channels = Channels::default();
        if let InputFraming::Lines(channel) = &framing {
            channels.push(channel.clone());
        }
        let mut source = StreamSource {
            listener,
            framing,
            producers: Vec::new(),
            turn: 0,
            accepted: 0,
            channels,
            asks_for: None,
            started: false,
            record_bytes_max,
            latched: Vec::new(),
            filter: TopicFilter::default(),
            silent_since: None,
            tell,
        };
        if let Some(file) = file {
            let is_fifo = file.metadata().is_ok_and(|found| found.file_type().is_fifo());
            let may_be_alone = is_fifo && matches!(input, Input::Path(_));
            source.silent_since = may_be_alone.then(Instant::now);
            source.add(name_of(input), file);
        }
        Ok(source)
    }

    /// Latches these topics of frames, whatever their producers declare. It must come before any
    /// declaration.
    pub fn latching(self, latched: Vec<String>) -> StreamSource {
        StreamSource { latched, ..self }
    }

    /// Drops topics of frames and MCAP. It must come before any declaration.
    pub fn filtering(self, filter: TopicFilter) -> StreamSource {
        StreamSource { filter, ..self }
    }

    fn add(&mut self, name: String, file: File) {
        let framing = match &self.framing {
            InputFraming::Lines(channel) => {
                let bytes = usize::try_from(channel.record_bytes_max).unwrap_or(usize::MAX - 1);
                Framing::Lines(Lines::new(bytes))
            }
            InputFraming::Frames(undeclared) => Framing::Frames(Frames::new(undeclared.clone())),
            InputFraming::Mcap => {
                // At most 64 MiB.
                let bytes = u32::try_from(self.record_bytes_max).unwrap_or(u32::MAX);
                Framing::Mcap(Box::new(McapStream::new(bytes)))
            }
        };
        self.producers.push(Producer::new(name, file, framing));
    }

    /// The MCAP profile of the first producer; empty if there is none.
    pub fn profile(&self) -> &str {
        match self.producers.first().map(|producer| &producer.framing) {
            Some(Framing::Mcap(mcap)) => mcap.profile(),
            _ => "",
        }
    }

    /// Waits until `producers` have declared their topics, and returns all channels; None if
    /// interrupted before. A socket's producer whose channels fail `check`, together with earlier
    /// ones, is rejected. Lines declare nothing.
    pub fn declare(
        &mut self,
        producers: usize,
        check: Check<'_>,
        stop: &Interrupt,
    ) -> io::Result<Option<Vec<ChannelConfig>>> {
        let lines = matches!(self.framing, InputFraming::Lines(_));
        let declared =
            |source: &Self| source.producers.iter().filter(|producer| producer.declared).count();
        while !lines && (declared(self) < producers || self.channels.all().is_empty()) {
            if stop.requested() {
                return Ok(None);
            }
            self.wait()?;
            let mut at = 0;
            while at < self.producers.len() {
                let known = self.channels.all().len();
                let stays = self.producers[at].begun || self.listen_to(at)?;
                at += usize::from(stays && self.fits(at, known, check)?);
            }
            if self.producers.is_empty() && self.listener.is_none() {
                return Err(io::Error::other("the stream ended before its first record to take"));
            }
        }
        self.order_channels();
        self.started = true;
        Ok(Some(self.channels.all().to_vec()))
    }

    /// Makes the order of the channels independent of that of their producers. A recording continues
    /// the segment of an earlier one only if both have the same order.
    fn order_channels(&mut self) {
        if self.listener.is_none() {
            return;
        }
        let moved = self.channels.sort();
        let bound = self.producers.iter_mut().flat_map(|producer| &mut producer.channels);
        bound.for_each(|(_, channel)| *channel = moved[*channel]);
    }

    /// Rejects a socket's producer whose channels, those after `known`, do not pass; false if so.
    fn fits(&mut self, at: usize, known: usize, check: Check<'_>) -> io::Result<bool> {
        if self.listener.is_none() || self.channels.all().len() == known {
            return Ok(true);
        }
        let Err(why) = check(self.channels.all()) else { return Ok(true) };
        self.channels.truncate(known);
        self.refuse(at, &why).map(|()| false)
    }

    /// Reads a producer's declarations; false if it has ended.
    fn listen_to(&mut self, at: usize) -> io::Result<bool> {
        if self.producers[at].declared {
            if !self.begin(at)? {
                return Ok(false);
            }
            if self.producers[at].begun || self.asks_for.is_some() {
                return Ok(true);
            }
        }
        match self.producers[at].look() {
            Ok(Next::Begin) => {
                self.producers[at].declared = true;
                self.begin(at)
            }
            Ok(Next::Topic(_)) if self.producers[at].declared => self.begin(at),
            // These come only after the begin frame.
            Ok(Next::NeedsMore | Next::Record(_) | Next::Topic(_)) => Ok(true),
            Ok(Next::Ended) => {
                self.producers.swap_remove(at);
                Ok(false)
            }
            Err(error) => self.refuse(at, &error).map(|()| false),
        }
    }

    /// Finds or makes the channels of a producer, or asks for one; false if it was rejected.
    fn begin(&mut self, at: usize) -> io::Result<bool> {
        let topics = self.producers[at].framing.topics().map_or(0, BTreeMap::len);
        if topics == self.producers[at].passed_topics {
            return Ok(true);
        }
        let known = self.channels.all().len();
        while let Some(id) = self.next_accepted(at) {
            match self.channel_of(at, id) {
                Ok(Some(channel)) => self.producers[at].channels.push((id, channel)),
                Ok(None) => {
                    self.asks_for = Some((at, id));
                    return Ok(true);
                }
                Err(error) => {
                    self.channels.truncate(known);
                    return self.refuse(at, &error).map(|()| false);
                }
            }
        }
        let producer = &mut self.producers[at];
        producer.begun = !producer.channels.is_empty();
        if !producer.begun {
            // Its records are skipped until it declares an accepted topic.
            producer.passed_topics = topics;
        }
        Ok(true)
    }

    /// The first accepted topic of a producer that has no channel yet. Before it has begun, it gets
    /// channels in the order of its identifiers.
    fn next_accepted(&self, at: usize) -> Option<u16> {
        let producer = &self.producers[at];
        let last = producer.channels.last();
        let after = last.map_or(Bound::Unbounded, |(id, _)| Bound::Excluded(*id));
        let mut topics = producer.framing.topics()?.range((after, Bound::Unbounded));
        topics.find(|(_, topic)| self.filter.takes(&topic.topic)).map(|(id, _)| *id)
    }

    /// The position of a topic's channel; None if the channel must be requested.
    fn channel_of(&mut self, at: usize, id: u16) -> Result<Option<usize>, StreamError> {
        let framing = &self.producers[at].framing;
        let Some(topics) = framing.topics() else { return Ok(Some(0)) };
        let Some(topic) = topics.get(&id) else { return Ok(None) };
        let bytes = u64::from(topic.record_bytes_max);
        if bytes > self.record_bytes_max {
            let (topic, max) = (topic.topic.clone(), self.record_bytes_max);
            return Err(framing.error(Problem::TooLong { topic, bytes, max }));
        }
        let wanted = config_of(topic, &self.latched);
        let known = self.channels.find(&wanted).map_err(|problem| framing.error(problem))?;
        if known.is_none() && !self.started {
            return Ok(Some(self.channels.push(wanted)));
        }
        Ok(known)
    }

    /// Adds a topic that a producer declares among its records.
    fn add_topic(&mut self, at: usize, id: u16) -> io::Result<()> {
        if self.topic(at, id).is_some_and(|topic| !self.filter.takes(&topic.topic)) {
            return Ok(());
        }
        match self.channel_of(at, id) {
            Ok(Some(channel)) => self.producers[at].bind(id, channel),
            Ok(None) => self.asks_for = Some((at, id)),
            Err(error) => self.refuse(at, &error)?,
        }
        Ok(())
    }

    /// Rejects a producer. With only one, its error ends the recording.
    fn refuse(&mut self, at: usize, why: &dyn std::fmt::Display) -> io::Result<()> {
        let producer = self.producers.swap_remove(at);
        let text = format!("{}: {why}", producer.name);
        if self.listener.is_none() {
            return Err(io::Error::other(text));
        }
        (self.tell)(Notice::Rejected(text));
        Ok(())
    }

    /// Waits for data from any producer, and reads it.
    fn wait(&mut self) -> io::Result<()> {
        // A producer that has begun is not read until all have.
        let listens = |producer: &Producer| self.started || !producer.begun;
        let listened: Vec<usize> =
            (0..self.producers.len()).filter(|&at| listens(&self.producers[at])).collect();
        let mut fds: Vec<PollFd<'_>> = listened
            .iter()
            .map(|&at| PollFd::new(&self.producers[at].file, PollFlags::IN))
            .collect();
        let now = Instant::now();
        let has_room = |listener: &&Listener| listener.full_until.is_none_or(|until| until <= now);
        if let Some(listener) = self.listener.as_ref().filter(has_room) {
            fds.push(PollFd::new(&listener.socket.listener, PollFlags::IN));
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        self.note_silence(ready.contains(&true));
        // From the last, because removing a producer moves those after it.
        for (&at, _) in listened.iter().zip(&ready).rev().filter(|(_, ready)| **ready) {
            if let Err(error) = self.producers[at].read() {
                self.refuse(at, &error)?;
            }
        }
        if ready.len() > listened.len() && ready[listened.len()] {
            self.accept()?;
        }
        Ok(())
    }

    /// Reports silence, once.
    fn note_silence(&mut self, heard: bool) {
        let is_long = self.silent_since.is_some_and(|since| since.elapsed() >= SILENCE);
        if let Some(producer) = self.producers.first().filter(|_| is_long && !heard) {
            let name = &producer.name;
            let text = format!("nothing has come through {name} yet: is a program writing to it?");
            (self.tell)(Notice::Accepting(text));
        }
        if heard || is_long {
            self.silent_since = None;
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let Some(listener) = &mut self.listener else { return Ok(()) };
        let stream = match listener.accept() {
            Ok(stream) => stream,
            Err(error) if is_full(&error) => {
                if listener.full_until.replace(Instant::now() + ACCEPT_AGAIN).is_none() {
                    (self.tell)(Notice::Accepting(format!(
                        "cannot accept another producer: {error}; trying again every \
                         {ACCEPT_AGAIN:?}"
                    )));
                }
                return Ok(());
            }
            Err(error) if has_gone(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        if listener.full_until.take().is_some() {
            (self.tell)(Notice::Accepting("accepting producers again".into()));
        }
        self.accepted += 1;
        let name = format!("producer {}", self.accepted);
        if self.producers.len() == PRODUCERS_MAX {
            (self.tell)(Notice::Rejected(format!(
                "{name}: {PRODUCERS_MAX} producers are connected, the maximum"
            )));
            return Ok(());
        }
        stream.set_nonblocking(true)?;
        self.add(name, File::from(OwnedFd::from(stream)));
        Ok(())
    }

    /// The next record in the bytes that were read, from each producer in turn.
    fn find(&mut self) -> io::Result<Option<(usize, BufferedRecord)>> {
        let mut looks = self.producers.len();
        while looks > 0 && self.asks_for.is_none() {
            looks -= 1;
            self.turn = (self.turn + 1) % self.producers.len();
            let at = self.turn;
            if !self.producers[at].begun {
                if !self.listen_to(at)? {
                    self.turn = 0;
                    looks = looks.min(self.producers.len());
                } else if self.producers[at].begun {
                    // Its records may have been read already.
                    looks = self.producers.len();
                }
                continue;
            }
            match self.producers[at].look() {
                Ok(Next::Record(found)) => return Ok(Some((at, found))),
                Ok(Next::NeedsMore | Next::Begin) => continue,
                // More may follow.
                Ok(Next::Topic(id)) => {
                    self.add_topic(at, id)?;
                    looks = self.producers.len();
                }
                Ok(Next::Ended) => drop(self.producers.swap_remove(at)),
                Err(error) => self.refuse(at, &error)?,
            }
            looks = looks.min(self.producers.len());
        }
        Ok(None)
    }
}

/// Whether the process or the system has too many open files.
fn is_full(error: &io::Error) -> bool {
    let full = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|error| full.contains(&error))
}

/// Whether there is no connection to accept.
fn has_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

impl StreamSource {
    fn topic(&self, at: usize, id: u16) -> Option<&Topic> {
        self.producers[at].framing.topics()?.get(&id)
    }
}

impl Source for StreamSource {
    fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        let found = match self.find()? {
            Some(found) => Some(found),
            None if self.asks_for.is_some() => None,
            None if self.producers.is_empty() && self.listener.is_none() => return Ok(None),
            None => {
                self.wait()?;
                self.find()?
            }
        };
        let Some((at, found)) = found else { return Err(io::ErrorKind::Interrupted.into()) };
        let (log_time_ns, publish_time_ns) = found.times_ns.unwrap_or_else(|| {
            let now_ns = wall_ns();
            (now_ns, now_ns)
        });
        let data = self.producers[at].payload(&found);
        let channel = found.channel;
        Ok(Some(Record { channel, log_time_ns, publish_time_ns, due_ns: None, data }))
    }

    fn declares(&mut self) -> Option<ChannelConfig> {
        let (at, id) = self.asks_for?;
        self.topic(at, id).map(|topic| config_of(topic, &self.latched))
    }

    fn is_declared(&mut self, outcome: Result<usize, String>) -> io::Result<()> {
        let Some((at, id)) = self.asks_for.take() else { return Ok(()) };
        let Some(topic) = self.topic(at, id) else { return Ok(()) };
        match outcome {
            Ok(channel) => {
                let config = config_of(topic, &self.latched);
                self.channels.push(config);
                let producer = &mut self.producers[at];
                // Otherwise it declares more topics, and looks up all of them again.
                if producer.begun {
                    producer.bind(id, channel);
                }
                Ok(())
            }
            Err(why) => {
                let topic = topic.topic.clone();
                self.refuse(at, &Problem::Refused { topic, why })
            }
        }
    }
}
