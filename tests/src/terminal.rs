//! [`in_terminal`]: runs a program in a pseudoterminal and answers its questions.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use crate::TIMEOUT;

/// What a program in a terminal showed.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// Everything that was shown, including the typed answers.
    pub shown: String,
    /// The exit code. `None` if the program was killed.
    pub code: Option<i32>,
}

/// Runs a program in a terminal. Types each answer once the text before it is shown after the
/// previous one. The program is killed when `end` is shown after the last answer, and after a
/// timeout.
///
/// # Panics
/// Panics if there is no terminal, the program does not start, or it has ended when an answer is
/// typed.
pub fn in_terminal(mut command: Command, answers: &[(&str, &str)], end: Option<&str>) -> Terminal {
    // Without CLOEXEC, programs that other tests start would hold the terminal open.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let mut terminal = openpt(flags).map(File::from).expect("a terminal");
    grantpt(&terminal).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    let path = ptsname(&terminal, Vec::new())
        .expect("a terminal")
        .into_string()
        .expect("a path");
    let program_end = || {
        Stdio::from(
            File::options()
                .read(true)
                .write(true)
                .open(&path)
                .expect("the program's end"),
        )
    };
    command
        .stdin(program_end())
        .stdout(program_end())
        .stderr(program_end());
    let mut program = KilledOnDrop(command.spawn().expect("it starts"));

    // From now on, only the program holds its end.
    drop(command);
    let pid = Pid::from_child(&program.0);
    let (done, is_done) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if is_done.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            // It may have ended just now.
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let mut bytes = Vec::new();
    let mut shown = String::new();
    let mut buffer = [0; 4096];
    let mut seen = 0;
    let mut answers = answers.iter();
    let mut next = answers.next();

    // The last read fails because the program's end is closed.
    while let Ok(read @ 1..) = terminal.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..read]);
        // A read can end within a character.
        shown = String::from_utf8_lossy(&bytes).into_owned();
        while let Some((question, answer)) = next
            && let Some(at) = shown[seen..].find(question)
        {
            seen += at + question.len();
            terminal.write_all(answer.as_bytes()).expect("it reads");
            next = answers.next();
        }
        if next.is_none() && end.is_some_and(|end| shown[seen..].contains(end)) {
            program.0.kill().expect("it runs");
            break;
        }
    }
    let status = program.0.wait().expect("it ends");
    drop(done);
    watchdog.join().expect("the watchdog ends");
    Terminal {
        shown,
        code: status.code(),
    }
}

/// A program that is killed and waited for at the end of its scope, even on a panic.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both do nothing if the program has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
