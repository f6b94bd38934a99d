// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::mcap::layout::Placement;

fn life(sequence: u64) -> Life {
    Life {
        identity: Identity { recording_id: [7; 16], sequence },
        created_ns: 0,
        placement: Placement::Recycled,
        segment_bytes: 1 << 20,
        block_bytes_max: 1 << 16,
        index_bytes: 1 << 12,
        is_compressed: false,
    }
}

/// A segment with 100 messages that its summary counts.
fn whole(sequence: u64) -> Found {
    let begun = Some(100 * (sequence - 1));
    let evidence = Evidence { present: 100, begun, counted: Some(100), ..Evidence::default() };
    Found::Life {
        path: format!("segment-{sequence}").into(),
        life: life(sequence),
        times_ns: None,
        evidence,
    }
}

fn without_summary(sequence: u64, present: u64) -> Found {
    let begun = Some(100 * (sequence - 1));
    let evidence = Evidence { present, begun, ..Evidence::default() };
    Found::Life {
        path: format!("segment-{sequence}").into(),
        life: life(sequence),
        times_ns: None,
        evidence,
    }
}

fn listed(messages: u64, missing: u64) -> Listed {
    Listed { messages, missing, at_most: false }
}

fn list(segments: usize, ended: bool, sequences: std::ops::Range<u64>) -> Manifest {
    let lives = sequences.map(|sequence| (life(sequence).identity, listed(100, 0)));
    Manifest::new(segments, 1 << 20, ended, lives)
}

fn found(files: &[Found], manifest: Option<&Manifest>) -> Vec<(u64, bool)> {
    losses(files, manifest).iter().map(|loss| (loss.messages, loss.at_most)).collect()
}

#[test]
fn whole_segments_lack_nothing() {
    let files = [whole(3), whole(4), whole(5), Found::Unused];
    for list in [None, Some(list(4, false, 1..3)), Some(list(4, true, 3..6))] {
        assert_eq!(found(&files, list.as_ref()), []);
    }
}

#[test]
fn the_next_segment_says_how_many_messages_one_had() {
    let files = [whole(1), without_summary(2, 40), whole(3)];
    assert_eq!(found(&files, None), [(60, false)]);
    // The last one may have been left by a kill.
    assert_eq!(found(&files[..2], None), []);
}

#[test]
fn a_segment_that_is_gone_is_counted_by_its_neighbours() {
    let files = [whole(1), whole(3), Found::Unused];
    assert_eq!(found(&files, Some(&list(4, false, 0..0))), [(100, false)]);
    // An incident kept the first one, and the second one was overwritten.
    assert_eq!(found(&files, Some(&list(3, false, 0..0))), []);
    // Nobody can read it.
    let unreadable = [whole(1), Found::Unreadable, whole(3)];
    assert_eq!(found(&unreadable, None), [(100, false)]);
}

#[test]
fn the_list_has_what_no_segment_tells() {
    let files = [whole(2), whole(3)];
    assert_eq!(found(&files, Some(&list(3, true, 1..4))), [(100, false)]);
    assert_eq!(
        found(&[whole(1), without_summary(2, 40)], Some(&list(2, true, 1..3))),
        [(60, false)]
    );
}

#[test]
fn where_nothing_tells_a_loss_is_at_most_what_a_segment_holds() {
    let files = [whole(2), whole(3)];
    let list = list(3, false, 0..0);
    let most = |is_compressed| vec![(segment_messages_max(is_compressed, 1 << 20), true)];
    assert_eq!(found(&files, Some(&list)), most(false));
    assert_eq!(found(&files, Some(&list.with_compression(true))), most(true));
    // The list is gone, too.
    assert_eq!(found(&[whole(2), Found::Unreadable], None), most(true));
    assert!(most(true)[0].0 > most(false)[0].0);
}

#[test]
fn what_a_start_has_reported_is_known() {
    let files = [without_summary(1, 40), whole(2)];
    let lives = [(life(1).identity, listed(100, 60)), (life(2).identity, listed(100, 0))];
    let after = Manifest::new(2, 1 << 20, false, lives.into_iter());
    let known = |list: &Manifest| losses(&files, Some(list)).iter().all(|loss| loss.known);
    assert_eq!((known(&after), known(&list(2, false, 1..3))), (true, false));
}

#[test]
fn a_segment_that_was_prepared_does_not_hide_that_others_are_gone() {
    let blank = |sequence| Found::Life {
        path: format!("segment-{sequence}").into(),
        life: life(sequence),
        times_ns: None,
        evidence: Evidence::default(),
    };
    // It was prepared before the recording ended, and the list has what it overwrote.
    let ended = list(3, true, 2..4);
    assert_eq!(found(&[whole(2), whole(3), blank(4)], Some(&ended)), []);
    assert_eq!(found(&[whole(2), blank(4), Found::Unused], Some(&ended)), [(100, false)]);
    // It overwrote the oldest one since the list was written.
    let begun = list(3, false, 1..4);
    assert_eq!(found(&[whole(2), whole(3), blank(4)], Some(&begun)), []);
    assert_eq!(found(&[whole(2), blank(4), Found::Unused], Some(&begun)), [(100, false)]);
}

#[test]
fn what_a_recording_added_to_a_listed_segment_is_no_known_loss() {
    // 60 when it was listed, 100 later, of which 40 are gone.
    let lives = [(life(1).identity, listed(60, 0))];
    let list = Manifest::new(1, 1 << 20, false, lives.into_iter());
    let Found::Life { path, life, evidence, .. } = without_summary(1, 60) else { unreachable!() };
    let evidence = Evidence { at_least: 100, ..evidence };
    let files = [Found::Life { path, life, times_ns: None, evidence }];
    let losses = losses(&files, Some(&list));
    assert_eq!((losses[0].messages, losses[0].known), (40, false));
}

#[test]
fn a_segment_that_could_not_be_read_when_it_was_listed_counts_again() {
    let list = |unreadable| list(3, true, 1..3).with(unreadable, Vec::new());
    let files = [whole(1), whole(2), Found::Unreadable];
    assert_eq!(found(&files, Some(&list(0))), []);
    let losses = losses(&files, Some(&list(1)));
    assert!(losses[0].at_most && losses[0].known && losses[0].messages > 0);
}

#[test]
fn a_reported_loss_counts_until_newer_lives_would_have_overwritten_it() {
    let gone = Gone { first: 2, last: 2, messages: 100, at_most: false };
    let list = |newest: u64| list(4, true, 3..newest + 1).with(0, vec![gone.clone()]);
    let files = |newest: u64| (3..=newest).map(whole).collect::<Vec<_>>();
    assert_eq!(found(&files(5), Some(&list(5))), [(100, false)]);
    assert!(losses(&files(5), Some(&list(5)))[0].known);
    assert_eq!(found(&files(6), Some(&list(6))), []);
}

#[test]
fn a_gap_next_to_a_reported_one_counts_alone() {
    let gone = Gone { first: 2, last: 2, messages: 100, at_most: false };
    let list = list(5, false, 0..0).with(0, vec![gone]);
    let all = [whole(1), whole(3), whole(4), whole(5), Found::Unused];
    assert_eq!(found(&all, Some(&list)), [(100, false)]);
    // The third one is gone now, too.
    let files = [whole(1), whole(4), whole(5), Found::Unused];
    let losses = losses(&files, Some(&list));
    let said: Vec<_> = losses.iter().map(|loss| (loss.messages, loss.known)).collect();
    assert_eq!(said, [(100, false), (100, true)]);
}

#[test]
fn a_loss_that_a_segment_shows_itself_does_not_count_twice() {
    let gone = Gone { first: 1, last: 2, messages: 110, at_most: false };
    let list = list(4, false, 0..0).with(0, vec![gone]);
    let Found::Life { path, life, evidence, .. } = whole(1) else { unreachable!() };
    let evidence = Evidence { present: 90, ..evidence };
    let damaged = Found::Life { path, life, times_ns: None, evidence };
    let files = [damaged, whole(3), Found::Unused, Found::Unused];
    assert_eq!(found(&files, Some(&list)), [(10, false), (100, false)]);
}

/// The same file outside of the pool.
fn outside(file: &Found) -> Found {
    file.aside().unwrap_or(Found::Unused)
}

/// The same life as a damaged copy that has so many messages, and may have had as many more.
fn damaged_copy(sequence: u64, present: u64, missing_at_most: u64) -> Found {
    let Found::Life { path, life, evidence, .. } = without_summary(sequence, present) else {
        unreachable!()
    };
    let evidence = Evidence { missing_at_most, ..evidence };
    Found::Life { path, life, times_ns: None, evidence }
}

#[test]
fn what_a_file_outside_of_the_pool_has_is_not_lost() {
    let ended = list(2, true, 1..3);
    let damaged = [damaged_copy(1, 40, 900), whole(2)];
    let with = |aside: Found| [&damaged[..], &[outside(&aside)]].concat();
    assert_eq!(found(&damaged, Some(&ended)), [(60, false)]);
    assert_eq!(found(&with(whole(1)), Some(&ended)), []);
    assert_eq!(found(&with(damaged_copy(1, 70, 900)), Some(&ended)), [(30, false)]);
    // Neither the list nor the next segment is there.
    assert_eq!(found(&damaged[..1], None), [(900, true)]);
    // A damaged copy says nothing of a whole segment.
    let copied = [whole(1), outside(&damaged_copy(1, 40, 900))];
    assert_eq!(found(&copied, None), []);
    // The segment itself is gone.
    let gone = [whole(1), whole(3), Found::Unused, outside(&whole(2))];
    assert_eq!(found(&gone, Some(&list(4, false, 0..0))), []);
    assert_eq!(found(&[whole(2), outside(&whole(1))], Some(&ended)), []);
}

#[test]
fn an_older_copy_in_the_pool_hides_no_later_message() {
    let copies = [whole(1), damaged_copy(1, 60, 900)];
    assert_eq!(found(&copies, None), [(860, true)]);
    assert_eq!(found(&[&copies[..], &[whole(2)]].concat(), None), []);
    assert_eq!(found(&copies, Some(&list(2, true, 1..2))), []);
}

#[test]
fn a_segment_that_was_wiped_and_called_unused_is_counted() {
    // Of three segments one was empty. It was used, and then the oldest one.
    let begun = list(3, false, 1..3);
    assert_eq!(found(&[whole(2), whole(3), whole(4)], Some(&begun)), []);
    assert_eq!(found(&[whole(2), Found::Unused, whole(4)], Some(&begun)), [(100, false)]);
    // The empty one was prepared.
    let blank = Found::Life {
        path: "segment-3".into(),
        life: life(3),
        times_ns: None,
        evidence: Evidence::default(),
    };
    assert_eq!(found(&[whole(1), Found::Unused, blank], Some(&begun)), [(100, false)]);
}

#[test]
fn a_new_loss_of_unknown_lives_is_kept_for_the_list() {
    let losses = losses(&[whole(2), Found::Unreadable], None);
    let [Loss { messages, at_most: true, lives: None, known: false, .. }] = losses[..] else {
        unreachable!("{losses:?}")
    };
    let kept = Gone { first: 3, last: 3, messages, at_most: true };
    assert_eq!(gone(&losses, &[life(2).identity], 2), [kept]);
}
