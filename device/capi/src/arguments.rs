// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks pointers from C, as far as that is possible. All functions of the interface use it.
//!
//! A struct begins with its size in the version with which the program was compiled, so either side
//! can be older than the other. Fields that an older library does not know must be 0, the default.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::slice;

use crate::status::{Error, Status};

/// No struct of any version has this size.
const STRUCT_BYTES_MAX: usize = 64 << 10;

/// A struct of the header.
///
/// # Safety
/// `repr(C)`, begins with `struct_bytes: usize`, and every bit pattern is a valid value.
pub unsafe trait CStruct: Copy {
    /// The name in the header.
    const NAME: &'static str;
    /// The size of its first version, the minimum.
    const BYTES_MIN: usize = mem::size_of::<Self>();
}

fn null(name: &'static str, what: &str) -> Error {
    Error::invalid(name, "NULL", &format!("must be {what}"))
}

/// The value behind a pointer that must not be NULL.
///
/// # Safety
/// It is NULL or valid for `'a`.
pub unsafe fn reference<'a, T>(
    name: &'static str,
    pointer: *const T,
    what: &'static str,
) -> Result<&'a T, Error> {
    // SAFETY: upheld by the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name, what))
}

/// Stores a result in the caller's variable. Without a variable, `value` is not called.
///
/// # Safety
/// The pointer is NULL or valid.
pub unsafe fn set<T>(
    name: &'static str,
    pointer: *mut T,
    value: impl FnOnce() -> T,
) -> Result<(), Error> {
    if pointer.is_null() {
        return Err(null(name, "where to store the result"));
    }
    // SAFETY: upheld by the caller.
    unsafe { pointer.write(value()) };
    Ok(())
}

fn check_size<T: CStruct>(name: &'static str, struct_bytes: usize) -> Result<(), Error> {
    let reason = match struct_bytes {
        // A size that was never set would be read past the struct's end.
        STRUCT_BYTES_MAX.. => format!("must be sizeof(struct {}), {}", T::NAME, T::BYTES_MIN),
        _ if struct_bytes >= T::BYTES_MIN => return Ok(()),
        _ => format!("must be at least {}: sizeof(struct {})", T::BYTES_MIN, T::NAME),
    };
    Err(Error::invalid(&format!("{name}->struct_bytes"), struct_bytes, &reason))
}

/// Copies the caller's struct, of any version.
///
/// # Safety
/// The pointer is NULL or valid for as many bytes as the struct says.
pub unsafe fn input<T: CStruct>(name: &'static str, pointer: *const T) -> Result<T, Error> {
    if pointer.is_null() {
        return Err(null(name, &format!("a struct {}", T::NAME)));
    }
    // SAFETY: every struct begins with its size.
    let struct_bytes = unsafe { pointer.cast::<usize>().read() };
    check_size::<T>(name, struct_bytes)?;
    let known = mem::size_of::<T>().min(struct_bytes);
    // SAFETY: upheld by the caller.
    let bytes = unsafe { slice::from_raw_parts(pointer.cast::<u8>(), struct_bytes) };
    if bytes[known..].iter().any(|&byte| byte != 0) {
        let reason = format!(
            "the library knows {known} bytes of it, but later bytes are not 0 (the program needs \
             a newer libsteadyio)"
        );
        return Err(Error::invalid(&format!("{name}->struct_bytes"), struct_bytes, &reason));
    }
    // SAFETY: zero is a valid value, and so are the bytes copied over it.
    unsafe {
        let mut value: T = mem::zeroed();
        ptr::copy_nonoverlapping(bytes.as_ptr(), ptr::from_mut(&mut value).cast(), known);
        Ok(value)
    }
}

/// Fills the caller's struct, of any version. Its size stays as the caller set it.
///
/// # Safety
/// The pointer is NULL or valid for as many bytes as the struct says.
pub unsafe fn output<T: CStruct>(
    name: &'static str,
    pointer: *mut T,
    value: T,
) -> Result<(), Error> {
    if pointer.is_null() {
        return Err(null(name, &format!("a struct {}", T::NAME)));
    }
    // SAFETY: every struct begins with its size.
    let struct_bytes = unsafe { pointer.cast::<usize>().read() };
    check_size::<T>(name, struct_bytes)?;
    let known = mem::size_of::<T>().min(struct_bytes);
    let head = mem::size_of::<usize>();
    // SAFETY: upheld by the caller, and the lengths add up to the struct's.
    unsafe {
        let to = pointer.cast::<u8>();
        ptr::copy_nonoverlapping(
            ptr::from_ref(&value).cast::<u8>().add(head),
            to.add(head),
            known - head,
        );
        ptr::write_bytes(to.add(known), 0, struct_bytes - known);
    }
    Ok(())
}

/// The memory of a pointer and a length. For length 0, the pointer may be NULL.
///
/// # Safety
/// The pointer is NULL or valid for this number of bytes, which do not change meanwhile.
pub unsafe fn bytes_of<'a>(
    name: &'static str,
    pointer: *const c_void,
    length_name: &'static str,
    length: usize,
) -> Result<&'a [u8], Error> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(name, &format!("a pointer to data, since {length_name} = {length}"))),
        (false, ..) if isize::try_from(length).is_err() => {
            Err(Error::invalid(length_name, length, "must be at most PTRDIFF_MAX"))
        }
        // SAFETY: upheld by the caller.
        (false, _) => Ok(unsafe { slice::from_raw_parts(pointer.cast(), length) }),
    }
}

/// A string; None if it is NULL.
///
/// # Safety
/// The pointer is NULL or a string that ends with 0.
pub unsafe fn string(name: &'static str, pointer: *const c_char) -> Result<Option<String>, Error> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: upheld by the caller.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    match bytes.to_str() {
        Ok(text) => Ok(Some(text.to_string())),
        Err(_) => Err(Error::new(Status::Invalid, format!("{name} = {bytes:?}: must be UTF-8"))),
    }
}

/// A file name, which need not be UTF-8; None if it is NULL.
///
/// # Safety
/// As [`string`].
pub unsafe fn path(name: &'static str, pointer: *const c_char) -> Result<Option<PathBuf>, Error> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: upheld by the caller.
    let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
    if bytes.is_empty() {
        return Err(Error::invalid(name, "\"\"", "must name a file or directory"));
    }
    Ok(Some(OsStr::from_bytes(bytes).into()))
}
