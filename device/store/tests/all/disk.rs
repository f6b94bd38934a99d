// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk in memory with a volatile cache. It logs all writes and flushes, so that a test can
//! compute its contents after a power cut at any moment.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use steadyio_core::random::{below, draw};
use steadyio_store::storage::{BLOCK_BYTES, Commands, Limits, Storage};

const SECTOR: usize = 512;

/// Which flush the disk ignores, to prove that tests notice; counted from when a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    Nothing,
    /// The first: before anything is written.
    First,
    /// Those between contents and record.
    BeforeRecord,
    /// Those behind a record.
    AfterRecord,
}

#[derive(Debug, Clone)]
enum Op {
    Write {
        at: usize,
        bytes: Vec<u8>,
    },
    /// Honoured or not.
    Flush(bool),
}

#[derive(Debug)]
struct State {
    /// Before the log.
    base: Vec<u8>,
    /// What a read finds.
    now: Vec<u8>,
    log: Vec<Op>,
    commands: Commands,
    command_bytes: u64,
    skip: Skip,
    flushes: u64,
    /// Writes and flushes until the program is killed.
    left: Option<u64>,
}

/// Clones are the same disk.
#[derive(Debug, Clone)]
pub struct Disk(Rc<RefCell<State>>);

impl Disk {
    pub fn new(base: Vec<u8>) -> Disk {
        Disk(Rc::new(RefCell::new(State {
            now: base.clone(),
            base,
            log: Vec::new(),
            commands: Commands::default(),
            command_bytes: 16 << 10,
            skip: Skip::Nothing,
            flushes: 0,
            left: None,
        })))
    }

    pub fn blocks(blocks: usize) -> Disk {
        Disk::new(vec![0; blocks * BLOCK_BYTES as usize])
    }

    pub fn skipping(self, skip: Skip) -> Disk {
        self.0.borrow_mut().skip = skip;
        self
    }

    /// A new program opens it.
    pub fn reopened(&self) -> Disk {
        let mut state = self.0.borrow_mut();
        (state.flushes, state.left) = (0, None);
        drop(state);
        self.clone()
    }

    /// The program is killed after so many more writes and flushes: later ones fail.
    pub fn kill_after(&self, operations: u64) {
        self.0.borrow_mut().left = Some(operations);
    }

    /// The number of operations so far: a moment for [`Disk::cut`].
    pub fn moment(&self) -> usize {
        self.0.borrow().log.len()
    }

    /// The first moment after `from` at which a flush, honoured or not, had returned.
    pub fn flushed_after(&self, from: usize) -> Option<usize> {
        let state = self.0.borrow();
        let flush = |op: &Op| matches!(op, Op::Flush(_));
        state.log[from..].iter().position(flush).map(|found| from + found + 1)
    }

    pub fn contents(&self) -> Vec<u8> {
        self.0.borrow().now.clone()
    }

    /// What it holds if power fails at a moment. Of the writes since the last flush some arrive, in
    /// any order, some not, and some in part, sector by sector.
    pub fn cut(&self, moment: usize, seed: u64) -> Vec<u8> {
        let state = self.0.borrow();
        let (mut image, mut cached) = (state.base.clone(), Vec::new());
        for op in &state.log[..moment] {
            match op {
                Op::Write { at, bytes } => cached.push((*at, bytes)),
                Op::Flush(true) => {
                    cached.drain(..).for_each(|(at, bytes)| store(&mut image, at, bytes));
                }
                Op::Flush(false) => {}
            }
        }
        survive(&mut image, cached, seed);
        image
    }
}

fn store(image: &mut [u8], at: usize, bytes: &[u8]) {
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

fn survive(image: &mut [u8], mut cached: Vec<(usize, &Vec<u8>)>, seed: u64) {
    let mut draws = 0..;
    let mut chance =
        |bound: usize| below(draw(seed, draws.next().unwrap_or(0)), bound as u64) as usize;
    match seed % 5 {
        0 => return,
        1 => return cached.iter().for_each(|(at, bytes)| store(image, *at, bytes)),
        2 => return cached.iter().rev().take(1).for_each(|(at, bytes)| store(image, *at, bytes)),
        _ => {}
    }
    for last in (1..cached.len()).rev() {
        cached.swap(last, chance(last + 1));
    }
    for (at, bytes) in cached {
        let sectors = bytes.len() / SECTOR;
        let edge = chance(sectors + 1);
        let how = chance(5);
        for sector in 0..sectors {
            let arrives = match how {
                0 => false,
                1 => true,
                2 => sector < edge,
                3 => sector >= edge,
                _ => chance(2) == 0,
            };
            if arrives {
                let from = sector * SECTOR;
                store(image, at + from, &bytes[from..from + SECTOR]);
            }
        }
    }
}

impl State {
    fn may_go_on(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn check_aligned(address: *const u8, bytes: usize, offset: u64) {
    let block = BLOCK_BYTES as usize;
    assert_eq!((address as usize % block, bytes % block, offset % BLOCK_BYTES), (0, 0, 0));
}

impl Storage for Disk {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        check_aligned(buffer.as_ptr(), buffer.len(), offset);
        let mut state = self.0.borrow_mut();
        state.commands.reads += (buffer.len() as u64).div_ceil(state.command_bytes);
        let found = state.now.get(offset as usize..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        check_aligned(bytes.as_ptr(), bytes.len(), offset);
        let mut state = self.0.borrow_mut();
        state.may_go_on()?;
        state.commands.writes += (bytes.len() as u64).div_ceil(state.command_bytes);
        let at = offset as usize;
        store(&mut state.now, at, bytes);
        state.log.push(Op::Write { at, bytes: bytes.to_vec() });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.may_go_on()?;
        state.commands.flushes += 1;
        let ignored = match state.skip {
            Skip::Nothing => false,
            Skip::First => state.flushes == 0,
            Skip::BeforeRecord => state.flushes % 2 == 1,
            Skip::AfterRecord => state.flushes % 2 == 0 && state.flushes > 0,
        };
        state.flushes += 1;
        state.log.push(Op::Flush(!ignored));
        Ok(())
    }

    fn limits(&self) -> Limits {
        let state = self.0.borrow();
        Limits {
            size_bytes: state.now.len() as u64,
            block_bytes: 512,
            command_bytes: state.command_bytes,
            erase_bytes: 0,
        }
    }

    fn commands(&self) -> Commands {
        self.0.borrow().commands
    }
}
