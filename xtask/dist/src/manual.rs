//! Manual pages and completions. A program for this machine writes them, because it may not run
//! that of the target.

use std::{fs, path::PathBuf, process::Command};

use xtask::built;

use crate::{binaries::Features, release::Release, shell};

/// The shells with their names of completion files, relative to the folder of the package.
pub(crate) const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "portcullis.bash"),
    ("zsh", "_portcullis"),
    ("fish", "portcullis.fish"),
];

/// Writes the pages into `man` and the scripts into `completions` of a folder, and returns it.
/// Fails when the program for this machine cannot be built or run.
pub(crate) fn write(release: &Release, features: Features) -> anyhow::Result<PathBuf> {
    let folder = release.stage(&format!("manual-{}", features.name()))?;
    let more = match features {
        Features::Full => "--features=manual",
        Features::Server => "--features=manual,redis,vendored",
    };
    let mut arguments = vec!["--package=portcullis", "--bin=portcullis", "--locked"];
    if features == Features::Server {
        arguments.push("--no-default-features");
    }
    arguments.push(more);
    let program = built::build(&arguments)?.program("portcullis")?;
    shell::run(Command::new(&program).arg("man").arg(folder.join("man")))?;
    fs::create_dir_all(folder.join("completions"))?;
    for (shell, file) in COMPLETIONS {
        let script = shell::output(Command::new(&program).args(["completions", shell]))?;
        fs::write(folder.join("completions").join(file), script)?;
    }
    Ok(folder)
}
