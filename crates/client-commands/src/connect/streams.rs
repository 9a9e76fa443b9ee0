use std::{fs::File, io, os::fd::AsFd as _};

/// Standard input and output as the streams that carry the protocol.
pub(super) struct Streams {
    pub(super) input: File,
    pub(super) output: File,
}

impl Streams {
    /// Takes standard input and output. Later reads and prints in this process, and by programs
    /// that it starts, such as a browser, get an empty input and standard error instead.
    pub(super) fn take() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?.into();
        let output = io::stdout().as_fd().try_clone_to_owned()?.into();
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        Ok(Self { input, output })
    }
}
