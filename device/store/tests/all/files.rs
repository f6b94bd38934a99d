// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores on real files and block devices.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use steadyio_store::AlignedBuffer;
use steadyio_store::storage::Storage;
use steadyio_store::storage::file::{Access, FileStorage, OpenError};
use steadyio_store::store::{ExtentOptions, Store, StoreOptions};
use steadyio_testing::{LoopDisk, is_root};

use crate::model::noise;

fn use_store(path: &Path) {
    let options = StoreOptions { align_bytes: Some(64 << 10), ..StoreOptions::default() };
    let storage = FileStorage::open(path, Access::Change).unwrap();
    let mut store = Store::create(storage, &options).unwrap();
    let extent = ExtentOptions { bytes: 3 << 20, twice: false, checked: true };
    store.create_extent(7, &extent).unwrap();
    store.unload(7, &noise(2_500_000, 1)[..2_500_000]).unwrap();
    drop(store);
    let mut store = Store::open(FileStorage::open(path, Access::Read).unwrap()).unwrap();
    let mut buffer = AlignedBuffer::new(3 << 20, false).unwrap();
    let before = store.commands();
    let length = store.load(7, &mut buffer).unwrap();
    assert_eq!(buffer[..length], noise(2_500_000, 1)[..2_500_000]);
    let taken = store.commands().since(before);
    assert_eq!(taken.reads, store.load_commands(7).unwrap());
}

fn file(dir: &Path, mib: u64) -> std::path::PathBuf {
    let path = dir.join("store");
    File::create(&path).unwrap().set_len(mib << 20).unwrap();
    path
}

#[test]
fn a_file_holds_a_store() {
    let dir = tempfile::tempdir().unwrap();
    use_store(&file(dir.path(), 16));
    // A file system without direct I/O, on kernels before 6.6.
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    use_store(&file(dir.path(), 16));
}

#[test]
fn a_block_device_holds_a_store() {
    let Some(disk) = LoopDisk::new(16, &["--direct-io=on"]) else { return };
    use_store(Path::new(&disk.node));
}

#[test]
fn the_longest_command_is_what_the_driver_takes() {
    let Some(disk) = LoopDisk::new(16, &[]) else { return };
    let knob = Path::new("/sys/block").join(disk.name()).join("queue/max_sectors_kb");
    let before = fs::read_to_string(&knob).unwrap();
    fs::write(&knob, "64").unwrap();
    let limits = FileStorage::open(Path::new(&disk.node), Access::Read).unwrap().limits();
    fs::write(&knob, before).unwrap();
    assert_eq!((limits.command_bytes, limits.size_bytes), (64 << 10, 16 << 20));
}

#[test]
fn one_program_changes_it_or_several_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 1);
    let open = |access| FileStorage::open(&path, access);
    let readers = (open(Access::Read).unwrap(), open(Access::Read).unwrap());
    assert!(matches!(open(Access::Change), Err(OpenError::Locked { .. })));
    drop(readers);
    let _writer = open(Access::Change).unwrap();
    for access in [Access::Read, Access::Change] {
        let said = open(access).unwrap_err().to_string();
        assert!(said.contains("another program has this store open"), "{said}");
    }
}

#[test]
fn a_loop_device_and_its_file_are_one_store() {
    let Some(disk) = LoopDisk::new(16, &[]) else { return };
    let paths = [Path::new(&disk.node), disk.backing.as_path()];
    for (first, second) in [(0, 1), (1, 0)] {
        let _first = FileStorage::open(paths[first], Access::Change).unwrap();
        for access in [Access::Read, Access::Change] {
            let refused = FileStorage::open(paths[second], access);
            assert!(matches!(refused, Err(OpenError::Locked { .. })), "{refused:?}");
        }
    }
    let _readers = paths.map(|path| FileStorage::open(path, Access::Read).unwrap());
}

#[test]
fn loop_devices_on_two_parts_of_a_file_are_two_stores() {
    let Some(disk) = LoopDisk::new(16, &["--sizelimit=8M"]) else { return };
    let run = |arguments: &[&str]| {
        let output = Command::new("losetup").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    let backing = disk.backing.to_str().unwrap();
    let other = run(&["--find", "--show", "--offset=8M", backing]);
    let open = |path: &str| FileStorage::open(Path::new(path), Access::Change);
    let both = (open(&disk.node), open(&other));
    let whole = open(backing);
    run(&["--detach", &other]);
    assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
    assert!(matches!(whole, Err(OpenError::Locked { .. })), "{whole:?}");
}

#[test]
fn another_node_of_a_device_is_the_same_store() {
    let Some(disk) = LoopDisk::new(16, &[]) else { return };
    let node = disk.dir.path().join("node");
    let number = fs::metadata(&disk.node).unwrap().rdev();
    let number = [rustix::fs::major(number), rustix::fs::minor(number)].map(|n| n.to_string());
    let made = Command::new("mknod").arg(&node).arg("b").args(&number).status().unwrap();
    assert!(made.success());
    let _writer = FileStorage::open(&node, Access::Change).unwrap();
    let device = Path::new(&disk.node);
    assert!(matches!(FileStorage::open(device, Access::Read), Err(OpenError::Locked { .. })));
    assert!(matches!(FileStorage::open(device, Access::Change), Err(OpenError::InUse { .. })));
}

#[test]
fn a_mounted_device_is_refused_with_its_mount_point() {
    let Some(disk) = LoopDisk::new(16, &[]) else { return };
    let run = |program: &str, arguments: &[&str]| {
        assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program}");
    };
    let dir = tempfile::tempdir().unwrap();
    let on = dir.path().to_str().unwrap();
    run("mkfs.ext4", &["-q", &disk.node]);
    run("mount", &[&disk.node, on]);
    let refused = FileStorage::open(Path::new(&disk.node), Access::Change);
    run("umount", &[on]);
    let said = refused.unwrap_err().to_string();
    assert!(said.contains(&format!("is in use (mounted on {on})")), "{said}");
}

#[test]
fn what_cannot_hold_a_store_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &str| FileStorage::open(Path::new(path), Access::Change).unwrap_err();
    for path in [dir.path().to_str().unwrap(), "/dev/null", "/dev/urandom"] {
        let said = open(path).to_string();
        assert!(
            said.contains("must be a block device, a /dev/chardiskN, a /dev/ngXnY or a"),
            "{said}"
        );
    }
    assert!(matches!(open("/no/such/file"), OpenError::Io { .. }));
    if is_root("a device that only root can write to") {
        let Some(disk) = LoopDisk::new(1, &["--read-only"]) else { return };
        assert!(matches!(open(&disk.node), OpenError::ReadOnly { .. }));
    }
}

fn refuses_to_create(path: &Path) -> String {
    let mut storage = FileStorage::open(path, Access::Change).unwrap();
    storage.check_empty(path).unwrap_err().to_string()
}

#[test]
fn data_anywhere_in_a_file_and_a_damaged_store_are_contents() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), 16);
    let storage = FileStorage::open(&path, Access::Change);
    storage.unwrap().check_empty(&path).unwrap();
    let write = |bytes: &[u8], at: u64| {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).unwrap();
    };
    write(b"data", 10 << 20);
    assert!(refuses_to_create(&path).contains("holds other data"));
    use_store(&path);
    write(&[0; 4096], 0);
    assert!(refuses_to_create(&path).contains("holds"));
    let Some(disk) = LoopDisk::new(16, &[]) else { return };
    use_store(Path::new(&disk.node));
    let node = fs::OpenOptions::new().write(true).open(&disk.node).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&node, &[0; 4096], 0).unwrap();
    node.sync_all().unwrap();
    let said = refuses_to_create(Path::new(&disk.node));
    assert!(said.contains("holds a store of steadyio that is damaged"), "{said}");
}

#[test]
fn what_lies_below_a_mounted_loop_device_is_in_use() {
    let Some(disk) = LoopDisk::new(16, &[]) else { return };
    let run = |words: &[&str]| {
        let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    let above = run(&["losetup", "--find", "--show", "--offset=1048576", &disk.node]);
    let mount = tempfile::tempdir().unwrap();
    let mount_path = mount.path().to_str().unwrap();
    run(&["mkfs.ext4", "-q", &above]);
    run(&["mount", &above, mount_path]);
    let opened = [Path::new(&disk.node), disk.backing.as_path()]
        .map(|path| FileStorage::open(path, Access::Change).map(|_| ()));
    run(&["umount", mount_path]);
    run(&["losetup", "--detach", &above]);
    for result in opened {
        let said = result.unwrap_err().to_string();
        assert!(said.contains("is in use") && said.contains("mounted on"), "{said}");
    }
}
