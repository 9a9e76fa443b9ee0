//! `portcullis doctor URL` and `portcullis explain-token`.

mod chain;
mod page_file;

use std::{
    io::{self, IsTerminal as _, Read as _},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use portcullis_discovery::{FetchSettings, HttpFetch, Product};
use portcullis_doctor::{Doctor, Report, SettingNames, Step};
use portcullis_metadata::AccessToken;
use portcullis_terminal::{
    doctor_page, print_chain, print_json, print_step, print_summary, report, tell,
};
use url::Url;
use zeroize::Zeroizing;

use self::page_file::PageFile;
use crate::{cli, command_error};

/// The exit code with problems.
const PROBLEMS: u8 = 1;
/// The exit code if it cannot run.
const NOT_RUN: u8 = 2;

/// The maximum length of standard input. The examination rejects shorter tokens already.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

pub(crate) fn run(arguments: &cli::Doctor, product: Product) -> ExitCode {
    let sign_in = &arguments.sign_in;
    let examination = cli::Examination {
        url: sign_in.url.clone(),
        json: arguments.json,
        allow_private: sign_in.allow_private,
        ca_file: sign_in.ca_file.clone(),
        assume_pkce: sign_in.provider.assume_pkce,
    };
    let login = arguments.login.then_some(arguments);
    let registration = !arguments.no_registration && sign_in.client_id.is_none();
    let examined = || {
        let page = arguments.html.as_deref().map(PageFile::open).transpose()?;
        let token = arguments.token.then(read_token).transpose()?;
        let report = examine(&examination, product, token, login, registration, |_| true)?;
        if !arguments.json {
            print_chain(&report)?;
            print_summary(&report, 0)?;
        }
        if let Some(page) = page {
            page.write(&doctor_page(&report))?;
        }
        Ok(report)
    };
    exit_code(examined())
}

/// `portcullis explain-token URL`: examines the chain, but shows only failed steps and those of the
/// token.
pub(crate) fn explain_token(arguments: &cli::Examination, product: Product) -> ExitCode {
    let examined = || {
        let token = Some(read_token()?);
        let report = examine(arguments, product, token, None, false, |step| {
            step.is_about_token || step.has_problem()
        })?;
        if !arguments.json {
            print_summary(&report, 0)?;
        }
        Ok(report)
    };
    exit_code(examined())
}

fn exit_code(examined: anyhow::Result<Report>) -> ExitCode {
    match examined {
        Ok(report) if report.first_problem().is_none() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(PROBLEMS),
        Err(error) => {
            report(&command_error(error));
            ExitCode::from(NOT_RUN)
        }
    }
}

/// The token on standard input.
fn read_token() -> anyhow::Result<AccessToken> {
    let input = io::stdin();
    if input.is_terminal() {
        tell("paste the token, then press Enter and Ctrl-D");
    }
    let mut token = Zeroizing::new(String::new());
    input
        .lock()
        .take(MAX_TOKEN_BYTES + 1)
        .read_to_string(&mut token)
        .context("standard input cannot be read")?;
    anyhow::ensure!(
        token.len() as u64 <= MAX_TOKEN_BYTES,
        "standard input has more than {MAX_TOKEN_BYTES} bytes"
    );
    let token = token.trim();
    let token = token.strip_prefix("Bearer ").unwrap_or(token).trim();
    anyhow::ensure!(!token.is_empty(), "no token on standard input");
    Ok(AccessToken::new(token))
}

/// The options of `doctor`.
fn setting_names() -> SettingNames {
    let mut names = SettingNames::default();
    names.allow_private = "--allow-private";
    names.ca_file = "--ca-file";
    names.assume_pkce = "--assume-pkce";
    names.client_id = "--client-id";
    names
}

fn examine(
    arguments: &cli::Examination,
    product: Product,
    token: Option<AccessToken>,
    login: Option<&cli::Doctor>,
    test_registration: bool,
    shown: fn(&Step) -> bool,
) -> anyhow::Result<Report> {
    let url = Url::parse(&arguments.url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    let url =
        url.ok_or_else(|| anyhow::anyhow!("URL is not an http or https URL: {:?}", arguments.url))?;
    let mut fetch_settings = FetchSettings::of(product);
    fetch_settings.ca_file = arguments.ca_file.clone();
    let fetch = HttpFetch::new(fetch_settings)?;
    let doctor = Doctor::new(Arc::new(fetch))
        .allow_private_addresses(arguments.allow_private)
        .assume_pkce(arguments.assume_pkce)
        .setting_names(setting_names())
        .version(product.version)
        .test_registration(test_registration);
    let chain = login.map(chain::Chain::prepare).transpose()?;

    let mut printed = Ok(());
    let mut on_step = |step: &Step| {
        if !arguments.json && printed.is_ok() && shown(step) {
            printed = print_step(step);
        }
    };
    let report = crate::control_runtime()?.block_on(async {
        let mut report = doctor.examine(&url, token.as_ref(), &mut on_step).await;
        if let Some(chain) = chain {
            report.steps.extend(chain.run(product, &mut on_step).await?);
        }
        anyhow::Ok(report)
    })?;
    printed?;
    if arguments.json {
        print_json(&report)?;
    }
    Ok(report)
}
