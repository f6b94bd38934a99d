// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statuses and error texts for C, and the guard that keeps panics away from C. All functions of
//! the interface use it.

use std::any::Any;
use std::borrow::Cow;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use steadyio_recorder::config::ConfigError;
use steadyio_recorder::pool::StartError;
use steadyio_recorder::pool::registry::AddError;

/// The longest text of an error, with its 0.
const TEXT_BYTES: usize = 1_024;

/// `enum steadyio_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
// In steadyio.h.
pub enum Status {
    Ok = 0,
    RingFull = 1,
    TooLong = 2,
    Timeout = 3,
    Full = 4,
    Lost = 5,
    Rejected = 6,
    Invalid = -1,
    State = -2,
    Failed = -3,
    Panic = -4,
    // In steadyio_store.h.
    StoreMissing = -10,
    StoreFull = -11,
    StoreDamaged = -12,
    StoreNone = -13,
}

const TEXTS: [(Status, &CStr); 15] = [
    (Status::Ok, c"done"),
    (Status::RingFull, c"record lost: the ring is full"),
    (Status::TooLong, c"record lost: longer than record_bytes_max"),
    (Status::Timeout, c"not everything became durable in time"),
    (Status::Full, c"all segments are full"),
    (Status::Lost, c"records were lost"),
    (Status::Rejected, c"the kernel allows no such I/O with this memory"),
    (Status::Invalid, c"an argument is wrong"),
    (Status::State, c"not possible now"),
    (Status::Failed, c"the system, the file system or the device failed"),
    (Status::Panic, c"a bug in libsteadyio"),
    (Status::StoreMissing, c"no extent has this number"),
    (Status::StoreFull, c"the store has no room"),
    (Status::StoreDamaged, c"the store or contents in it are damaged"),
    (Status::StoreNone, c"no store of a version that this library knows"),
];

/// The meaning of a status.
pub fn text_of(status: c_int) -> &'static CStr {
    let found = TEXTS.iter().find(|(known, _)| *known as c_int == status);
    found.map_or(c"no status of libsteadyio", |(_, text)| text)
}

/// A negative status and its text.
#[derive(Debug)]
pub struct Error {
    status: Status,
    text: Cow<'static, str>,
}

impl Error {
    /// An error with a constant text. It allocates nothing, because append must not.
    pub const fn fixed(status: Status, text: &'static str) -> Error {
        Error { status, text: Cow::Borrowed(text) }
    }

    pub fn new(status: Status, text: String) -> Error {
        Error { status, text: Cow::Owned(text) }
    }

    /// A wrong argument or field.
    pub fn invalid(name: &str, value: impl std::fmt::Display, reason: &str) -> Error {
        Error::new(Status::Invalid, format!("{name} = {value}: {reason}"))
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Error {
        Error::new(Status::Invalid, error.to_string())
    }
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Error {
        let status = match error {
            StartError::Config(_) | StartError::Definitions(_) | StartError::Layout(_) => {
                Status::Invalid
            }
            _ => Status::Failed,
        };
        Error::new(status, with_causes(&error))
    }
}

impl From<AddError> for Error {
    fn from(error: AddError) -> Error {
        let status = match error {
            AddError::Memory(_) => Status::Failed,
            AddError::Ended(_) => Status::State,
            _ => Status::Invalid,
        };
        Error::new(status, with_causes(&error))
    }
}

/// The text of an error with its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| match cause.to_string() {
        // Some errors contain the text of their cause.
        more if text.ends_with(&more) => text,
        more => format!("{text}: {more}"),
    })
}

thread_local! {
    // Without a destructor, so that nothing has to be registered.
    static TEXT: UnsafeCell<[u8; TEXT_BYTES]> = const { UnsafeCell::new([0; TEXT_BYTES]) };
}

fn remember(text: &str) {
    let mut bytes = text.len().min(TEXT_BYTES - 1);
    while !text.is_char_boundary(bytes) {
        bytes -= 1;
    }
    TEXT.with(|stored| {
        // SAFETY: only this thread uses it, and no reference to it outlives a statement.
        let stored = unsafe { &mut *stored.get() };
        stored[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
        stored[bytes] = 0;
    });
}

/// The text of the latest failure in this thread.
pub fn last_error() -> *const c_char {
    TEXT.with(|stored| stored.get().cast_const().cast())
}

/// Runs the body of a function that C calls. Success does not change the thread's error.
pub fn guard(body: impl FnOnce() -> Result<Status, Error>) -> c_int {
    // Later calls find the state of a panicked call poisoned.
    let outcome = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(Error::new(Status::Panic, panic_text(&*panic))));
    let status = outcome.unwrap_or_else(|error| {
        remember(&error.text);
        error.status
    });
    status as c_int
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a bug in libsteadyio: {}", text.unwrap_or("panicked"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn said() -> String {
        // SAFETY: it ends with 0, and this thread makes no other call meanwhile.
        unsafe { CStr::from_ptr(last_error()) }.to_str().unwrap().to_string()
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_text() {
        assert_eq!(guard(|| panic!("at {}", 7)), Status::Panic as c_int);
        assert_eq!(said(), "a bug in libsteadyio: at 7");
    }

    #[test]
    fn the_text_of_an_error_stays_until_the_next_error() {
        assert_eq!(said(), "");
        assert_eq!(guard(|| Err(Error::fixed(Status::State, "not yet"))), Status::State as c_int);
        assert_eq!(guard(|| Ok(Status::Ok)), 0);
        assert_eq!(said(), "not yet");
        // Characters of two bytes each: the cut must not leave half of one.
        let long = "é".repeat(TEXT_BYTES);
        guard(|| Err(Error::new(Status::Failed, long.clone())));
        assert_eq!(said(), "é".repeat((TEXT_BYTES - 1) / 2));
        std::thread::spawn(|| assert_eq!(said(), "")).join().unwrap();
    }
}
