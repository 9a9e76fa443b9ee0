//! The files of `deploy` with the program: example configurations, and the launcher of the npm package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use portcullis_scenarios::{
    Portcullis, Process, Scratch, Signal, free_address, portcullis_command, portcullis_program,
};
use rustix::process::{Pid, kill_process};
use serde_json::Value;
use xtask::workspace;

fn deploy(file: &str) -> PathBuf {
    workspace::root().join("deploy").join(file)
}

/// The block `config: |` of the chart's values.
fn configuration_of_chart() -> String {
    let values = fs::read_to_string(deploy("helm/portcullis/values.yaml")).unwrap();
    let lines = values.lines().skip_while(|line| *line != "config: |").skip(1);
    lines
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// J9: every configuration in `deploy` passes `check`, without a warning.
#[tokio::test]
async fn example_configurations_are_valid() {
    let chart = Scratch::file("chart.toml", &configuration_of_chart());
    for file in [deploy("portcullis.toml"), deploy("compose/portcullis.toml"), chart.path().to_owned()] {
        let checked = Portcullis::run(&["check", "--json", "--config", file.to_str().unwrap()]).await;
        assert_eq!(checked.code, Some(0), "{file:?}: {checked:?}");
        let report: Value = serde_json::from_str(&checked.stdout).unwrap();
        assert_eq!(report["warnings"], Value::Array(Vec::new()), "{file:?}");
    }
}

/// The launcher, installed beside a package that contains the program under test.
struct Installed(Scratch);

impl Installed {
    /// Installs the launcher, and the packages of two platforms with this program.
    fn new() -> Self {
        let folder = Scratch::folder("npm");
        let modules = folder.path().join("node_modules");
        let launcher = modules.join("portcullis-mcp");
        fs::create_dir_all(launcher.join("bin")).unwrap();
        for file in ["package.json", "bin/portcullis-mcp.js"] {
            fs::copy(deploy("npm").join(file), launcher.join(file)).unwrap();
        }
        for platform in ["linux-x64", "linux-arm64"] {
            let bin = modules.join(format!("portcullis-mcp-{platform}")).join("bin");
            fs::create_dir_all(&bin).unwrap();
            std::os::unix::fs::symlink(portcullis_program(), bin.join("portcullis")).unwrap();
        }
        Self(folder)
    }

    /// The command that starts the launcher by node.
    fn command(&self) -> Command {
        let mut node = portcullis_command(Path::new("node"));
        node.arg(self.0.path().join("node_modules/portcullis-mcp/bin/portcullis-mcp.js"));
        node
    }
}

/// The launcher passes arguments, output and exit code through, and forwards the signal that ends it.
#[tokio::test]
async fn the_npm_launcher_starts_the_program() {
    let installed = Installed::new();
    let version = installed.command().arg("--version").output().unwrap();
    assert!(version.status.success(), "{version:?}");
    assert_eq!(version.stdout, format!("portcullis {}\n", env!("CARGO_PKG_VERSION")).as_bytes());

    let missing = installed.command().args(["check", "--config", "/nowhere"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let invalid = installed.command().arg("no-such-command").output().unwrap();
    assert_eq!(invalid.status.code(), Some(2), "{invalid:?}");

    let address = free_address().unwrap();
    let mut serve = installed.command();
    serve.args(["serve", "--config"]).arg(deploy("compose/portcullis.toml")).args(["--listen", &address.to_string()]);
    let mut node = Process::start("node", serve.env("PORTCULLIS_STATE_DIR", "off")).unwrap();
    let listens = async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), listens).await.expect("it listens");

    // Only to the launcher, as a client that ends its server does.
    kill_process(Pid::from_raw(i32::try_from(node.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), node.wait()).await.expect("it ends").unwrap();
    assert_eq!(ended.code(), Some(0), "the program ended cleanly");
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the program has ended, too");
}

/// Without the package for the platform, and on platforms without one, the launcher says so in one line.
#[tokio::test]
async fn the_npm_launcher_names_what_is_missing() {
    let installed = Installed::new();
    fs::remove_dir_all(installed.0.path().join("node_modules/portcullis-mcp-linux-x64")).unwrap();
    fs::remove_dir_all(installed.0.path().join("node_modules/portcullis-mcp-linux-arm64")).unwrap();
    let output = installed.command().arg("--version").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("is not installed"), "{message}");
    assert!(message.contains("--omit=optional"), "{message}");
}
