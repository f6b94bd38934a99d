// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady export --ros2 DIR`: writes a bag for `ros2 bag play`. The directory gets its name when
//! it is complete and on the medium.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use steadyio_export::export::{Export, ExportError};
use steadyio_export::files::Split;
use steadyio_export::overview::Overview;
use steadyio_export::rosbag2;
use steadyio_export::summary::Summary;
use steadyio_recorder::mcap::names::rename;
use tempfile::TempDir;

use crate::selection::Chosen;

const METADATA: &str = "metadata.yaml";

/// A bag in progress: a directory under a temporary name.
pub struct Bag {
    path: PathBuf,
    name: String,
    temporary: TempDir,
    split_bytes: u64,
    files: Vec<String>,
}

/// Checks that the directory does not exist. rosbag2 rejects an existing one, too.
pub fn check(path: &Path) -> anyhow::Result<()> {
    ensure!(
        fs::symlink_metadata(path).is_err(),
        "--ros2 {}: exists; give the name of a new directory",
        path.display()
    );
    let name = path.file_name().and_then(|name| name.to_str());
    ensure!(name.is_some(), "--ros2 {}: has no name in UTF-8", path.display());
    Ok(())
}

/// Checks that ROS 2 can use all selected channels.
pub fn check_channels(chosen: &Chosen) -> anyhow::Result<()> {
    let overview = Overview::of(&chosen.survey, &[])?;
    let wanted = |topic: &str| chosen.selection.wants_topic(topic);
    let mut last: Option<(&str, &str)> = None;
    for channel in overview.channels.iter().filter(|channel| wanted(&channel.topic)) {
        if let Some(problem) = rosbag2::problem(channel) {
            bail!("--ros2: {problem} (leave it out with --topics)");
        }
        let (topic, name) = (channel.topic.as_str(), channel.schema_name.as_str());
        if let Some((_, other)) = last.filter(|(known, other)| *known == topic && *other != name) {
            bail!(
                "--ros2: topic {topic}: has the types {other} and {name}; select by --from and --to"
            );
        }
        last = Some((topic, name));
    }
    Ok(())
}

impl Bag {
    pub fn create(path: &Path, split_bytes: u64) -> io::Result<Bag> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let temporary = tempfile::Builder::new().prefix(".steady-").tempdir_in(parent(path))?;
        Ok(Bag { path: path.into(), name, temporary, split_bytes, files: Vec::new() })
    }

    /// Writes the export, and returns its summary with the number of files.
    pub fn fill(
        mut self,
        export: Export<'_>,
        say: impl FnOnce(&Summary, usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<(Summary, usize)> {
        let (summary, files) = export.split(&mut self)?;
        let files: Vec<_> = self.files.drain(..).zip(files).collect();
        let mut file = File::create_new(self.temporary.path().join(METADATA))?;
        file.write_all(rosbag2::metadata(&summary.channels, &files).as_bytes())?;
        file.sync_all()?;
        say(&summary, files.len())?;
        self.give_name().map_err(ExportError::Write)?;
        Ok((summary, files.len()))
    }

    fn give_name(self) -> io::Result<()> {
        fs::set_permissions(self.temporary.path(), Permissions::from_mode(0o755))?;
        File::open(self.temporary.path())?.sync_all()?;
        rename(self.temporary.path(), &self.path)?;
        // It has been renamed, and stays.
        let _ = self.temporary.keep();
        File::open(parent(&self.path))?.sync_all()
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Split<BufWriter<File>> for Bag {
    fn bytes_max(&self) -> u64 {
        self.split_bytes
    }

    fn open(&mut self, number: usize) -> io::Result<BufWriter<File>> {
        // The names of rosbag2.
        let name = format!("{}_{number}.mcap", self.name);
        let file = File::create_new(self.temporary.path().join(&name))?;
        self.files.push(name);
        Ok(BufWriter::new(file))
    }

    fn close(&mut self, file: BufWriter<File>) -> io::Result<()> {
        file.into_inner().map_err(|error| error.into_error())?.sync_all()
    }
}
