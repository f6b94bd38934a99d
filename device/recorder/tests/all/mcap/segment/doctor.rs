// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every rule of the MCAP specification that a file with chunks and a summary can break, with the
//! official crate as the parser of records. (Its Go tool with a `doctor` cannot be had as a
//! package.)

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use mcap::records::{ChunkIndex, Record, op};

/// A record as it lies in the file.
struct Lying<'a> {
    at: usize,
    bytes: usize,
    opcode: u8,
    record: Record<'a>,
}

fn records(image: &[u8], mut at: usize, end: usize) -> Vec<Lying<'_>> {
    let mut found = Vec::new();
    while at < end {
        let opcode = image[at];
        assert_ne!(opcode, 0, "opcode 0 at {at}");
        let length = u64::from_le_bytes(image[at + 1..at + 9].try_into().unwrap()) as usize;
        assert!(at + 9 + length <= end, "record {opcode:#x} at {at} of {length} bytes");
        let record = mcap::parse_record(opcode, &image[at + 9..at + 9 + length]).unwrap();
        found.push(Lying { at, bytes: 9 + length, opcode, record });
        at += 9 + length;
    }
    assert_eq!(at, end);
    found
}

/// Panics at the first error.
pub fn examine(image: &[u8]) {
    let end = image.len() - mcap::MAGIC.len();
    assert!(image.starts_with(mcap::MAGIC) && image[end..] == *mcap::MAGIC, "magic");
    let all = records(image, mcap::MAGIC.len(), end);
    assert_eq!((all[0].opcode, all.last().unwrap().opcode), (op::HEADER, op::FOOTER));
    let data_end = all.iter().position(|lying| lying.opcode == op::DATA_END).expect("a data end");
    let (data, summary) = (&all[..data_end], &all[data_end + 1..all.len() - 1]);
    let (chunk_indexes, messages) = check_data(data);
    check_definitions(data, summary);
    check_groups(summary);
    check_summary(data, summary, &chunk_indexes, &messages);
    check_footer(image, &all, data_end);
}

/// The chunk indexes that the data should have, and the log times of the messages per channel.
fn check_data(data: &[Lying<'_>]) -> (Vec<ChunkIndex>, BTreeMap<u16, Vec<u64>>) {
    let (mut indexes, mut messages) = (Vec::new(), BTreeMap::<u16, Vec<u64>>::new());
    let mut channels = BTreeSet::new();
    for (number, lying) in data.iter().enumerate() {
        assert!(number == 0 || lying.opcode != op::HEADER, "one header");
        match &lying.record {
            Record::Channel(channel) => drop(channels.insert(channel.id)),
            Record::Message { .. } => panic!("a message outside of chunks"),
            Record::Chunk { header, data: content } => {
                let entries = check_chunk(header, content, &channels);
                let behind = data[number + 1..].iter();
                let behind: Vec<_> =
                    behind.take_while(|next| next.opcode == op::MESSAGE_INDEX).collect();
                let mut index = ChunkIndex {
                    message_start_time: header.message_start_time,
                    message_end_time: header.message_end_time,
                    chunk_start_offset: lying.at as u64,
                    chunk_length: lying.bytes as u64,
                    message_index_offsets: BTreeMap::new(),
                    message_index_length: behind.iter().map(|next| next.bytes as u64).sum(),
                    compression: header.compression.clone(),
                    compressed_size: header.compressed_size,
                    uncompressed_size: header.uncompressed_size,
                };
                for next in behind {
                    let Record::MessageIndex(found) = &next.record else { unreachable!() };
                    index.message_index_offsets.insert(found.channel_id, next.at as u64);
                    let found_entries: Vec<_> =
                        found.records.iter().map(|entry| (entry.log_time, entry.offset)).collect();
                    assert_eq!(found_entries, entries[&found.channel_id], "message index");
                }
                let indexed = index.message_index_offsets.keys();
                assert!(indexed.eq(entries.keys()), "one message index per channel");
                indexes.push(index);
                for (id, entries) in entries {
                    messages.entry(id).or_default().extend(entries.iter().map(|(time, _)| time));
                }
            }
            _ => {}
        }
    }
    (indexes, messages)
}

fn check_chunk(
    header: &mcap::records::ChunkHeader,
    content: &[u8],
    channels: &BTreeSet<u16>,
) -> BTreeMap<u16, Vec<(u64, u64)>> {
    let mut plain = Vec::new();
    let read = match header.compression.as_str() {
        "zstd" => zstd::Decoder::new(content).unwrap().read_to_end(&mut plain),
        "lz4" => lz4::Decoder::new(content).unwrap().read_to_end(&mut plain),
        _ => content.take(u64::MAX).read_to_end(&mut plain),
    };
    assert_eq!(read.unwrap() as u64, header.uncompressed_size, "size of a chunk");
    assert_eq!(header.uncompressed_crc, crc32fast::hash(&plain), "chunk CRC");
    let mut entries = BTreeMap::<u16, Vec<(u64, u64)>>::new();
    for lying in records(&plain, 0, plain.len()) {
        let Record::Message { header, .. } = lying.record else { panic!("no message") };
        assert!(channels.contains(&header.channel_id), "channel defined earlier");
        entries.entry(header.channel_id).or_default().push((header.log_time, lying.at as u64));
    }
    let times = || entries.values().flatten().map(|(time, _)| *time);
    assert_eq!(header.message_start_time, times().min().unwrap_or(0));
    assert_eq!(header.message_end_time, times().max().unwrap_or(0));
    entries
}

fn check_definitions(data: &[Lying<'_>], summary: &[Lying<'_>]) {
    let definitions = |records: &[Lying<'_>]| -> BTreeSet<String> {
        let wanted = records.iter().filter(|l| [op::SCHEMA, op::CHANNEL].contains(&l.opcode));
        wanted.map(|lying| format!("{:?}", lying.record)).collect()
    };
    // Only those of the data may stand there twice.
    let count = summary.iter().filter(|l| [op::SCHEMA, op::CHANNEL].contains(&l.opcode)).count();
    assert_eq!(definitions(summary).len(), count, "each definition once");
    assert_eq!(definitions(data), definitions(summary), "the summary repeats all definitions");
}

/// Records of one opcode lie together, and the summary offsets say where.
fn check_groups(summary: &[Lying<'_>]) {
    let mut groups: Vec<(u8, usize, usize)> = Vec::new();
    for lying in summary.iter().filter(|lying| lying.opcode != op::SUMMARY_OFFSET) {
        match groups.last_mut() {
            Some(group) if group.0 == lying.opcode => group.2 += lying.bytes,
            _ => groups.push((lying.opcode, lying.at, lying.bytes)),
        }
    }
    let opcodes: BTreeSet<u8> = groups.iter().map(|group| group.0).collect();
    assert_eq!(opcodes.len(), groups.len(), "grouped by opcode");
    let offsets: Vec<_> = summary
        .iter()
        .filter_map(|lying| match &lying.record {
            Record::SummaryOffset(o) => {
                Some((o.group_opcode, o.group_start as usize, o.group_length as usize))
            }
            _ => None,
        })
        .collect();
    assert_eq!(offsets, groups);
}

fn check_summary(
    data: &[Lying<'_>],
    summary: &[Lying<'_>],
    chunk_indexes: &[ChunkIndex],
    messages: &BTreeMap<u16, Vec<u64>>,
) {
    let mut found_indexes = Vec::new();
    let mut metadata = data.iter().filter(|lying| lying.opcode == op::METADATA);
    for lying in summary {
        match &lying.record {
            Record::ChunkIndex(index) => found_indexes.push(index.clone()),
            Record::MetadataIndex(index) => {
                let next = metadata.next().expect("as many metadata records");
                assert_eq!((index.offset, index.length), (next.at as u64, next.bytes as u64));
                let Record::Metadata(record) = &next.record else { unreachable!() };
                assert_eq!(record.name, index.name);
            }
            Record::Statistics(statistics) => {
                let times = || messages.values().flatten().copied();
                assert_eq!(statistics.message_count, times().count() as u64);
                assert_eq!(statistics.message_start_time, times().min().unwrap_or(0));
                assert_eq!(statistics.message_end_time, times().max().unwrap_or(0));
                assert_eq!(statistics.chunk_count as usize, chunk_indexes.len());
                for (id, count) in &statistics.channel_message_counts {
                    assert_eq!(*count, messages.get(id).map_or(0, Vec::len) as u64);
                }
            }
            _ => {}
        }
    }
    assert!(metadata.next().is_none(), "all metadata is indexed");
    assert_eq!(found_indexes, chunk_indexes);
}

fn check_footer(image: &[u8], all: &[Lying<'_>], data_end: usize) {
    let footer = all.last().unwrap();
    let Record::Footer(found) = &footer.record else { unreachable!() };
    let offsets = all.iter().find(|lying| lying.opcode == op::SUMMARY_OFFSET).expect("offsets");
    assert_eq!(found.summary_start, all[data_end + 1].at as u64);
    assert_eq!(found.summary_offset_start, offsets.at as u64);
    let summed = &image[found.summary_start as usize..footer.at + 9 + 16];
    assert_eq!(found.summary_crc, crc32fast::hash(summed), "summary CRC");
}
