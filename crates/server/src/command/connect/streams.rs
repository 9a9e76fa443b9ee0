//! Standard input and output as protocol streams.

use std::{fs::File, io, os::fd::AsFd as _};

/// What carries the protocol.
pub(super) struct Streams {
    pub(super) input: File,
    pub(super) output: File,
}

impl Streams {
    /// Takes standard input and output away from everything else in this process: whatever reads or prints from here on,
    /// a browser that was started for instance, meets nothing and standard error in their places.
    pub(super) fn take() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?.into();
        let output = io::stdout().as_fd().try_clone_to_owned()?.into();
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        Ok(Self { input, output })
    }
}
