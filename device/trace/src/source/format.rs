// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the kernel's descriptions of its records: `events/SYSTEM/NAME/format` and
//! `events/header_page`.
//!
//! `decode` and `ring` use the result. The crate `tracepoint_decode` 0.5 would replace 70 lines
//! with 10,000. It reads all 2,323 formats of Linux 6.18, but takes `ID: 70000x` for 70000, and
//! silently omits a field without a size. A damaged `--keep` folder would be misread, not rejected.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The value of `common_type` in records of this event.
    pub id: u16,
    /// The fields in the order of the file; common fields come first.
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, without type and array length.
    pub name: String,
    /// The offset from the beginning of the record, in bytes.
    pub offset: usize,
    /// The size in bytes; for an array, of the whole array.
    pub size: usize,
    pub signed: bool,
    /// Set if the value lies elsewhere in the record. The field is then a u32: its low half is the
    /// distance from this offset, its high half the length.
    pub elsewhere_from: Option<usize>,
}

impl Format {
    /// Parses the text of a `format`. The error names the fault.
    pub fn parse(text: &str) -> Result<Format, String> {
        let header = text.lines().take_while(|line| !line.starts_with("print fmt:"));
        let id = header.clone().find_map(|line| Some(line.strip_prefix("ID:")?.trim()));
        let id = id.ok_or("no line \"ID:\"")?;
        let id = id.parse().map_err(|_| format!("ID {id:?} is not a u16"))?;
        Ok(Format { id, fields: fields(header)? })
    }
}

/// The fields of all lines that begin with `field:`.
fn fields<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Field>, String> {
    let lines = lines.map(str::trim).filter(|line| line.starts_with("field:"));
    let expected = |line| format!("{line:?} is not `field:TYPE NAME; offset:…; size:…;`");
    let fields = lines.map(|line| field(line).ok_or_else(|| expected(line)));
    let fields: Vec<Field> = fields.collect::<Result<_, _>>()?;
    if fields.is_empty() { Err("no line \"field:\"".into()) } else { Ok(fields) }
}

/// Parses a C declaration such as `char rwbs[10]`, `__data_loc char[] cmd` or `void * ctx`, and the
/// place of its value. Newer kernels may append more.
fn field(line: &str) -> Option<Field> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?;
    let mut number = |name: &str| parts.next()?.strip_prefix(name)?.parse::<u16>().ok();
    let (offset, size) = (usize::from(number("offset:")?), usize::from(number("size:")?));
    let signed = number("signed:").is_some_and(|signed| signed != 0);
    let elsewhere_from = match declared.split(' ').next() {
        Some("__rel_loc") => Some(offset + size),
        Some("__data_loc") => Some(0),
        _ => None,
    };
    let name = declared
        .strip_suffix(']')
        .map_or(Some(declared), |array| Some(array.rsplit_once('[')?.0))?;
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let name = name.rsplit(|letter| !is_word(letter)).next().filter(|name| !name.is_empty())?;
    let is_whole = line.matches(';').count() >= 3 && (elsewhere_from.is_none() || size == 4);
    is_whole.then(|| Field { name: name.to_owned(), offset, size, signed, elsewhere_from })
}

/// The layout of a page of the ring buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFormat {
    /// The size of the commit word, which holds the length of the data and flags: 4 or 8 bytes.
    pub commit_size: usize,
    /// The offset of the data. The time is in the first 8 bytes, followed by the commit word.
    pub data_offset: usize,
    /// The size of the whole page, in bytes.
    pub page_size: usize,
}

impl PageFormat {
    /// Parses the text of `events/header_page`. The error names the fault.
    pub fn parse(text: &str) -> Result<PageFormat, String> {
        let fields = fields(text.lines())?;
        let find = |name: &str| fields.iter().find(|field| field.name == name);
        let known = || {
            let (time, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
            let known = (time.offset, time.size, commit.offset) == (0, 8, 8)
                && matches!(commit.size, 4 | 8)
                && data.offset >= commit.offset + commit.size
                && data.size > 0;
            let (commit_size, data_offset) = (commit.size, data.offset);
            let page_size = data.offset + data.size;
            known.then_some(PageFormat { commit_size, data_offset, page_size })
        };
        known().ok_or("not the layout of a page that Linux has had since 2.6.30".into())
    }
}
