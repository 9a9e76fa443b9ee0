//! The command that counts the instructions of a program.

use std::{ffi::OsString, path::Path, process::Command};

use portcullis_scenarios::portcullis_command;

/// Returns a command that runs the program under callgrind, which writes its output file when the program ends.
pub(super) fn command(valgrind: &Path, program: &Path, output: &Path) -> Command {
    let mut command = portcullis_command(valgrind);
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(output);
    command.args(["--tool=callgrind", "--compress-strings=no", "--dump-line=no", "--quiet"]).arg(file).arg(program);
    // With a backtrace, a rejected token would walk the stack, because josekit's errors contain one.
    command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    command
}
