// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface of the store: its example, and what C programs get wrong.

use std::ffi::{CStr, CString, OsStr, c_int};
use std::fs::File;
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};

use steadyio_capi::status::Status;
use steadyio_capi::steadyio_error;
use steadyio_capi::store::handle::StoreHandle;
use steadyio_capi::store::structs::{CExtent, CExtentOptions, CStoreOptions, CStoreStats};
use steadyio_capi::store::*;
use steadyio_store::AlignedBuffer;
use steadyio_store::storage::file::{Access, FileStorage};
use steadyio_store::store::Store;

use crate::c_example::{compile, install, pkg_config, run};

const ALIGN: u64 = 64 << 10;

fn said() -> String {
    // SAFETY: never NULL, ends with 0.
    unsafe { CStr::from_ptr(steadyio_error()) }.to_str().unwrap().to_string()
}

#[track_caller]
fn refused(status: c_int, expected: Status, text: &str) {
    assert_eq!(status, expected as c_int, "{}", said());
    assert!(said().contains(text), "{text} is not in: {}", said());
}

fn file(dir: &Path, bytes: u64) -> CString {
    let path = dir.join("store");
    File::create(&path).unwrap().set_len(bytes).unwrap();
    CString::new(path.to_str().unwrap()).unwrap()
}

fn options() -> CStoreOptions {
    let struct_bytes = size_of::<CStoreOptions>();
    CStoreOptions { struct_bytes, align_bytes: ALIGN, extents_max: 3, flags: 0 }
}

fn extent_options(bytes: u64) -> CExtentOptions {
    let struct_bytes = size_of::<CExtentOptions>();
    CExtentOptions { struct_bytes, bytes, flags: 0, reserved: 0 }
}

fn create(path: &CStr) -> *mut StoreHandle {
    let mut store = null_mut();
    // SAFETY: valid pointers.
    let status = unsafe { steadyio_store_create(path.as_ptr(), &options(), &mut store) };
    assert_eq!(status, 0, "{}", said());
    store
}

#[test]
fn what_the_example_stores_is_there() {
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    install(prefix);
    let program = compile(
        prefix,
        "store-example",
        "examples/store.c",
        &pkg_config(prefix, &["--cflags", "--libs"]),
    );
    let path = file(prefix, 16 << 20);
    let mut command = Command::new(&program);
    command.arg(path.to_str().unwrap()).env("LD_LIBRARY_PATH", prefix.join("lib"));
    assert_eq!(
        String::from_utf8(run(&mut command).stdout).unwrap(),
        "table 1: version 2, 262144 bytes in 1 commands\n\
         table 2: version 2, 262139 bytes in 1 commands\n"
    );
    let storage = FileStorage::open(&prefix.join("store"), Access::Read).unwrap();
    let mut store = Store::open(storage).unwrap();
    let mut buffer = AlignedBuffer::new(256 << 10, false).unwrap();
    assert_eq!(store.load(2, &mut buffer).unwrap(), 262_139);
    assert!(buffer[..262_139].iter().all(|&byte| byte == 2));
    drop(store);
    // It overwrites nothing.
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("store: create: ") && said.contains("holds a store"), "{said}");
}

#[test]
fn contents_go_in_and_come_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 4 << 20);
    let mut store = create(&path);
    let mut buffer = AlignedBuffer::new(128 << 10, false).unwrap();
    let (data, memory) = (buffer.as_ptr().cast(), buffer.as_mut_ptr().cast());
    let mut extent = CExtent { struct_bytes: size_of::<CExtent>(), ..CExtent::default() };
    let mut stats =
        CStoreStats { struct_bytes: size_of::<CStoreStats>(), ..CStoreStats::default() };
    let mut length = 0;
    // SAFETY: valid pointers.
    unsafe {
        assert_eq!(steadyio_store_add(store, 7, &extent_options(100_000)), 0, "{}", said());
        assert_eq!(steadyio_store_unload(store, 7, data, 70_000), 0, "{}", said());
        assert_eq!(steadyio_store_write(store, 7, data, 5), 0);
        steadyio_store_close(store);
        // A change that was not flushed is gone.
        assert_eq!(steadyio_store_open(path.as_ptr(), 1, &mut store), 0, "{}", said());
        assert_eq!(steadyio_store_next(store, 0, &mut extent), 0);
        assert_eq!((extent.id, extent.valid_bytes, extent.bytes), (7, 70_000, 100_000));
        assert_eq!((extent.load_commands, extent.start_bytes % ALIGN), (1, 0));
        refused(steadyio_store_next(store, 8, &mut extent), Status::StoreMissing, "no extent 8");
        assert_eq!(steadyio_store_load(store, 7, memory, 128 << 10, &mut length), 0);
        assert_eq!(length, 70_000);
        assert_eq!(steadyio_store_check(store, 7), 0, "{}", said());
        assert_eq!(steadyio_store_stats(store, &mut stats), 0);
        assert_eq!((stats.extents, stats.extents_max, stats.align_bytes), (1, 3, ALIGN));
        assert_eq!((stats.writes, stats.flushes), (0, 0));
        refused(steadyio_store_delete(store, 7), Status::State, "opened read-only");
        steadyio_store_close(store);
    }
}

#[test]
fn a_path_need_not_be_text_but_is_not_empty() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = [dir.path().as_os_str().as_bytes(), b"/\xff"].concat();
    File::create(OsStr::from_bytes(&bytes)).unwrap().set_len(4 << 20).unwrap();
    let store = create(&CString::new(bytes).unwrap());
    let mut other = null_mut();
    // SAFETY: valid pointers.
    unsafe {
        steadyio_store_close(store);
        let opened = steadyio_store_open(c"".as_ptr(), 0, &mut other);
        refused(opened, Status::Invalid, "path = \"\": must name a file or directory");
    }
}

#[test]
fn the_next_extent_is_found_while_others_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = create(&file(dir.path(), 4 << 20));
    let shared = store.expose_provenance();
    // SAFETY: valid pointers, and the store is closed at the end.
    unsafe {
        assert_eq!(steadyio_store_add(store, 9, &extent_options(1)), 0, "{}", said());
        let changes = std::thread::spawn(move || {
            let store = std::ptr::with_exposed_provenance(shared);
            for _ in 0..20_000 {
                assert_eq!(steadyio_store_add(store, 5, &extent_options(1)), 0);
                assert_eq!(steadyio_store_delete(store, 5), 0);
            }
        });
        let mut extent = CExtent { struct_bytes: size_of::<CExtent>(), ..CExtent::default() };
        while !changes.is_finished() {
            assert_eq!(steadyio_store_next(store, 0, &mut extent), 0, "{}", said());
        }
        changes.join().unwrap();
        steadyio_store_close(store);
    }
}

#[test]
fn wrong_arguments_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 3 << 20);
    let mut store = null_mut();
    // SAFETY: NULL is allowed everywhere.
    unsafe {
        let need = "store = NULL: must be a store of steadyio_store_open()";
        refused(steadyio_store_flush(null()), Status::Invalid, need);
        refused(steadyio_store_delete(null(), 1), Status::Invalid, need);
        refused(steadyio_store_check(null(), 1), Status::Invalid, need);
        refused(steadyio_store_load(null(), 1, null_mut(), 0, null_mut()), Status::Invalid, need);
        refused(steadyio_store_open(null(), 0, &mut store), Status::Invalid, "path = NULL");
        refused(steadyio_store_open(path.as_ptr(), 4, &mut store), Status::Invalid, "flags = 4");
        let part = steadyio_store_open(c"/dev/null@x".as_ptr(), 0, &mut store);
        refused(part, Status::Invalid, "what follows @ must be a partition");
        refused(steadyio_store_open(path.as_ptr(), 0, &mut store), Status::StoreNone, "no store");
        let small = CStoreOptions { align_bytes: 1 << 20, ..options() };
        let made = steadyio_store_create(path.as_ptr(), &small, &mut store);
        refused(made, Status::Invalid, "are too few");
        let made = steadyio_store_create(path.as_ptr(), &options(), null_mut());
        refused(made, Status::Invalid, "store = NULL: must be where to store the result");
        let unset = CStoreOptions { struct_bytes: usize::MAX, ..options() };
        let made = steadyio_store_create(path.as_ptr(), &unset, &mut store);
        refused(made, Status::Invalid, "must be sizeof(struct steadyio_store_options)");
        steadyio_store_close(null_mut());
    }
    let store = create(&path);
    let buffer = AlignedBuffer::new(128 << 10, false).unwrap();
    let data = buffer.as_ptr();
    // SAFETY: valid pointers.
    unsafe {
        let add = |id, options: CExtentOptions| steadyio_store_add(store, id, &options);
        refused(add(1, extent_options(0)), Status::Invalid, "must be at least 1");
        let wrong = CExtentOptions { flags: 4, ..extent_options(1) };
        refused(add(1, wrong), Status::Invalid, "options->flags = 4");
        let wrong = CExtentOptions { reserved: 1, ..extent_options(1) };
        refused(add(1, wrong), Status::Invalid, "options->reserved = 1");
        refused(add(1, extent_options(1 << 30)), Status::StoreFull, "no room for 1073741824");
        assert_eq!(add(1, extent_options(100_000)), 0);
        refused(add(1, extent_options(1)), Status::State, "extent 1 already exists");
        let unload = |data: *const u8, bytes| steadyio_store_unload(store, 1, data.cast(), bytes);
        refused(unload(data.add(1), 9_000), Status::Invalid, "address of the contents");
        refused(unload(data, 100_001), Status::Invalid, "100001 bytes are too many");
        refused(unload(null(), 1), Status::Invalid, "data = NULL");
        assert_eq!(unload(data, 100_000), 0, "{}", said());
        let load = steadyio_store_load(store, 1, data.cast_mut().cast(), 100_000, null_mut());
        refused(load, Status::Invalid, "is too small: 102400 are read");
        let mut other = null_mut();
        let second = steadyio_store_open(path.as_ptr(), 0, &mut other);
        refused(second, Status::State, "another program has this store open");
        steadyio_store_close(store);
    }
}
