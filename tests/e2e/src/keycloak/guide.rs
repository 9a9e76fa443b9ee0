//! The code blocks of `docs/use/keycloak.md`.
//!
//! The info string of a block names its purpose after the language: `sh names` is prepended to all
//! others, `sh keycloak` starts Keycloak, `sh server` starts Portcullis, `sh sign-in` prints a URL
//! to open, and any other `sh` is run. `toml NAME` is the file of that name. `text` is output and
//! is not run.

use std::fs;

use anyhow::{Context as _, bail, ensure};

use xtask::workspace;

/// The guide's code blocks, in order.
pub(super) struct Guide {
    pub(super) blocks: Vec<Block>,
}

/// A code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) role: Role,
    pub(super) text: String,
    /// The line at which it begins.
    pub(super) line: usize,
}

/// The purpose of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Names,
    Keycloak,
    Server,
    SignIn,
    Run,
    File(String),
    Shown,
}

pub(super) fn read() -> anyhow::Result<Guide> {
    let path = workspace::root().join("docs/use/keycloak.md");
    let text =
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    Guide::parse(&text).with_context(|| path.display().to_string())
}

impl Guide {
    /// Reads the code blocks of the page.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (line, content) in (1..).zip(text.lines()) {
            match (&mut open, content.strip_prefix("```")) {
                (None, Some(info)) => {
                    let role = Role::parse(info).with_context(|| format!("line {line}"))?;
                    open = Some(Block {
                        role,
                        text: String::new(),
                        line,
                    });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(block), None) => {
                    block.text.push_str(content);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        ensure!(open.is_none(), "the last block has no end");
        Ok(Self { blocks })
    }

    /// Returns the script that starts Keycloak.
    pub(super) fn start_of_keycloak(&self) -> anyhow::Result<String> {
        self.script(
            self.blocks
                .iter()
                .find(|block| block.role == Role::Keycloak)
                .context("no block starts Keycloak")?,
        )
    }

    /// Returns a block, preceded by the names that it can use.
    pub(super) fn script(&self, block: &Block) -> anyhow::Result<String> {
        let names = self
            .blocks
            .iter()
            .find(|block| block.role == Role::Names)
            .context("no block has the names")?;
        Ok(format!("{}\n{}", names.text, block.text))
    }
}

impl Role {
    fn parse(info: &str) -> anyhow::Result<Self> {
        let (language, role) = info.split_once(' ').unwrap_or((info, ""));
        Ok(match (language, role) {
            ("sh", "names") => Self::Names,
            ("sh", "keycloak") => Self::Keycloak,
            ("sh", "server") => Self::Server,
            ("sh", "sign-in") => Self::SignIn,
            ("sh", "") => Self::Run,
            ("toml", name) if !name.is_empty() => Self::File(name.to_owned()),
            ("text", "") => Self::Shown,
            _ => bail!("a block with the info string {info:?} is unknown"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn blocks_are_read_with_their_roles() {
        let guide = Guide::parse(
            "# Title\n```sh names\nA=1\n```\ntext\n```sh\necho $A\n```\n```toml x.toml\na = 1\n```",
        );
        let guide = guide.unwrap();
        let roles: Vec<_> = guide
            .blocks
            .iter()
            .map(|block| (block.role.clone(), block.line))
            .collect();
        assert_eq!(
            roles,
            [
                (Role::Names, 2),
                (Role::Run, 6),
                (Role::File("x.toml".into()), 9)
            ]
        );
        assert_eq!(guide.script(&guide.blocks[1]).unwrap(), "A=1\n\necho $A\n");
        for wrong in ["```bash\n```", "```\n```", "```toml\n```", "```sh\n"] {
            assert!(Guide::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Each block of the guide has a known purpose, and is valid shell or TOML.
    #[test]
    fn the_guide_can_be_run() {
        let guide = read().unwrap();
        guide.start_of_keycloak().unwrap();
        for block in &guide.blocks {
            match &block.role {
                Role::Shown => {}
                Role::File(name) => {
                    toml::from_str::<toml::Table>(&block.text)
                        .unwrap_or_else(|error| panic!("{name}: {error}"));
                }
                _ => {
                    let script = guide.script(block).unwrap();
                    let status = Command::new("sh").args(["-nc", &script]).status().unwrap();
                    assert!(
                        status.success(),
                        "the block in line {} is not a script",
                        block.line
                    );
                }
            }
        }
    }
}
