//! [`Chromium`]: a headless Chromium, controlled by the driver in `tests/idp/browser`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{pages::UserInput, program::Program};
use xtask::{programs, workspace};

const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
const DRIVER: &str = "tests/idp/browser/drive.mjs";

/// An installed Chromium, and the folder of its screenshots and profiles.
pub(crate) struct Chromium {
    program: PathBuf,
    folder: PathBuf,
}

/// A page that was displayed.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SeenPage {
    /// `login`, `consent`, `broker`, `end`, or the name of an earlier page.
    pub(crate) kind: String,
    pub(crate) text: String,
}

impl Chromium {
    /// Finds the installed Chromium. Screenshots of all pages are written to `folder`.
    pub(crate) fn find(folder: &Path) -> Option<Self> {
        let program = NAMES.iter().find_map(|name| programs::find(name))?;
        Some(Self {
            program,
            folder: folder.to_owned(),
        })
    }

    /// Returns the program names that are searched for.
    pub(crate) fn names() -> String {
        NAMES.join(", ")
    }

    /// Opens the named URLs of `before`. Then opens `url` and responds to the pages up to the one
    /// at `redirect_uri`. Returns the pages in order.
    pub(crate) async fn visit(
        &self,
        name: &str,
        url: &Url,
        redirect_uri: &str,
        user_input: &UserInput<'_>,
        before: &[(&str, Url)],
    ) -> anyhow::Result<Vec<SeenPage>> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("{} cannot be created", self.folder.display()))?;
        let before: Vec<_> = before
            .iter()
            .map(|(name, url)| json!({ "name": name, "url": url.as_str() }))
            .collect();
        let plan = json!({
            "chromium": self.program,
            "profile": self.folder.join(format!("{name}.profile")),
            "url": url.as_str(),
            "end": redirect_uri,
            "user": user_input.user,
            "password": user_input.password,
            "consent": user_input.consents,
            "before": before,
            "pictures": self.folder,
            "name": name,
        });
        let file = self.folder.join(format!("{name}.json"));
        fs::write(&file, plan.to_string())?;
        let mut node = Command::new("node");
        node.arg(workspace::root().join(DRIVER)).arg(&file);
        let mut driver = Program::start(name, &mut node, &self.folder)
            .context("the browser's driver needs Node.js 20")?;
        let status = driver.wait().await?;
        fs::remove_dir_all(self.folder.join(format!("{name}.profile"))).ok();
        let output = driver.output();
        let seen: Vec<SeenPage> = output
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if !status.success() {
            bail!(
                "the browser's driver ended with {status}: {}",
                output.trim_end()
            );
        }
        Ok(seen)
    }
}
