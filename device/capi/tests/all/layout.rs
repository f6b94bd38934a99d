// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structs of the header and the library have the same layout.

use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use steadyio_capi::config::{CChannelConfig, CConfig, CPair};
use steadyio_capi::stats::{CAccount, CStats};
use steadyio_capi::status::Status;
use steadyio_capi::store::structs::{
    CExtent, CExtentOptions, CStoreOptions, CStoreStats, FORCE, NO_CHECKSUM, READ_ONLY, TWICE,
};
use steadyio_store::storage::BLOCK_BYTES;

fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// The lines of one struct, as layout.c prints them.
macro_rules! lines {
    ($name:literal, $type:ty, $($($field:ident).+),+ $(,)?) => {{
        let mut lines = vec![format!("{} {}", $name, size_of::<$type>())];
        $(lines.push(format!(
            "{}.{} {} {}",
            $name,
            stringify!($($field).+),
            offset_of!($type, $($field).+),
            size_of_field(|whole: &$type| &whole.$($field).+),
        ));)+
        lines
    }};
}

fn expected() -> Vec<String> {
    let mut lines = lines!(
        "steadyio_config",
        CConfig,
        struct_bytes,
        dir,
        loss_window_ms,
        unit_bytes,
        segment_bytes,
        keep,
        keep_by,
        when_full,
        engine,
        flags,
        writer_fifo_priority,
        writer_cpu,
        writer_io_class,
        writer_io_level,
        note,
        note_context,
        longest_record_bytes,
        on_failure,
        late_channels,
        late_definition_bytes,
        profile,
        control_socket,
        compression,
    );
    lines.extend(lines!(
        "steadyio_channel_config",
        CChannelConfig,
        struct_bytes,
        topic,
        message_encoding,
        schema_name,
        schema_encoding,
        schema_data,
        schema_bytes,
        record_bytes_max,
        period_ns,
        ring_bytes,
        metadata,
        metadata_pairs,
    ));
    lines.extend(lines!("steadyio_pair", CPair, key, value));
    lines.extend(lines!(
        "steadyio_account",
        CAccount,
        struct_bytes,
        received,
        received.bytes,
        buffered,
        written,
        durable,
        lost_ring_full,
        lost_in_writing,
        last_received_ns,
        last_durable_ns,
        first_lost_ns,
        last_lost_ns,
        ring_used_bytes,
        ring_used_bytes_max,
    ));
    lines.extend(lines!(
        "steadyio_stats",
        CStats,
        struct_bytes,
        poll_gap_ns_max,
        durable_lag_ns,
        durable_lag_ns_max,
        window_exceeded,
        rotations,
        device_bytes,
        failed_segments,
        failures,
        waiting_since_ns,
        state,
    ));
    lines.extend(store());
    use Status::{
        Failed, Full, Invalid, Lost, Ok, Panic, Rejected, RingFull, State, Timeout, TooLong,
    };
    let statuses =
        [Ok, RingFull, TooLong, Timeout, Full, Lost, Rejected, Invalid, State, Failed, Panic];
    let numbers = statuses.map(|status| (status as i32).to_string()).join(" ");
    lines.push(format!("statuses {numbers}"));
    lines
}

fn store() -> Vec<String> {
    let mut lines = lines!(
        "steadyio_store_options",
        CStoreOptions,
        struct_bytes,
        align_bytes,
        extents_max,
        flags,
    );
    let extent_options =
        lines!("steadyio_extent_options", CExtentOptions, struct_bytes, bytes, flags, reserved);
    lines.extend(extent_options);
    lines.extend(lines!(
        "steadyio_extent",
        CExtent,
        struct_bytes,
        id,
        start_bytes,
        bytes,
        valid_bytes,
        load_commands,
        crc,
        flags,
    ));
    lines.extend(lines!(
        "steadyio_store_stats",
        CStoreStats,
        struct_bytes,
        store_bytes,
        align_bytes,
        free_bytes,
        free_bytes_max,
        command_bytes,
        reads,
        writes,
        flushes,
        extents,
        extents_max,
    ));
    use Status::{StoreDamaged, StoreFull, StoreMissing, StoreNone};
    let statuses = [StoreMissing, StoreFull, StoreDamaged, StoreNone];
    let numbers = statuses.map(|status| (status as i32).to_string()).join(" ");
    let flags = format!("{READ_ONLY} {FORCE} {TWICE} {NO_CHECKSUM}");
    lines.push(format!("store {numbers} flags {flags} block {BLOCK_BYTES}"));
    lines
}

#[test]
fn the_c_compiler_and_the_library_agree_on_every_field() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("layout");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(here.join("include"))
        .arg(here.join("tests/layout.c"))
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(compiled.success());
    let output = Command::new(program).output().unwrap();
    let printed: Vec<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect();
    assert_eq!(printed, expected());
}
