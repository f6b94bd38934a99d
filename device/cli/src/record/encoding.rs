// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record --encoding` and `--schema`: the encoding of the records of `--input`, in the
//! names of the MCAP registry.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use prost::Message;
use serde_json::Value;
use steadyio_recorder::config::Schema;
use steadyio_recorder::stream::frames::Undeclared;

/// The limit of a schema, as for a topic of a stream.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;
/// The schema of JSON without one. With it, Foxglove plots the fields of any object.
const ANY_OBJECT: &str = r#"{"type": "object"}"#;

/// Meaning of the records.
#[derive(clap::Args)]
pub struct EncodingArguments {
    /// Encoding of the lines, or with frames of the topics that declare none. protobuf and cdr are
    /// binary, and need frames
    #[arg(long, value_parser = ["json", "text", "protobuf", "cdr"], requires = "input")]
    encoding: Option<String>,
    /// Schema of these records: JSON Schema, a FileDescriptorSet of protoc, or a .msg or .idl file
    /// of ROS 2
    #[arg(long, value_name = "FILE", requires = "encoding")]
    schema: Option<PathBuf>,
    /// Name of the type in the schema [default: for JSON, the name of the file; for protobuf, the
    /// only message]
    #[arg(long, value_name = "NAME", requires = "schema")]
    schema_name: Option<String>,
}

impl EncodingArguments {
    pub fn is_given(&self) -> bool {
        self.encoding.is_some()
    }

    /// Reads and checks the schema.
    pub fn load(&self, frames: bool) -> anyhow::Result<Undeclared> {
        let Some(encoding) = self.encoding.as_deref() else { return Ok(Undeclared::default()) };
        ensure!(
            frames || !matches!(encoding, "protobuf" | "cdr"),
            "--encoding {encoding}: its records are binary, and a line ends at any newline in them \
             (use --framing frames)"
        );
        let schema = match (encoding, &self.schema) {
            ("text", Some(file)) => bail!("--schema {}: text has no schema", file.display()),
            ("text", None) => None,
            ("json", None) => Some(any_object()),
            (_, None) => bail!("--encoding {encoding}: needs --schema FILE"),
            (_, Some(file)) => {
                let schema = self.read(encoding, file);
                Some(schema.with_context(|| format!("--schema {}", file.display()))?)
            }
        };
        Ok(Undeclared { message_encoding: encoding.into(), schema })
    }

    fn read(&self, encoding: &str, file: &Path) -> anyhow::Result<Schema> {
        let bytes = fs::metadata(file)?.len();
        ensure!(bytes <= SCHEMA_BYTES_MAX, "has {bytes} bytes: must be at most {SCHEMA_BYTES_MAX}");
        let data = fs::read(file)?;
        let (name, encoding) = match encoding {
            "json" => (self.json_name(file, &data)?, "jsonschema"),
            "protobuf" => (self.protobuf_name(&data)?, "protobuf"),
            _ => self.ros_name(file, &data)?,
        };
        Ok(Schema { name, encoding: encoding.into(), data })
    }

    fn json_name(&self, file: &Path, data: &[u8]) -> anyhow::Result<String> {
        let schema: Value = serde_json::from_slice(data).context("is not JSON")?;
        ensure!(
            schema["type"] == "object",
            "must be a JSON Schema with \"type\": \"object\" at its top"
        );
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        Ok(self.schema_name.clone().unwrap_or(stem.into()))
    }

    fn protobuf_name(&self, data: &[u8]) -> anyhow::Result<String> {
        let set = FileDescriptorSet::decode(data).context(
            "is not a FileDescriptorSet (make one with protoc --include_imports \
             --descriptor_set_out=FILE)",
        )?;
        let names = set.message_names();
        match (&self.schema_name, names.as_slice()) {
            (_, []) => bail!("is a FileDescriptorSet without messages"),
            (None, [only]) => Ok(only.clone()),
            (Some(name), names) if names.contains(name) => Ok(name.clone()),
            (None, names) => bail!("has several messages: give --schema-name, {}", one_of(names)),
            (Some(name), names) => {
                bail!("has no message {name} (--schema-name): {}", one_of(names))
            }
        }
    }

    fn ros_name(&self, file: &Path, data: &[u8]) -> anyhow::Result<(String, &'static str)> {
        let encoding = match file.extension().and_then(|extension| extension.to_str()) {
            Some("msg") => "ros2msg",
            Some("idl") => "ros2idl",
            _ => bail!("must be a .msg or .idl file of ROS 2"),
        };
        ensure!(std::str::from_utf8(data).is_ok(), "is not text in UTF-8");
        let name = self.schema_name.clone();
        let name = name.context("needs --schema-name, such as sensor_msgs/msg/Imu")?;
        let parts: Vec<&str> = name.split('/').collect();
        ensure!(
            matches!(parts.as_slice(), [package, "msg", name] if !package.is_empty() && !name.is_empty()),
            "--schema-name {name}: must be PACKAGE/msg/NAME, such as sensor_msgs/msg/Imu"
        );
        Ok((name, encoding))
    }
}

fn any_object() -> Schema {
    let (encoding, data) = ("jsonschema".into(), ANY_OBJECT.into());
    Schema { name: "object".into(), encoding, data }
}

fn one_of(names: &[String]) -> String {
    format!("one of {}", names.join(", "))
}

/// The fields of descriptor.proto that name messages.
#[derive(Clone, PartialEq, Message)]
struct FileDescriptorSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<FileDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct FileDescriptor {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    package: Option<String>,
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<Descriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct Descriptor {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
}

impl FileDescriptorSet {
    /// The names of top-level messages, with their packages.
    fn message_names(&self) -> Vec<String> {
        let names = |file: &FileDescriptor| {
            let package = file.package.clone().unwrap_or_default();
            let full = |message: &Descriptor| match (package.as_str(), message.name()) {
                ("", name) => name.to_string(),
                (package, name) => format!("{package}.{name}"),
            };
            file.message_type.iter().map(full).collect::<Vec<_>>()
        };
        self.file.iter().flat_map(names).collect()
    }
}
