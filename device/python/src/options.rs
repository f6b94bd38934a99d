// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts arguments of Python to the structs of `steadyio.h`. `recorder` calls it.

use std::ffi::{CString, c_char, c_void};
use std::mem;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use steadyio_capi::config::{CChannelConfig, CConfig, CPair};
use steadyio_capi::handle::RecorderHandle;
use steadyio_capi::status::{Error, Status};
use steadyio_recorder::config::ChannelConfig;

use crate::errors::{call, invalid};
use crate::types::{Schema, Topic};

/// Function and context for progress.
pub type Note = (unsafe extern "C" fn(*mut c_void, *const c_char), *mut c_void);

/// How much is kept; at most one is there.
#[derive(Debug, Default)]
pub struct Keep {
    pub segments: Option<u64>,
    pub bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    pub s: Option<f64>,
}

/// Of a recorder; 0: the default of the C interface.
#[derive(Debug)]
pub struct Options {
    pub config: CConfig,
    pub profile: String,
    pub control_socket: Option<PathBuf>,
}

/// For struct update: all defaults.
pub fn no_config() -> CConfig {
    // SAFETY: every pattern of bits is a value, as the trait CStruct wants it.
    CConfig { struct_bytes: mem::size_of::<CConfig>(), ..unsafe { mem::zeroed() } }
}

fn no_channel() -> CChannelConfig {
    let struct_bytes = mem::size_of::<CChannelConfig>();
    // SAFETY: as above.
    CChannelConfig { struct_bytes, ..unsafe { mem::zeroed() } }
}

fn c_string(name: &str, text: impl Into<Vec<u8>>) -> PyResult<CString> {
    CString::new(text).map_err(|error| {
        let text = String::from_utf8_lossy(&error.into_vec()).into_owned();
        invalid(name, format!("{text:?}"), "must not contain a 0 byte")
    })
}

/// Seconds as a whole number of units, at least one: 0 would be the default.
pub fn units(name: &str, seconds: f64, per_second: f64) -> PyResult<u64> {
    let units = (seconds * per_second).round();
    if units >= 1.0 && units < u64::MAX as f64 {
        return Ok(units as u64);
    }
    let least = 1.0 / per_second;
    Err(invalid(name, seconds, &format!("must be a number of seconds, at least {least}")))
}

/// A whole number; what is negative or too large is an InvalidError, as everything else that is not
/// allowed.
pub fn whole<T: TryFrom<u64>>(name: &str, value: Option<Bound<'_, PyAny>>) -> PyResult<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    let number = match value.extract::<u64>() {
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => return Err(error),
        number => number.ok(),
    };
    let number = number.and_then(|number| T::try_from(number).ok());
    let bits = 8 * mem::size_of::<T>();
    let reason = || format!("must be a whole number from 0 to 2**{bits} - 1");
    number.map(Some).ok_or_else(|| invalid(name, &value, &reason()))
}

/// The position of a word among those allowed, which is its value in `steadyio.h`.
pub fn one_of(name: &str, word: &str, allowed: &[&str]) -> PyResult<u32> {
    match allowed.iter().position(|known| *known == word) {
        Some(position) => Ok(position as u32),
        None => {
            let reason = format!("must be one of {}", allowed.join(", "));
            Err(invalid(name, format!("{word:?}"), &reason))
        }
    }
}

impl Keep {
    /// `keep_by` and `keep`.
    pub fn as_c(&self) -> PyResult<(u32, u64)> {
        let ms = self.s.map(|s| units("keep_s", s, 1e3)).transpose()?;
        let given: Vec<(u32, u64)> = [self.segments, self.bytes, self.free_bytes, ms]
            .into_iter()
            .zip(0..)
            .filter_map(|(keep, by)| Some((by, keep?)))
            .collect();
        match given[..] {
            [] => Ok((0, 0)),
            [one] => Ok(one),
            _ => Err(invalid(
                "segments, keep_bytes, keep_free_bytes, keep_s",
                format!("{} of them", given.len()),
                "give at most one",
            )),
        }
    }
}

impl Options {
    pub fn open(self, dir: &Path, note: Option<Note>) -> PyResult<RecorderHandle> {
        let dir = c_string("dir", dir.as_os_str().as_bytes())?;
        let profile = c_string("profile", self.profile)?;
        let socket = self.control_socket.map(|path| path.into_os_string().into_vec());
        let socket = socket.map(|path| c_string("control_socket", path)).transpose()?;
        let config = CConfig {
            dir: dir.as_ptr(),
            profile: profile.as_ptr(),
            control_socket: socket.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            note: note.map(|(function, _)| function),
            note_context: note.map_or(ptr::null_mut(), |(_, context)| context),
            ..self.config
        };
        let mut opened = None;
        call(|| {
            // SAFETY: the strings outlive the call.
            opened = Some(unsafe { RecorderHandle::open(&config)? });
            Ok(Status::Ok)
        })
        .done()?;
        opened.ok_or_else(|| crate::errors::Base::new_err("a bug in steadyio: nothing was opened"))
    }
}

/// Strings of a topic, which a C struct points to.
struct TopicStrings {
    name: CString,
    encoding: CString,
    schema: Option<(CString, CString)>,
    metadata: Vec<(CString, CString)>,
}

impl TopicStrings {
    fn of(topic: &Topic) -> PyResult<TopicStrings> {
        let schema = |schema: &Schema| {
            let name = c_string("schema.name", schema.name.as_str())?;
            PyResult::Ok((name, c_string("schema.encoding", schema.encoding.as_str())?))
        };
        let pair = |(key, value): (&String, &String)| {
            let key = c_string("a key of metadata", key.as_str())?;
            PyResult::Ok((key, c_string("a value of metadata", value.as_str())?))
        };
        Ok(TopicStrings {
            name: c_string("name of a topic", topic.name.as_str())?,
            encoding: c_string("encoding", topic.encoding.as_str())?,
            schema: topic.schema.as_ref().map(schema).transpose()?,
            metadata: topic.metadata.iter().map(pair).collect::<PyResult<_>>()?,
        })
    }
}

/// A topic as the recorder wants it.
pub fn channel(topic: &Topic) -> PyResult<ChannelConfig> {
    let strings = TopicStrings::of(topic)?;
    let pairs: Vec<CPair> = strings
        .metadata
        .iter()
        .map(|(key, value)| CPair { key: key.as_ptr(), value: value.as_ptr() })
        .collect();
    let schema = strings.schema.as_ref();
    let data = topic.schema.as_ref().map_or(&[][..], |schema| &schema.data);
    let config = CChannelConfig {
        topic: strings.name.as_ptr(),
        message_encoding: strings.encoding.as_ptr(),
        schema_name: schema.map_or(ptr::null(), |(name, _)| name.as_ptr()),
        schema_encoding: schema.map_or(ptr::null(), |(_, encoding)| encoding.as_ptr()),
        schema_data: data.as_ptr().cast(),
        schema_bytes: data.len(),
        record_bytes_max: topic.record_bytes_max,
        period_ns: topic.period_s.map_or(Ok(0), |s| units("period_s", s, 1e9))?,
        ring_bytes: topic.ring_bytes.unwrap_or(0),
        metadata: pairs.as_ptr(),
        metadata_pairs: pairs.len(),
        ..no_channel()
    };
    let mut made = None;
    call(|| {
        // SAFETY: the strings and pairs outlive the call.
        made = Some(unsafe { config.to_rust()? });
        Result::<_, Error>::Ok(Status::Ok)
    })
    .done()?;
    let made =
        made.ok_or_else(|| crate::errors::Base::new_err("a bug in steadyio: no channel was made"))?;
    Ok(if topic.latched { made.latched() } else { made })
}
