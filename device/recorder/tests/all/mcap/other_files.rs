// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that no steadyio recorder wrote are left alone.

use std::collections::BTreeMap;
use std::io::Cursor;

use steadyio_recorder::mcap::recover::{RecoverError, State, examine};

use super::segment::disk::{Disk, recover};
use super::segment::{RECYCLED, Script, Sent};

/// By the official writer.
fn official() -> Vec<u8> {
    let mut image = Cursor::new(Vec::new());
    let mut writer = mcap::Writer::new(&mut image).unwrap();
    let channel = writer.add_channel(0, "/a", "json", &BTreeMap::new()).unwrap();
    for number in 1..40 {
        let (channel_id, sequence, log_time, publish_time) = (channel, number, 1, 1);
        let header = mcap::records::MessageHeader { channel_id, sequence, log_time, publish_time };
        writer.write_to_known_channel(&header, &[7; 50]).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    image.into_inner()
}

#[test]
fn a_file_of_another_writer_that_has_its_end_is_finished() {
    let image = official();
    let (same, found) = recover(image.clone()).unwrap();
    assert_eq!((found.state, found.damaged), (State::Finished, false));
    assert!(found.contents.is_none());
    assert_eq!(same, image);
}

#[test]
fn a_file_of_another_writer_without_its_end_is_refused() {
    let whole = official();
    for bytes in [8, 9, 100, whole.len() - 1] {
        let error = examine(&Disk::new(whole[..bytes].to_vec()), false).unwrap_err();
        assert!(matches!(error, RecoverError::Foreign), "{bytes}: {error}");
        assert!(error.to_string().contains("'mcap recover' completes such files"), "{error}");
    }
}

#[test]
fn our_own_segments_are_never_taken_for_those_of_other_writers() {
    let mut script = Script::begin(RECYCLED, 1, 1);
    script.push(Sent::new(0, 1, vec![1; 100]));
    script.finish();
    let mut image = script.image(Vec::new());
    // A bit of the life in the head, and one of its copy.
    image[80] ^= 1;
    image[4_096 + 100] ^= 1;
    let error = examine(&Disk::new(image), false).unwrap_err();
    assert!(matches!(error, RecoverError::UnknownLife), "{error}");
}

#[test]
fn other_files_are_refused_and_empty_ones_are_unused() {
    let error = examine(&Disk::new(b"RIFF....".to_vec()), false).unwrap_err();
    assert_eq!(error.to_string(), "not an MCAP file (bad magic)");
    for image in [Vec::new(), vec![0; 128 << 10]] {
        assert_eq!(examine(&Disk::new(image), false).unwrap().state, State::Unused);
    }
}
