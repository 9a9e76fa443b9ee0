//! The pages that users see.

use std::path::Path;

use anyhow::{Context as _, ensure};
use portcullis_broker::{Logo, PageSettings};

use super::resources::BrokerResources;
use crate::{
    Diagnostics,
    file::{Broker, BrokerPage},
    plan::files,
};

/// The longest name of the service, in characters.
const MAX_NAME: usize = 64;
/// The longest description of a scope, in characters.
const MAX_DESCRIPTION: usize = 200;
/// The largest logo, in bytes. Every page contains it.
const MAX_LOGO: usize = 64 << 10;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Validates the settings of pages, and reads the logo. Adds an error for each invalid value, and
/// returns `None` if there is one.
pub(super) fn plan(
    broker: &Broker,
    resources: &BrokerResources<'_>,
    errors: &mut Diagnostics<'_>,
) -> Option<PageSettings> {
    let BrokerPage {
        name,
        logo_file,
        accent,
    } = &broker.page;
    let mut of_page = errors.table("page");
    let name = of_page.take("name", name.as_deref().map(check_name).transpose());
    let logo = of_page.take("logo_file", logo_file.as_deref().map(logo).transpose());
    let accent = of_page.take("accent", accent.as_deref().map(color).transpose());
    let described = errors.take_all(
        "scope_descriptions",
        broker.scope_descriptions.iter().map(|(scope, text)| {
            resources.check_scope("scope_descriptions", scope)?;
            check_description(scope, text)
        }),
    );
    described?;
    Some(PageSettings {
        name: name?,
        logo: logo?,
        accent: accent?,
        scopes: broker.scope_descriptions.clone(),
        remember: broker.remember_consent,
        paste_callback: broker.paste_callback,
    })
}

fn check_name(name: &str) -> anyhow::Result<Box<str>> {
    ensure!(
        !name.trim().is_empty(),
        "name is empty; write the name of the service, such as \"Example Tools\", or remove the key"
    );
    ensure!(
        !has_control(name),
        "name = {name:?} has a line break or another control character; write the name on one line"
    );
    let length = name.chars().count();
    ensure!(
        length <= MAX_NAME,
        "name has {length} characters; shorten it to {MAX_NAME}"
    );
    Ok(name.into())
}

fn check_description(scope: &str, text: &str) -> anyhow::Result<()> {
    ensure!(
        !text.trim().is_empty(),
        "scope_descriptions has no text for {scope:?}; write what the scope allows, or remove the entry"
    );
    ensure!(
        !has_control(text),
        "scope_descriptions has a text for {scope:?} with a line break or another control character; write it on one line"
    );
    let length = text.chars().count();
    ensure!(
        length <= MAX_DESCRIPTION,
        "scope_descriptions has a text for {scope:?} of {length} characters; shorten it to {MAX_DESCRIPTION}"
    );
    Ok(())
}

fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

/// Parses `#` and six hexadecimal digits.
fn color(text: &str) -> anyhow::Result<[u8; 3]> {
    let digits = text
        .strip_prefix('#')
        .filter(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let number = digits
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .with_context(|| {
            format!("accent = {text:?} is not a color; write # and six hexadecimal digits, such as \"#0b57d0\"")
        })?;
    let [_, red, green, blue] = number.to_be_bytes();
    Ok([red, green, blue])
}

fn logo(file: &Path) -> anyhow::Result<Logo> {
    let shown = file.display();
    let bytes = files::read("logo_file", file)?;
    ensure!(
        bytes.len() <= MAX_LOGO,
        "logo_file = \"{shown}\" has {} bytes, and every page contains it; make it smaller than {MAX_LOGO} bytes",
        bytes.len()
    );
    let is_svg = || std::str::from_utf8(&bytes).is_ok_and(|text| text.contains("<svg"));
    let media_type = if bytes.starts_with(PNG) {
        "image/png"
    } else if is_svg() {
        "image/svg+xml"
    } else {
        anyhow::bail!("logo_file = \"{shown}\" is neither SVG nor PNG; convert it to one of them")
    };
    Ok(Logo { media_type, bytes })
}
