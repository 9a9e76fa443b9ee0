//! The launcher of the npm package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use portcullis_scenarios::{
    Process, ReservedPort, Scratch, Signal, TIMEOUT, portcullis_command, portcullis_program,
};
use rustix::process::{Pid, kill_process};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::deploy;

const PLATFORMS: [&str; 2] = ["linux-x64", "linux-arm64"];

/// The launcher, installed beside the packages of two platforms, which contain the program under
/// test.
struct Installed(Scratch);

impl Installed {
    fn new() -> Self {
        let installed = Self(Scratch::folder("npm"));
        let launcher = installed.package("portcullis-mcp");
        fs::create_dir_all(launcher.join("bin")).unwrap();
        for file in ["package.json", "bin/portcullis-mcp.js"] {
            fs::copy(deploy("npm").join(file), launcher.join(file)).unwrap();
        }
        for platform in PLATFORMS {
            let bin = installed
                .package(&format!("portcullis-mcp-{platform}"))
                .join("bin");
            fs::create_dir_all(&bin).unwrap();
            std::os::unix::fs::symlink(portcullis_program(), bin.join("portcullis")).unwrap();
        }
        installed
    }

    fn package(&self, name: &str) -> PathBuf {
        self.0.path().join("node_modules").join(name)
    }

    fn launcher(&self) -> PathBuf {
        self.package("portcullis-mcp").join("bin/portcullis-mcp.js")
    }

    /// Returns the command that starts the launcher by node.
    fn command(&self) -> Command {
        let mut node = portcullis_command(Path::new("node"));
        node.arg(self.launcher());
        node
    }

    /// Runs the launcher to its end.
    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command();
        command.args(arguments);
        output_of(command).await
    }
}

async fn output_of(command: Command) -> Output {
    let mut command = tokio::process::Command::from(command);
    timeout(TIMEOUT, command.kill_on_drop(true).output())
        .await
        .unwrap()
        .unwrap()
}

/// The launcher passes arguments, output and exit code through.
#[tokio::test]
async fn the_launcher_runs_the_program() {
    let installed = Installed::new();
    let version = installed.run(&["--version"]).await;
    assert!(version.status.success(), "{version:?}");
    assert_eq!(
        version.stdout,
        format!("portcullis {}\n", env!("CARGO_PKG_VERSION")).as_bytes()
    );

    let missing = installed.run(&["check", "--config", "/nowhere"]).await;
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let invalid = installed.run(&["no-such-command"]).await;
    assert_eq!(invalid.status.code(), Some(2), "{invalid:?}");
}

/// The launcher forwards the signal that ends it, and waits for the end of the program.
#[tokio::test]
async fn the_launcher_forwards_signals() {
    let installed = Installed::new();
    let port = ReservedPort::new();
    let mut serve = installed.command();
    serve
        .args(["serve", "--config"])
        .arg(deploy("compose/portcullis.toml"));
    serve
        .args(["--listen", &port.address().to_string()])
        .env("PORTCULLIS_STATE_DIR", "off");
    let mut node = Process::start("node", &mut serve).unwrap();
    let listens = async {
        while TcpStream::connect(port.address()).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, listens).await.expect("it listens");

    // Only to the launcher, as a client that ends its server does.
    kill_process(
        Pid::from_raw(node.id().cast_signed()).unwrap(),
        Signal::TERM,
    )
    .unwrap();
    let ended = timeout(TIMEOUT, node.wait())
        .await
        .expect("it ends")
        .unwrap();
    assert_eq!(ended.code(), Some(0), "the program ended cleanly");
    assert!(
        TcpStream::connect(port.address()).await.is_err(),
        "the program has ended, too"
    );
}

/// Without the package for the platform, the launcher says so in one line.
#[tokio::test]
async fn a_missing_package_is_named() {
    let installed = Installed::new();
    for platform in PLATFORMS {
        fs::remove_dir_all(installed.package(&format!("portcullis-mcp-{platform}"))).unwrap();
    }
    let output = installed.run(&["--version"]).await;
    assert_rejected(
        &output,
        &[
            "portcullis-mcp-linux-",
            "is not installed",
            "--omit=optional",
        ],
    );
}

/// On a platform without a package, the launcher says so in one line.
#[tokio::test]
async fn an_unsupported_platform_is_named() {
    let installed = Installed::new();
    let script = format!(
        "Object.defineProperty(process, 'platform', {{ value: 'sunos' }}); import({:?})",
        installed.launcher().to_str().unwrap()
    );
    let mut node = portcullis_command(Path::new("node"));
    node.args(["-e", &script]);
    assert_rejected(
        &output_of(node).await,
        &[
            "there is no program for sunos-",
            "cargo install --locked --path crates/server",
        ],
    );
}

/// Asserts that the launcher ended with 1 and one line with these words.
fn assert_rejected(output: &Output, words: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
}
