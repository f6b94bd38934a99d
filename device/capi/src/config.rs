// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration as structs of C. A field that is 0 or NULL has its default.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::slice;
use std::time::Duration;

use steadyio_recorder::config::{
    ChannelConfig, EngineChoice, IoPriority, LateRoom, OnFailure, RecorderConfig, Retention,
    Schema, WhenFull, WriterConfig, defaults,
};
use steadyio_recorder::mcap::compression::Compression;

use crate::arguments::{CStruct, bytes_of, path, string};
use crate::status::Error;

const NO_LOCK: u32 = 1;
const WRITER_CPU: u32 = 2;
const DISCARD_DAMAGED: u32 = 4;

/// The default for each channel that may be added later.
const LATE_DEFINITION_BYTES: u64 = 4 << 10;

/// `struct steadyio_config`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
// In steadyio.h.
pub struct CConfig {
    pub struct_bytes: usize,
    pub dir: *const c_char,
    pub loss_window_ms: u64,
    pub unit_bytes: u64,
    pub segment_bytes: u64,
    pub keep: u64,
    pub keep_by: u32,
    pub when_full: u32,
    pub engine: u32,
    pub flags: u32,
    pub writer_fifo_priority: u32,
    pub writer_cpu: u32,
    pub writer_io_class: u32,
    pub writer_io_level: u32,
    pub note: Option<unsafe extern "C" fn(context: *mut c_void, text: *const c_char)>,
    pub note_context: *mut c_void,
    pub longest_record_bytes: u64,
    pub on_failure: u32,
    pub late_channels: u32,
    pub late_definition_bytes: u64,
    pub profile: *const c_char,
    pub control_socket: *const c_char,
    pub compression: u32,
}

// SAFETY: it satisfies the trait's requirements; the caller guarantees that a function pointer is
// NULL or valid.
unsafe impl CStruct for CConfig {
    const NAME: &'static str = "steadyio_config";
}

/// `struct steadyio_channel_config`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
// In steadyio.h.
pub struct CChannelConfig {
    pub struct_bytes: usize,
    pub topic: *const c_char,
    pub message_encoding: *const c_char,
    pub schema_name: *const c_char,
    pub schema_encoding: *const c_char,
    pub schema_data: *const c_void,
    pub schema_bytes: usize,
    pub record_bytes_max: u64,
    pub period_ns: u64,
    pub ring_bytes: u64,
    pub metadata: *const CPair,
    pub metadata_pairs: usize,
}

/// `struct steadyio_pair`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CPair {
    pub key: *const c_char,
    pub value: *const c_char,
}

// SAFETY: it satisfies the trait's requirements.
unsafe impl CStruct for CChannelConfig {
    const NAME: &'static str = "steadyio_channel_config";
}

fn or(value: u64, default: u64) -> u64 {
    if value == 0 { default } else { value }
}

fn one_of<T: Copy>(name: &str, value: u32, choices: &[T]) -> Result<T, Error> {
    let chosen = usize::try_from(value).ok().and_then(|value| choices.get(value));
    chosen.copied().ok_or_else(|| {
        Error::invalid(name, value, &format!("must be 0 to {}, see steadyio.h", choices.len() - 1))
    })
}

fn small(name: &str, value: u32) -> Result<u8, Error> {
    u8::try_from(value).map_err(|_| Error::invalid(name, value, "must be at most 255"))
}

impl CConfig {
    /// Converts to a configuration without channels. The recorder checks limits.
    ///
    /// # Safety
    /// `dir` and `profile` are NULL or strings.
    pub unsafe fn to_rust(&self) -> Result<RecorderConfig, Error> {
        let unknown = self.flags & !(NO_LOCK | WRITER_CPU | DISCARD_DAMAGED);
        if unknown != 0 {
            let reason = format!("unknown flags 0x{unknown:x} (see enum steadyio_flags)");
            return Err(Error::invalid("config->flags", format!("0x{:x}", self.flags), &reason));
        }
        let when_full = [WhenFull::Recycle, WhenFull::Stop];
        let on_failure = [OnFailure::Wait, OnFailure::Exit];
        Ok(RecorderConfig {
            // SAFETY: upheld by the caller.
            dir: unsafe { path("config->dir", self.dir)? }.ok_or_else(|| {
                let reason = "must be the directory of the recording";
                Error::invalid("config->dir", "NULL", reason)
            })?,
            // SAFETY: upheld by the caller.
            profile: unsafe { string("config->profile", self.profile)? }.unwrap_or_default(),
            channels: Vec::new(),
            loss_window: match self.loss_window_ms {
                0 => defaults::LOSS_WINDOW,
                ms => Duration::from_millis(ms),
            },
            late: LateRoom {
                channels: self.late_channels.into(),
                definition_bytes: or(
                    self.late_definition_bytes,
                    LATE_DEFINITION_BYTES * u64::from(self.late_channels),
                ),
            },
            unit_bytes: or(self.unit_bytes, defaults::UNIT_BYTES),
            longest_record_bytes: self.longest_record_bytes,
            // Each channel may have a separate thread.
            shared_ring_bytes: None,
            segment_bytes: or(self.segment_bytes, defaults::SEGMENT_BYTES),
            retention: self.retention()?,
            when_full: one_of("config->when_full", self.when_full, &when_full)?,
            discard_damaged: self.flags & DISCARD_DAMAGED != 0,
            on_failure: one_of("config->on_failure", self.on_failure, &on_failure)?,
            writer: self.writer()?,
            lock_memory: self.flags & NO_LOCK == 0,
        })
    }

    /// The path of the control socket; None if there is none.
    ///
    /// # Safety
    /// `control_socket` is NULL or a string.
    pub unsafe fn control_socket(&self) -> Result<Option<PathBuf>, Error> {
        // SAFETY: upheld by the caller.
        unsafe { path("config->control_socket", self.control_socket) }
    }

    fn retention(&self) -> Result<Retention, Error> {
        let keep = self.keep;
        let choices = [
            Retention::Segments(or(keep, defaults::SEGMENTS)),
            Retention::Bytes(keep),
            Retention::MinFreeBytes(keep),
            Retention::Time(Duration::from_millis(keep)),
        ];
        one_of("config->keep_by", self.keep_by, &choices)
    }

    fn writer(&self) -> Result<WriterConfig, Error> {
        let engines = [EngineChoice::Best, EngineChoice::IoUring, EngineChoice::Pwrite];
        let compressions = [None, Some(Compression::Lz4), Some(Compression::Zstd)];
        let priority = small("config->writer_fifo_priority", self.writer_fifo_priority)?;
        let io_priority = IoPriority {
            class: small("config->writer_io_class", self.writer_io_class)?,
            level: small("config->writer_io_level", self.writer_io_level)?,
        };
        Ok(WriterConfig {
            engine: one_of("config->engine", self.engine, &engines)?,
            fifo_priority: (priority > 0).then_some(priority),
            cpu: (self.flags & WRITER_CPU != 0).then_some(self.writer_cpu as usize),
            io_priority: (io_priority.class > 0).then_some(io_priority),
            ram: None,
            compression: one_of("config->compression", self.compression, &compressions)?,
        })
    }
}

impl CChannelConfig {
    /// Converts a channel. The recorder checks limits.
    ///
    /// # Safety
    /// Pointers are NULL or valid.
    pub unsafe fn to_rust(&self) -> Result<ChannelConfig, Error> {
        // SAFETY: upheld by the caller.
        let (topic, encoding) = unsafe {
            (
                string("config->topic", self.topic)?,
                string("config->message_encoding", self.message_encoding)?,
            )
        };
        let topic = topic.ok_or_else(|| {
            Error::invalid("config->topic", "NULL", "must be the name of the channel")
        })?;
        let period = (self.period_ns > 0).then(|| Duration::from_nanos(self.period_ns));
        Ok(ChannelConfig {
            topic,
            message_encoding: encoding.unwrap_or_default(),
            // SAFETY: upheld by the caller.
            schema: unsafe { self.schema()? },
            // SAFETY: upheld by the caller.
            metadata: unsafe { self.pairs()? },
            record_bytes_max: self.record_bytes_max,
            period,
            // 0: its share, computed when all channels are known.
            ring_bytes: self.ring_bytes,
        })
    }

    unsafe fn pairs(&self) -> Result<Vec<(String, String)>, Error> {
        let pairs = match (self.metadata.is_null(), self.metadata_pairs) {
            (_, 0) => &[],
            (true, count) => {
                let reason = format!("must be an array, since config->metadata_pairs = {count}");
                return Err(Error::invalid("config->metadata", "NULL", &reason));
            }
            // SAFETY: upheld by the caller.
            (false, count) => unsafe { slice::from_raw_parts(self.metadata, count) },
        };
        let text = |name, pointer| {
            // SAFETY: upheld by the caller.
            let text = unsafe { string(name, pointer)? };
            text.ok_or_else(|| Error::invalid(name, "NULL", "must be a string"))
        };
        let pair = |pair: &CPair| {
            Ok((
                text("config->metadata[].key", pair.key)?,
                text("config->metadata[].value", pair.value)?,
            ))
        };
        pairs.iter().map(pair).collect()
    }

    unsafe fn schema(&self) -> Result<Option<Schema>, Error> {
        // SAFETY: upheld by the caller.
        let (name, encoding, data) = unsafe {
            (
                string("config->schema_name", self.schema_name)?,
                string("config->schema_encoding", self.schema_encoding)?,
                bytes_of(
                    "config->schema_data",
                    self.schema_data,
                    "config->schema_bytes",
                    self.schema_bytes,
                )?,
            )
        };
        match name {
            Some(name) => {
                let encoding = encoding.unwrap_or_default();
                Ok(Some(Schema { name, encoding, data: data.to_vec() }))
            }
            None if encoding.is_none() && data.is_empty() => Ok(None),
            None => {
                let reason = "a schema has a name; without one the other schema fields must be 0";
                Err(Error::invalid("config->schema_name", "NULL", reason))
            }
        }
    }
}
