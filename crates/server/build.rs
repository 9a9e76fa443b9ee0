//! How the program is linked.

#![allow(clippy::print_stdout, reason = "this is how cargo is told")]

use std::{env, process::Command};

/// The first glibc that reads relative relocations in their packed form (`DT_RELR`).
const GLIBC: (u32, u32) = (2, 36);

/// A program that may lie anywhere in memory has tens of thousands of pointers to be corrected at
/// its start. Packed, their list takes 15 KB in place of 1 MB, which every process keeps resident.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    // A linker other than the system's is for programs that run elsewhere, with an older glibc.
    let is_of_this_machine =
        env::var_os("TARGET") == env::var_os("HOST") && env::var_os("RUSTC_LINKER").is_none();
    if is_of_this_machine && glibc().is_some_and(|version| version >= GLIBC) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The C library of this machine, where it is glibc.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
