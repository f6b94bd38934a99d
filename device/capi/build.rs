// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the library's soname, which changes with the interface.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsteadyio.so.0");
}
