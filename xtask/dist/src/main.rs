//! `cargo xtask dist`: builds the packages of a release into `target/packages`, and checks the
//! files of `deploy`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]

mod archive;
mod binaries;
mod chart;
mod checks;
mod crates;
mod debian;
mod foreign;
mod formula;
mod image;
mod manual;
mod memory;
mod npm;
mod provenance;
mod python;
mod release;
mod report;
mod roots;
mod sbom;
mod shell;
mod target;
mod toolchain;

use clap::{Parser, ValueEnum};

use release::Release;
use report::Report;
use target::{TARGETS, Target};

/// Build the packages of a release into `target/packages`.
///
/// What cannot be built here is listed with the reason. The command fails if something fails that
/// can be built.
#[derive(Parser)]
#[command(name = "cargo xtask dist", bin_name = "cargo xtask dist")]
struct Arguments {
    /// Build only this part, and what it needs. Can be repeated.
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Build only for this target. Can be repeated.
    #[arg(long, value_name = "TRIPLE", value_parser = Target::parse)]
    target: Vec<&'static Target>,
    /// The cargo profile of the programs.
    #[arg(long, value_name = "NAME", default_value = "dist", value_parser = ["dev", "release", "dist"])]
    profile: String,
    /// Where the files will be published, for the Homebrew formula.
    #[arg(
        long,
        value_name = "URL",
        default_value = "https://downloads.example.com/portcullis"
    )]
    url: String,
    /// The maintainer that the Debian package names.
    #[arg(
        long,
        value_name = "NAME <ADDRESS>",
        default_value = "The Portcullis authors <portcullis@example.com>"
    )]
    maintainer: String,
    /// Check the files of `deploy` instead, and build nothing.
    #[arg(long)]
    check: bool,
}

/// A part of a release.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Archives of the full program with manual pages and completions, for each target.
    Archives,
    /// The Debian package.
    Deb,
    /// The container image.
    Image,
    /// The npm packages.
    Npm,
    /// The Helm chart.
    Chart,
    /// The source archive and the Homebrew formula.
    Source,
    /// The bill of materials (CycloneDX).
    Sbom,
    /// The crates, as a dry run of their publication.
    Crates,
    /// A type check for the targets that have no packages yet: Windows and macOS.
    Foreign,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut report = Report::default();
    if arguments.check {
        checks::run(&mut report)?;
        return report.finish();
    }
    let release = Release::new(&arguments.profile, &arguments.url, &arguments.maintainer)?;
    let wants = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    let targets: Vec<&Target> = match arguments.target.as_slice() {
        [] => TARGETS.iter().collect(),
        chosen => chosen.to_vec(),
    };
    if wants(Part::Source) {
        report.add("source", || formula::source(&release));
        report.add("formula", || formula::formula(&release));
    }
    if wants(Part::Chart) {
        report.add("chart", || chart::build(&release));
    }
    if wants(Part::Crates) {
        report.add("crates", || crates::dry_run(&release));
    }
    if [
        Part::Archives,
        Part::Deb,
        Part::Image,
        Part::Npm,
        Part::Sbom,
    ]
    .into_iter()
    .any(wants)
    {
        for target in targets {
            build_for(&release, target, &wants, &mut report);
        }
    }
    if wants(Part::Npm) {
        report.add("npm package", || npm::launcher(&release));
    }
    if wants(Part::Foreign) {
        for triple in foreign::TRIPLES {
            report.add(&format!("check {triple}"), || {
                foreign::check(&release, triple)
            });
        }
    }
    let packages = report.files();
    report.add("provenance", || provenance::write(&release, &packages));
    let files = report.files();
    report.add("checksums", || release.checksums(&files));
    report.finish()
}

/// Builds the packages for one target. The Debian package and the image have the server without the
/// development commands.
fn build_for(
    release: &Release,
    target: &Target,
    wants: &impl Fn(Part) -> bool,
    report: &mut Report,
) {
    use binaries::Features::{Full, Server};
    let triple = target.triple;
    if wants(Part::Archives) || (wants(Part::Npm) && target.npm.is_some()) {
        let built = report.add(&format!("program {triple}"), || {
            binaries::build(release, target, Full)
        });
        if built && wants(Part::Archives) {
            report.add(&format!("archive {triple}"), || {
                archive::build(release, target)
            });
        }
        if let Some(platform) = target.npm.filter(|_| built && wants(Part::Npm)) {
            report.add(&format!("npm {}", platform.suffix), || {
                npm::platform(release, target, platform)
            });
        }
    }
    if target.is_static() && (wants(Part::Deb) || wants(Part::Image)) {
        let built = report.add(&format!("server {triple}"), || {
            binaries::build(release, target, Server)
        });
        if built {
            report.add(&format!("memory {triple}"), || {
                memory::at_rest(release, target)
            });
        }
        if built
            && wants(Part::Deb)
            && report.add(&format!("deb {}", target.debian), || {
                debian::build(release, target)
            })
        {
            report.add(&format!("lintian {}", target.debian), || {
                debian::lintian(release, target)
            });
        }
        if built && wants(Part::Image) {
            report.add(&format!("image {}", target.debian), || {
                image::build(release, target)
            });
        }
    }
    if wants(Part::Sbom) {
        report.add(&format!("sbom {triple}"), || sbom::write(release, target));
    }
}
