//! A process that is killed while it writes.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
};

use super::*;

/// Names the directory for the process that is killed.
const DIRECTORY: &str = "PORTCULLIS_TEST_KILLED_RECORDS";

/// Commits until it is killed, if another test has started it. Prints what was answered.
#[tokio::test]
async fn killed_process() {
    let Some(path) = env::var_os(DIRECTORY) else {
        return;
    };
    let records = open(Path::new(&path)).unwrap();
    let first = numbered_changes(&records).await;
    let mut output = std::io::stdout();
    for number in first.. {
        let committed = records.commit(numbered(number)).await;
        assert_eq!(committed.unwrap(), Outcome::Committed);
        writeln!(output, "answered {number}").unwrap();
        output.flush().unwrap();
    }
}

/// ST3: what was answered before a process is killed is there afterwards, and nothing is half
/// there.
#[tokio::test]
async fn a_killed_process_loses_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let mut answered = 0;
    for round in 1..=4 {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("records::file::tests::kill::killed_process")
            .env(DIRECTORY, parent.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut in_this_round = 0;
        for line in lines {
            let line = line.unwrap();
            if let Some((_, number)) = line.split_once("answered ") {
                answered = number.parse::<u64>().unwrap() + 1;
                in_this_round += 1;
            }
            if in_this_round == 10 * round {
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();
        assert!(in_this_round >= 10 * round, "{in_this_round}");
        let changes = numbered_changes(&open(parent.path()).unwrap()).await;
        assert!(
            [answered, answered + 1].contains(&changes),
            "{changes} of {answered}"
        );
        answered = changes;
    }
}
