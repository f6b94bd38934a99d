// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel says about the layout of its records: `events/SYSTEM/NAME/format` and `events/header_page`.
//!
//! Not the crate `tracepoint_decode` 0.5: it reads all 2,323 formats of Linux 6.18, but takes `ID: 70000x` for 70000 and
//! leaves out a field without a size in silence, so a damaged `--keep` folder would be misread, not refused; and it would
//! replace 90 lines with 10,000.

/// The layout of one event's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The event's name, without its system.
    pub name: String,
    /// What its records carry as `common_type`.
    pub id: u16,
    /// In the order of the file, common ones first.
    pub fields: Vec<Field>,
}

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Without type and array length.
    pub name: String,
    /// In bytes from the record's first.
    pub offset: usize,
    /// In bytes; of an array, all of it.
    pub size: usize,
    /// Whether an integer is signed.
    pub signed: bool,
    /// Where its bytes are.
    pub held: DataLocation,
}

/// Where the bytes of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataLocation {
    /// At its offset.
    Here,
    /// Elsewhere: the low half of a u32 at its offset is their offset in the record, the high half their length
    /// (`__data_loc`).
    Elsewhere,
    /// As before, but the offset counts from the end of this field (`__rel_loc`).
    ElsewhereAfter,
}

/// A format file does not say what it has to say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct FormatError {
    /// The first is 1; the line behind the last if something is not there at all.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

impl Format {
    /// Reads the text of a `format` file.
    pub fn parse(text: &str) -> Result<Format, FormatError> {
        let (mut name, mut id, mut fields) = (None, None, Vec::new());
        let mut line_number = 0;
        for line in text.lines() {
            line_number += 1;
            let fail = |what: String| FormatError { line: line_number, what };
            if let Some(value) = line.strip_prefix("name:") {
                name = Some(value.trim().to_string());
            } else if let Some(value) = line.strip_prefix("ID:") {
                let value = value.trim();
                id = Some(value.parse().map_err(|_| fail(format!("ID {value:?} is not a u16")))?);
            } else if let Some(declared) = line.trim_start().strip_prefix("field:") {
                fields.push(Field::parse(declared).map_err(fail)?);
            } else if line.starts_with("print fmt:") {
                break;
            }
        }
        let absent =
            |key: &str| FormatError { line: line_number + 1, what: format!("no line {key:?}") };
        let name = name.ok_or_else(|| absent("name:"))?;
        let id = id.ok_or_else(|| absent("ID:"))?;
        if fields.is_empty() {
            return Err(absent("field:"));
        }
        Ok(Format { name, id, fields })
    }

    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// What stands behind `field:`: a C declaration, then `offset`, `size` and `signed`, each after a semicolon.
    fn parse(declared: &str) -> Result<Field, String> {
        let mut parts = declared.split(';').map(str::trim);
        let declaration = parts.next().unwrap_or_default();
        let mut field = Field {
            name: declared_name(declaration)?,
            offset: usize::MAX,
            size: usize::MAX,
            signed: false,
            held: DataLocation::Here,
        };
        if declaration.starts_with("__data_loc ") {
            field.held = DataLocation::Elsewhere;
        } else if declaration.starts_with("__rel_loc ") {
            field.held = DataLocation::ElsewhereAfter;
        }
        for part in parts.filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once(':').unwrap_or((part, ""));
            let number: u16 =
                value.parse().map_err(|_| format!("{part:?} of field {:?}", field.name))?;
            match key {
                "offset" => field.offset = number.into(),
                "size" => field.size = number.into(),
                "signed" => field.signed = number != 0,
                // Newer kernels may say more.
                _ => {}
            }
        }
        if field.offset == usize::MAX || field.size == usize::MAX {
            return Err(format!("field {:?} has no offset or no size", field.name));
        }
        if field.held != DataLocation::Here && field.size != 4 {
            return Err(format!(
                "field {:?} points elsewhere with {} bytes",
                field.name, field.size
            ));
        }
        Ok(field)
    }
}

/// The name in a C declaration: `char rwbs[10]`, `__data_loc char[] cmd`, `void * ctx`.
fn declared_name(declaration: &str) -> Result<String, String> {
    let last = declaration.split_whitespace().next_back().unwrap_or_default();
    let name = last.split('[').next().unwrap_or_default().trim_start_matches('*');
    if name.is_empty() {
        return Err(format!("no name in the declaration {declaration:?}"));
    }
    Ok(name.to_string())
}

/// The layout of a page of the ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFormat {
    /// Bytes of the word that holds the length of the data and flags: 4 or 8.
    pub commit_size: usize,
    /// Where the data begins; the time is in the first 8 bytes, the commit word behind it.
    pub data_offset: usize,
    /// The whole page, in bytes.
    pub page_size: usize,
}

impl PageFormat {
    /// Reads the text of `events/header_page`.
    pub fn parse(text: &str) -> Result<PageFormat, FormatError> {
        let mut fields = Vec::new();
        let mut line_number = 0;
        for line in text.lines() {
            line_number += 1;
            if let Some(declared) = line.trim_start().strip_prefix("field:") {
                let field = Field::parse(declared)
                    .map_err(|what| FormatError { line: line_number, what })?;
                fields.push(field);
            }
        }
        let fail = |what: String| FormatError { line: line_number + 1, what };
        let find = |name: &str| {
            let found = fields.iter().find(|field| field.name == name);
            found.ok_or_else(|| fail(format!("no field {name:?}")))
        };
        let (time, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        let known = (time.offset, time.size, commit.offset) == (0, 8, 8)
            && matches!(commit.size, 4 | 8)
            && data.offset >= commit.offset + commit.size
            && data.size > 0;
        if !known {
            return Err(fail("not the layout of a page that Linux has had since 2.6.30".into()));
        }
        Ok(PageFormat {
            commit_size: commit.size,
            data_offset: data.offset,
            page_size: data.offset + data.size,
        })
    }
}
