// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interns strings, so that each is written once in a file and then named by a number. `arguments`
//! and `tracks` use it.

use indexmap::IndexSet;

use super::messages::{DebugAnnotation, InternedData, InternedName};

/// All strings of a file.
#[derive(Default)]
pub struct Strings {
    /// The names of slices.
    pub names: Numbered,
    argument_names: Numbered,
    /// The values of text arguments.
    values: Numbered,
}

impl Strings {
    /// An argument with a name and a number.
    pub fn number(&mut self, name: &str, value: i64) -> DebugAnnotation {
        let name_iid = self.argument_names.number(name);
        DebugAnnotation { name_iid, int_value: Some(value), string_value_iid: None }
    }

    pub fn text(&mut self, name: &str, value: &str) -> DebugAnnotation {
        let name_iid = self.argument_names.number(name);
        let string_value_iid = Some(self.values.number(value));
        DebugAnnotation { name_iid, int_value: None, string_value_iid }
    }

    pub fn into_message(self) -> InternedData {
        InternedData {
            event_names: self.names.into_names(),
            debug_annotation_names: self.argument_names.into_names(),
            debug_annotation_string_values: self.values.into_names(),
        }
    }
}

/// Strings with numbers from 1.
#[derive(Default)]
pub struct Numbered(IndexSet<String>);

impl Numbered {
    pub fn number(&mut self, text: &str) -> u64 {
        let known = self.0.get_index_of(text);
        known.unwrap_or_else(|| self.0.insert_full(text.to_string()).0) as u64 + 1
    }

    fn into_names(self) -> Vec<InternedName> {
        (1..).zip(self.0).map(|(iid, name)| InternedName { iid, name }).collect()
    }
}
