// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at the first bytes of an input, before anything is made for it. `steady record` calls it.
//!
//! Making the pool may take minutes, but a wrong `--framing` is detectable before. Nothing is taken
//! from a pipe: tee() copies its contents.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::bail;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::{pread, read};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};
use steadyio_recorder::mcap::wire::MAGIC as MCAP;
use steadyio_recorder::stream::frames::MAGIC as FRAMES;
use steadyio_recorder::stream::input::Input;

/// The length of the longest magic.
const BYTES: usize = MCAP.len();
/// The wait for the first bytes of a pipe. A producer that starts at the same time needs a moment.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The first bytes of a file, or of a pipe on standard input if they are there; otherwise empty. A
/// FIFO is not opened, because its producer would lose a reader.
fn beginning(input: &Input) -> Vec<u8> {
    match input {
        Input::Path(path) if path.is_file() => {
            let mut bytes = Vec::new();
            let read =
                File::open(path).and_then(|file| file.take(BYTES as u64).read_to_end(&mut bytes));
            if read.is_ok() { bytes } else { Vec::new() }
        }
        Input::Stdin => of_stdin(rustix::stdio::stdin()).unwrap_or_default(),
        Input::Path(_) | Input::Socket(_) => Vec::new(),
    }
}

fn of_stdin(stdin: BorrowedFd<'_>) -> rustix::io::Result<Vec<u8>> {
    let mut bytes = [0; BYTES];
    let count = match FileType::from_raw_mode(fstat(stdin)?.st_mode) {
        FileType::RegularFile => pread(stdin, &mut bytes, seek(stdin, SeekFrom::Current(0))?)?,
        FileType::Fifo => {
            poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&PATIENCE))?;
            let (from, to) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            tee(stdin, to.as_fd(), BYTES, SpliceFlags::NONBLOCK)?;
            read(&from, &mut bytes)?
        }
        _ => 0,
    };
    Ok(bytes[..count].to_vec())
}

/// Checks whether the input may have this framing.
pub fn check(input: &Input, framing: &str) -> anyhow::Result<()> {
    let beginning = beginning(input);
    let is = |magic: &[u8]| beginning.starts_with(magic);
    // There may be fewer bytes than a magic has.
    let may_be = |magic: &[u8]| {
        let count = beginning.len().min(magic.len());
        beginning[..count] == magic[..count]
    };
    match framing {
        "lines" if is(&MCAP) => bail!("--framing lines: the input is MCAP (give --framing mcap)"),
        "lines" if is(&FRAMES) => {
            bail!("--framing lines: the input is a stream of frames (give --framing frames)")
        }
        "frames" if is(&MCAP) => bail!("--framing frames: the input is MCAP (give --framing mcap)"),
        "frames" if !may_be(&FRAMES) => bail!(
            "--framing frames: not a stream of frames, it begins with {beginning:02x?} (give --framing \
             lines, or see docs/spec/record-framing-1.md)"
        ),
        "mcap" if is(&FRAMES) => {
            bail!("--framing mcap: the input is a stream of frames (give --framing frames)")
        }
        "mcap" if !may_be(&MCAP) => bail!(
            "--framing mcap: not MCAP, it begins with {beginning:02x?} (convert it, for example with \
             'mcap convert')"
        ),
        _ => Ok(()),
    }
}
