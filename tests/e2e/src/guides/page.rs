//! [`Page`]: the files and commands of a guide.

use anyhow::{Context as _, bail, ensure};

/// A guide in Markdown, as far as it can be executed.
///
/// - A block whose first line is a comment with nothing but a file name (`# portcullis.toml`) is
///   that file.
/// - In a `console` block, a line with `$ ` is a command. `\` at its end continues it, and `&`
///   leaves it running. The other lines are expected in the output of the command before, in this
///   order; `...` stands for any lines.
/// - A block marked `console,not-run` is not executed. A comment before it states the reason:
///   `<!-- not run: REASON -->`. Only such a block can have commands of root (`# `).
/// - `<!-- uses: PAGE/FILE -->` stands for that file of another guide.
/// - `<!-- stop: everything -->` stands for the end of the commands that were left running.
/// - `<!-- needs: NAME ... -->` lists programs without which the guide cannot be executed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) needs: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// A step of a guide.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Writes a file.
    File { name: String, text: String },
    /// Writes a file of another guide.
    OtherFile { page: String, name: String },
    /// Runs a command to its end.
    Command { line: String, expected: Vec<String> },
    /// Starts a command that runs until the next stop, or the end of the guide.
    Background { line: String },
    /// Stops what runs.
    Stop,
}

impl Page {
    /// Reads a guide. Fails when a block is not closed, a command is neither executed nor marked,
    /// or a mark has no reason. The error has the line of the block.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut page = Self::default();
        let mut lines = text.lines().enumerate();
        let mut before = "";
        while let Some((number, line)) = lines.next() {
            if let Some(needs) = comment(line, "needs:") {
                page.needs
                    .extend(needs.split_whitespace().map(str::to_owned));
            }
            if let Some((other, name)) =
                comment(line, "uses:").and_then(|used| used.split_once('/'))
            {
                page.steps.push(Step::OtherFile {
                    page: other.to_owned(),
                    name: name.to_owned(),
                });
            }
            if comment(line, "stop:") == Some("everything") {
                page.steps.push(Step::Stop);
            }
            ensure!(
                !line.trim_start().starts_with("~~~"),
                "line {}: write blocks with ```",
                number + 1
            );
            let Some(language) = line.trim_start().strip_prefix("```") else {
                if !line.trim().is_empty() {
                    before = line;
                }
                continue;
            };
            let indent = line.len() - line.trim_start().len();
            let mut block = Vec::new();
            loop {
                match lines.next() {
                    Some((_, end)) if end.trim() == "```" => break,
                    Some((_, inner)) => block.push(inner.get(indent..).unwrap_or_default()),
                    None => bail!("line {}: the block is not closed", number + 1),
                }
            }
            match language.trim() {
                "console" => {
                    page.steps
                        .extend(commands(&block).with_context(|| format!("line {}", number + 1))?);
                }
                "console,not-run" => ensure!(
                    comment(before, "not run:").is_some_and(|reason| !reason.is_empty()),
                    "line {}: no `<!-- not run: REASON -->` before the block",
                    number + 1
                ),
                language
                    if is_shell(language) || block.iter().any(|line| line.starts_with("$ ")) =>
                {
                    bail!(
                        "line {}: write commands as `console` or `console,not-run`",
                        number + 1
                    )
                }
                _ => page.steps.extend(file(&block)),
            }
            before = "";
        }
        Ok(page)
    }

    /// Returns the content of a file of this guide.
    pub(super) fn file(&self, wanted: &str) -> Option<&str> {
        self.steps.iter().find_map(|step| match step {
            Step::File { name, text } if name == wanted => Some(text.as_str()),
            _ => None,
        })
    }
}

/// Returns the text of a comment with this label.
fn comment<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    line.trim()
        .strip_prefix("<!--")?
        .strip_suffix("-->")?
        .trim()
        .strip_prefix(label)
        .map(str::trim)
}

/// Returns whether a block of this language has commands that this module does not read.
fn is_shell(language: &str) -> bool {
    const SHELLS: [&str; 8] = [
        "sh",
        "bash",
        "shell",
        "zsh",
        "fish",
        "powershell",
        "bat",
        "cmd",
    ];
    let first = language
        .split([' ', ',', '-', '{'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    SHELLS.contains(&&*first) || first.starts_with("console") || first == "terminal"
}

/// Reads a block that shows a file: its first line is a comment with the name.
fn file(block: &[&str]) -> Option<Step> {
    let first = block.first()?;
    let name = ["# ", "// ", "; "]
        .iter()
        .find_map(|prefix| first.strip_prefix(prefix))?
        .trim();
    let is_name = name
        .rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty())
        || name.ends_with("file");
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    (is_name && is_plain && !name.starts_with('/') && !name.contains("..")).then(|| Step::File {
        name: name.to_owned(),
        text: block.join("\n") + "\n",
    })
}

/// Reads a block of commands and their output.
fn commands(block: &[&str]) -> anyhow::Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = block.iter();
    while let Some(line) = lines.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                command.push('\n');
                command.push_str(lines.next().unwrap_or(&""));
            }
            steps.push(match command.strip_suffix('&') {
                Some(background) => Step::Background {
                    line: background.trim().to_owned(),
                },
                None => Step::Command {
                    line: command,
                    expected: Vec::new(),
                },
            });
            continue;
        }
        ensure!(
            !line.starts_with("# "),
            "a command of root is not executed; mark the block"
        );
        match steps.last_mut() {
            _ if line.trim().is_empty() || line.trim() == "..." => {}
            Some(Step::Command { expected, .. }) => expected.push(line.trim().to_owned()),
            _ => bail!("{line:?} is not the output of a command that ends"),
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = "# A guide\n<!-- needs: nginx python3 -->\n<!-- uses: other/server.py -->\n```toml\n# portcullis.toml\nlisten = \"x\"\n```\n\
        ```toml\nlisten = \"a fragment\"\n```\n```console\n$ portcullis serve &\n$ curl \\\n  -i x\nHTTP/1.1 401\n...\n```\n\
        <!-- not run: needs root -->\n```console,not-run\n$ rm x\n```\n\n<!-- stop: everything -->\n";

    #[test]
    fn files_and_commands_are_found() {
        let page = Page::parse(GUIDE).unwrap();
        assert_eq!(page.needs, ["nginx", "python3"]);
        let file = Step::File {
            name: "portcullis.toml".into(),
            text: "# portcullis.toml\nlisten = \"x\"\n".into(),
        };
        let serve = Step::Background {
            line: "portcullis serve".into(),
        };
        let curl = Step::Command {
            line: "curl \\\n  -i x".into(),
            expected: vec!["HTTP/1.1 401".into()],
        };
        let other = Step::OtherFile {
            page: "other".into(),
            name: "server.py".into(),
        };
        assert_eq!(page.steps, [other, file, serve, curl, Step::Stop]);
        assert_eq!(
            page.file("portcullis.toml"),
            Some("# portcullis.toml\nlisten = \"x\"\n")
        );
    }

    #[test]
    fn unmarked_commands_are_rejected() {
        for (text, error) in [
            (
                "```console,not-run\n$ x\n```\n",
                "no `<!-- not run: REASON -->`",
            ),
            (
                "<!-- not run: -->\n```console,not-run\n$ x\n```\n",
                "no `<!-- not run: REASON -->`",
            ),
            (
                "<!-- not run: y -->\ntext\n```console,not-run\n$ x\n```\n",
                "no `<!-- not run: REASON -->`",
            ),
            ("```sh\nx\n```\n", "write commands as `console`"),
            ("```bash title\nx\n```\n", "write commands as `console`"),
            ("```shell-session\nx\n```\n", "write commands as `console`"),
            (
                "```console,no-run\n$ x\n```\n",
                "write commands as `console`",
            ),
            (
                "```console not-run\n$ x\n```\n",
                "write commands as `console`",
            ),
            ("```\n$ x\n```\n", "write commands as `console`"),
            ("```text\n$ x\n```\n", "write commands as `console`"),
            ("~~~console\n$ x\n~~~\n", "write blocks with"),
            ("```console\n# x\n```\n", "line 1: a command of root"),
            ("```console\nx\n```\n", "not the output of a command"),
            ("```console\n$ x &\ny\n```\n", "not the output of a command"),
            ("```console\n$ x\n", "not closed"),
        ] {
            let found = format!("{:#}", Page::parse(text).unwrap_err());
            assert!(found.contains(error), "{text:?}: {found}");
        }
    }
}
