//! Checks of the files in `deploy` that need no build.

mod chart;
mod configurations;
mod tools;

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, ensure};
use xtask::workspace;

use crate::{
    release,
    report::{Report, Step},
    sbom, shell,
    target::TARGETS,
};

/// The maximum exposure of the service, as `systemd-analyze security` computes it: 0 is closed, 10
/// is open.
const MAX_EXPOSURE: f64 = 2.0;

/// Runs all checks. Fails when the folder for the checks cannot be written.
pub(crate) fn run(report: &mut Report) -> anyhow::Result<()> {
    let (deploy, folder) = (
        workspace::root().join("deploy"),
        workspace::metadata()?
            .target_directory
            .join("deploy-checks"),
    );
    fs::create_dir_all(&folder)
        .with_context(|| format!("{} cannot be created", folder.display()))?;
    report.add("systemd exposure", || exposure(&deploy));
    report.add("systemd units", || units(&deploy, &folder));
    report.add("maintainer scripts", || scripts(&deploy));
    report.add("npm launcher", || launcher(&deploy));
    report.add("yaml and values", || chart::values(&deploy, &folder));
    report.add("helm chart", || chart::rendered(&deploy, &folder));
    report.add("compose file", || compose(&deploy, &folder));
    report.add("homebrew formula", || formula(&deploy));
    report.add("configuration schema", || configurations::check(&folder));
    report.add("bills of materials", || bills_of_materials(&folder));
    Ok(())
}

fn missing(program: &str) -> anyhow::Result<Step> {
    Ok(Step::NotRun(format!("{program} is not installed")))
}

/// Checks the exposure of the service.
fn exposure(deploy: &Path) -> anyhow::Result<Step> {
    if !shell::exists("systemd-analyze") {
        return missing("systemd-analyze");
    }
    let mut analyze = Command::new("systemd-analyze");
    analyze
        .args(["security", "--offline=true", "--no-pager"])
        .arg(deploy.join("systemd/portcullis.service"));
    let report = shell::output(&mut analyze)?;
    let exposure =
        overall_exposure(&report).context("systemd-analyze printed no overall exposure")?;
    ensure!(
        exposure <= MAX_EXPOSURE,
        "the exposure is {exposure}, more than {MAX_EXPOSURE}"
    );
    Ok(Step::Checked(format!("exposure {exposure} of 10")))
}

fn overall_exposure(report: &str) -> Option<f64> {
    let line = report
        .lines()
        .find(|line| line.contains("Overall exposure level"))?;
    line.rsplit_once(": ")?.1.split(' ').next()?.parse().ok()
}

/// Checks the units as systemd reads them. The program of the units must exist, so copies name one
/// that does.
fn units(deploy: &Path, folder: &Path) -> anyhow::Result<Step> {
    if !shell::exists("systemd-analyze") {
        return missing("systemd-analyze");
    }
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["verify", "--man=no", "--recursive-errors=no"]);
    for unit in ["portcullis.service", "portcullis.socket"] {
        let text = fs::read_to_string(deploy.join("systemd").join(unit))?
            .replace("=/usr/bin/portcullis", "=/bin/true");
        let copy = folder.join(unit);
        fs::write(&copy, text)?;
        analyze.arg(copy);
    }
    let output = analyze
        .output()
        .context("systemd-analyze could not be started")?;
    let messages = String::from_utf8_lossy(&output.stderr);

    ensure!(
        output.status.success(),
        "systemd-analyze ended with {}: {}",
        output.status,
        messages.trim()
    );

    // It exits with 0 in spite of unknown keys.
    let ours: Vec<&str> = messages
        .lines()
        .filter(|line| line.contains("portcullis."))
        .collect();
    ensure!(ours.is_empty(), "{}", ours.join("; "));
    Ok(Step::Checked("no message".to_owned()))
}

/// Checks the syntax of the scripts of the Debian package.
fn scripts(deploy: &Path) -> anyhow::Result<Step> {
    for script in ["postinst", "prerm", "postrm"] {
        shell::output(
            Command::new("sh")
                .arg("-n")
                .arg(deploy.join("debian").join(script)),
        )?;
    }
    Ok(Step::Checked("valid".to_owned()))
}

/// Checks that the launcher of the npm package runs nothing on platforms without a program.
fn launcher(deploy: &Path) -> anyhow::Result<Step> {
    if !shell::exists("node") {
        return missing("node");
    }
    let script = "Object.defineProperty(process, 'platform', { value: 'sunos' }); await import(process.argv[1]);";
    let mut node = Command::new("node");
    node.args(["--input-type=module", "--eval", script, "--"])
        .arg(deploy.join("npm/bin/portcullis-mcp.js"));
    let output = node.output().context("node could not be started")?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(1) && message.lines().count() == 1,
        "it says on another platform: {message}"
    );
    ensure!(
        message.contains("there is no program for sunos-"),
        "it says on another platform: {message}"
    );
    Ok(Step::Checked("one line on other platforms".to_owned()))
}

/// Compares the compose file with the schema of the Compose Specification.
fn compose(deploy: &Path, folder: &Path) -> anyhow::Result<Step> {
    let python = match tools::python(folder) {
        Ok(python) => python,
        Err(error) => return Ok(Step::NotRun(format!("{error:#}"))),
    };
    let mut check = Command::new(python.with_file_name("check-jsonschema"));
    check
        .args(["--builtin-schema", "vendor.compose-spec"])
        .arg(deploy.join("compose/compose.yaml"));
    shell::output(&mut check)?;
    Ok(Step::Checked("valid".to_owned()))
}

/// Checks the syntax of the Homebrew formula.
fn formula(deploy: &Path) -> anyhow::Result<Step> {
    if !shell::exists("ruby") {
        return missing("ruby");
    }
    shell::output(
        Command::new("ruby")
            .args(["-w", "-c"])
            .arg(deploy.join("homebrew/portcullis.rb")),
    )?;
    Ok(Step::Checked("valid syntax".to_owned()))
}

/// Compares the bill of materials of each program with the schema of CycloneDX.
fn bills_of_materials(folder: &Path) -> anyhow::Result<Step> {
    let python = match tools::python(folder) {
        Ok(python) => python,
        Err(error) => return Ok(Step::NotRun(format!("{error:#}"))),
    };
    let root = workspace::root();
    let file = folder.join("bom.cdx.json");
    let version = release::version(&root)?;
    let programs = TARGETS.iter().flat_map(|target| {
        target
            .programs()
            .iter()
            .map(move |features| (target, *features))
    });
    let mut count = 0;
    for (target, features) in programs {
        fs::write(&file, sbom::content(&root, &version, target, features)?)?;
        let script = include_str!("checks/bill_of_materials.py");
        shell::output(Command::new(&python).arg("-c").arg(script).arg(&file))
            .with_context(|| format!("the bill of materials for {} is invalid", target.triple))?;
        count += 1;
    }
    Ok(Step::Checked(format!("{count} bills of materials")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exposure_is_read() {
        let report =
            "✓ PrivateNetwork=\n\n→ Overall exposure level for portcullis.service: 1.4 OK 🙂\n";
        assert_eq!(overall_exposure(report), Some(1.4));
        assert_eq!(overall_exposure("nothing"), None);
    }
}
