// SPDX-License-Identifier: MIT OR Apache-2.0
//! The longest time that several commands can take together. `analysis` calls it.

use crate::Work;

/// The commands without those that exceed another one in no way, as these take no longer.
pub fn not_within<'a>(commands: impl Iterator<Item = &'a Work>) -> Vec<Work> {
    let mut kept: Vec<Work> = Vec::new();
    for command in commands {
        if !kept.iter().any(|other| command.is_within(other)) {
            kept.retain(|other| !other.is_within(command));
            kept.push(*command);
        }
    }
    kept
}

/// Commands by each property of their work, the highest first: time, KiB written, and so on. A
/// window asks for few of them, and many windows ask.
pub struct Ranked([Vec<(u64, usize)>; 4]);

const PROPERTIES: [fn(&Work) -> u64; 4] =
    [|work| work.ns, |work| work.written_kib, |work| work.cached_kib, |work| work.cached_writes];

impl Ranked {
    pub fn of(commands: &[Work]) -> Ranked {
        Ranked(PROPERTIES.map(|property| {
            let values = commands.iter().map(property).zip(0..);
            let mut ranked: Vec<(u64, usize)> = values.filter(|(value, _)| *value > 0).collect();
            ranked.sort_unstable_by(|a, b| b.cmp(a));
            ranked
        }))
    }

    /// The times, and the places of their commands in the list.
    pub fn by_time(&self) -> &[(u64, usize)] {
        &self.0[0]
    }

    /// The highest value, per property, that `places` commands can have. `count`: the number of
    /// copies of the command at a place in the list.
    pub fn most(&self, places: u64, count: impl Fn(usize) -> u64) -> Work {
        let [ns, written_kib, cached_kib, cached_writes] = self.0.each_ref().map(|ranked| {
            let (mut left, mut sum) = (places, 0_u64);
            for (value, at) in ranked {
                if left == 0 {
                    break;
                }
                let taken = count(*at).min(left);
                left -= taken;
                sum = sum.saturating_add(value.saturating_mul(taken));
            }
            sum
        });
        Work { ns, written_kib, cached_kib, cached_writes, flushes: 0 }
    }
}

/// The same, of commands that each have a number of copies.
pub fn most_of<'a>(commands: impl Iterator<Item = (&'a Work, u64)>, places: u64) -> Work {
    let (commands, counts): (Vec<Work>, Vec<u64>) =
        commands.map(|(command, count)| (*command, count)).unzip();
    Ranked::of(&commands).most(places, |at| counts[at])
}

/// The longest time of forced pieces, each followed by a jump. Each starts at least `wait_ns` after
/// the end of the previous one, and the last one starts in the window. So all except the last take
/// at most the window minus these waits.
pub fn forced_ns(window_ns: u64, wait_ns: u64, piece_ns: u64, jump_ns: u64) -> u64 {
    let pieces_max = window_ns / wait_ns + 1;
    let of = |pieces: u64| {
        let rest_ns = window_ns - (pieces - 1) * wait_ns;
        let all_ns = pieces.saturating_mul(piece_ns).min(piece_ns.saturating_add(rest_ns));
        all_ns.saturating_add(pieces.saturating_mul(jump_ns))
    };
    // The time grows up to the number that fit at full length. More of them are shorter, but jump.
    let longest = window_ns / wait_ns.saturating_add(piece_ns) + 1;
    let counts = [longest, longest + 1, pieces_max].map(|pieces| of(pieces.min(pieces_max)));
    counts.into_iter().fold(0, u64::max)
}

#[cfg(test)]
mod tests {
    use super::forced_ns;

    /// The longest time of any number of pieces, each as long as the window allows, found by trying
    /// all lengths.
    fn tried(window: u64, wait: u64, piece: u64, jump: u64) -> u64 {
        let after = |length: u64| match window.checked_sub(length + wait) {
            Some(left) => length + tried(left, wait, piece, jump),
            None => length,
        };
        jump + (0..=piece).map(after).fold(0, u64::max)
    }

    #[test]
    fn no_sequence_of_forced_pieces_takes_longer() {
        for window in 0..13 {
            for (wait, piece, jump) in [(1, 0, 0), (1, 3, 2), (2, 1, 0), (3, 2, 1), (4, 5, 7)] {
                let bound = forced_ns(window, wait, piece, jump);
                assert_eq!(
                    bound,
                    tried(window, wait, piece, jump),
                    "{window} {wait} {piece} {jump}"
                );
            }
        }
    }
}
