// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the values of an event's line by a pattern that says how the kernel prints it.
//!
//! A pattern is text that must stand there, with fields between, each as `{name:kind}`; without a name it is read and
//! dropped. Kinds: `d` decimal, `s` the same with a sign, `x` hexadecimal with or without `0x`, `a` an address, `D`
//! and `C` a device as `8,0` and `8:0`, `r` the letters of an operation, `p` an I/O priority and a space, or nothing,
//! `S` a thread's state, `w` a word, `t` any text, `n` a name, which may hold anything, also what stands behind it:
//! the longest one with which the line fits. `{*}` is anything. All of the line must fit.

use super::scan::{Parsed, Scan, Wrong};
use crate::event::Dev;
use crate::source::fields::Value;

/// A pattern whose fields have places.
#[derive(Debug)]
pub struct Pattern(Vec<Token>);

#[derive(Debug)]
enum Token {
    Text(&'static str),
    Field {
        kind: Kind,
        /// For errors.
        name: &'static str,
        slots: Vec<usize>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Decimal,
    Signed,
    Hex,
    Address,
    Device(&'static str),
    Letters,
    Priority,
    State,
    Word,
    /// As little as possible.
    Text,
    /// As much as possible.
    Name,
}

impl Pattern {
    /// Of a field called `name`, `slots_of` tells where its value goes.
    pub fn new(pattern: &'static str, slots_of: impl Fn(&str) -> Vec<usize>) -> Pattern {
        let mut tokens = Vec::new();
        let mut rest = pattern;
        while let Some((text, behind)) = rest.split_once('{') {
            if !text.is_empty() {
                tokens.push(Token::Text(text));
            }
            let (field, behind) = behind.split_once('}').unwrap_or((behind, ""));
            let (name, kind) = field.split_once(':').unwrap_or(("", "t"));
            tokens.push(Token::Field { kind: Kind::of(kind), name, slots: slots_of(name) });
            rest = behind;
        }
        if !rest.is_empty() {
            tokens.push(Token::Text(rest));
        }
        Pattern(tokens)
    }

    /// Puts the values of a line where they belong; what did not fit, as far as the line did.
    pub fn read<'a>(&self, line: Scan<'a>, values: &mut [Option<Value<'a>>]) -> Parsed<'a, ()> {
        let mut wrong = None;
        match fit(&self.0, line, values, &mut wrong) {
            true => Ok(()),
            false => wrong.map_or_else(|| line.wrong("an event"), Err),
        }
    }
}

impl Kind {
    fn of(letter: &str) -> Kind {
        match letter {
            "d" => Kind::Decimal,
            "s" => Kind::Signed,
            "x" => Kind::Hex,
            "a" => Kind::Address,
            "D" => Kind::Device(","),
            "C" => Kind::Device(":"),
            "r" => Kind::Letters,
            "p" => Kind::Priority,
            "S" => Kind::State,
            "w" => Kind::Word,
            "n" => Kind::Name,
            _ => Kind::Text,
        }
    }

    fn expected(self, name: &'static str) -> &'static str {
        match (self, name) {
            (_, "") => "a value",
            (Kind::Letters, _) => "an operation in capital letters",
            (Kind::Priority, _) => "a priority class, a hint and a level",
            _ => name,
        }
    }
}

/// Whether `tokens` fit all of `line`. Of all tries, the one that went furthest is kept in `wrong`.
fn fit<'a>(
    tokens: &[Token],
    mut line: Scan<'a>,
    values: &mut [Option<Value<'a>>],
    wrong: &mut Option<Wrong<'a>>,
) -> bool {
    for (index, token) in tokens.iter().enumerate() {
        let read = match token {
            Token::Text(text) => line.literal(text),
            Token::Field { kind: kind @ (Kind::Text | Kind::Name), slots, .. } => {
                return fit_text(*kind, slots, &tokens[index + 1..], line, values, wrong);
            }
            Token::Field { kind, name, slots } => {
                value(*kind, kind.expected(name), &mut line).map(|value| {
                    slots.iter().for_each(|slot| values[*slot] = value);
                })
            }
        };
        if let Err(found) = read {
            note(wrong, found);
            return false;
        }
    }
    line.end().map_err(|found| note(wrong, found)).is_ok()
}

fn note<'a>(wrong: &mut Option<Wrong<'a>>, found: Wrong<'a>) {
    // What was found is the rest of the line: shorter is further.
    if wrong.is_none_or(|before| found.rest_length() < before.rest_length()) {
        *wrong = Some(found);
    }
}

/// A text that ends where the next token's does, at the first or the last place at which the rest fits.
fn fit_text<'a>(
    kind: Kind,
    slots: &[usize],
    behind: &[Token],
    line: Scan<'a>,
    values: &mut [Option<Value<'a>>],
    wrong: &mut Option<Wrong<'a>>,
) -> bool {
    let rest = line.rest();
    let Some(Token::Text(end)) = behind.first() else {
        slots.iter().for_each(|slot| values[*slot] = Some(Value::Bytes(rest)));
        return behind.is_empty();
    };
    let ends = rest.windows(end.len()).enumerate().filter(|(_, found)| *found == end.as_bytes());
    let mut try_end = |(length, _): (usize, &[u8])| {
        let fits = fit(behind, Scan::new(&rest[length..]), values, wrong);
        if fits {
            slots.iter().for_each(|slot| values[*slot] = Some(Value::Bytes(&rest[..length])));
        }
        fits
    };
    let found = match kind {
        Kind::Name => ends.rev().any(&mut try_end),
        _ => ends.into_iter().any(&mut try_end),
    };
    if !found && wrong.is_none() {
        *wrong = line.lacks::<()>(end).err();
    }
    found
}

/// One value that says itself where it ends; `None` if it is not there and need not be.
fn value<'a>(
    kind: Kind,
    expected: &'static str,
    line: &mut Scan<'a>,
) -> Parsed<'a, Option<Value<'a>>> {
    let value = match kind {
        Kind::Decimal => Value::of_u64(line.decimal(expected)?),
        Kind::Signed => Value::Int(line.signed(expected)?),
        Kind::Hex => Value::of_u64(line.hex(expected)?),
        Kind::Address if line.passes("(nil)") || line.passes("(null)") => Value::Int(0),
        Kind::Address => Value::of_u64(line.hex(expected)?),
        Kind::Device(separator) => Value::of_u64(device(line, separator)?.to_kernel().into()),
        Kind::Letters => Value::Bytes(letters(line, expected)?),
        Kind::Priority => return priority(line, expected),
        Kind::State => Value::Int(i64::from(!matches!(line.word(expected)?, b"R" | b"R+"))),
        Kind::Word => Value::Bytes(line.word(expected)?),
        Kind::Text | Kind::Name => return Ok(None),
    };
    Ok(Some(value))
}

fn device<'a>(line: &mut Scan<'a>, separator: &'static str) -> Parsed<'a, Dev> {
    let before = *line;
    let major: u32 = line.decimal("a device, as major and minor number")?;
    line.literal(separator)?;
    let dev = Dev { major, minor: line.decimal("a minor number")? };
    if Dev::from_kernel(dev.to_kernel()) != dev {
        return before.wrong("a device, as major and minor number");
    }
    Ok(dev)
}

fn letters<'a>(line: &mut Scan<'a>, expected: &'static str) -> Parsed<'a, &'a [u8]> {
    let before = *line;
    let letters = line.word(expected)?;
    if letters.iter().all(u8::is_ascii_uppercase) { Ok(letters) } else { before.wrong(expected) }
}

/// `be,0,4 `: class, hint and level; perf cannot name the class and prints `0x2,0,4`. A class that the kernel
/// itself calls invalid is none that is known.
fn priority<'a>(line: &mut Scan<'a>, expected: &'static str) -> Parsed<'a, Option<Value<'a>>> {
    if line.rest().first() == Some(&b'[') {
        return Ok(None);
    }
    let before = *line;
    let class = match line.until(b',', expected)? {
        b"none" | b"0x0" => 0,
        b"rt" | b"0x1" => 1,
        b"be" | b"0x2" => 2,
        b"idle" | b"0x3" => 3,
        b"invalid" | [b'0', b'x', b'4'..=b'7'] => 7,
        _ => return before.wrong(expected),
    };
    line.decimal::<u16>(expected)?;
    line.literal(",")?;
    let level: u8 = line.decimal(expected)?;
    line.literal(" ")?;
    if level > 7 {
        before.wrong(expected)
    } else {
        Ok(Some(Value::Int(class << 13 | i64::from(level))))
    }
}
