// SPDX-License-Identifier: MIT OR Apache-2.0
//! The name that programs remember of the library: it changes when the interface does.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsteadyio.so.0");
}
