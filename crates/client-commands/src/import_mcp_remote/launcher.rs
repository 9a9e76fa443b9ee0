//! How a configuration starts mcp-remote: directly, or through npx or a similar program.

/// Whether a server's command starts mcp-remote.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Launch {
    /// It starts something else.
    Other,
    /// It starts mcp-remote, in an unknown way.
    Unknown,
    /// It starts mcp-remote, with the arguments from this index on.
    McpRemote(usize),
}

/// This program, whose command `mcp-remote` needs no replacement.
const PORTCULLIS: &str = "portcullis";

/// Programs that start a package, or that start such a program.
const LAUNCHERS: [&str; 10] = [
    "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "node", "cmd",
];

/// What can precede the package besides options.
const SUBCOMMANDS: [&str; 6] = ["exec", "dlx", "x", "run", "/c", "/C"];

impl Launch {
    pub(super) fn of(command: &str, arguments: &[&str]) -> Self {
        if is_package(program_name(command)) {
            return Self::McpRemote(0);
        }
        if program_name(command) == PORTCULLIS {
            return Self::Other;
        }
        let names_it = |text: &&str| {
            text.split_whitespace()
                .any(|word| !word.starts_with('@') && is_package(program_name(word)))
        };
        let Some(package) = package_index(arguments) else {
            let is_hidden = names_it(&command) || arguments.iter().any(names_it);
            return if is_hidden {
                Self::Unknown
            } else {
                Self::Other
            };
        };
        let before = arguments.get(..package).unwrap_or_default();
        let is_known = |text: &&str| {
            text.starts_with('-')
                || SUBCOMMANDS.contains(text)
                || is_launcher(text)
                || is_package(text)
        };
        match is_launcher(command) && before.iter().all(is_known) {
            true => Self::McpRemote(package + 1),
            false => Self::Unknown,
        }
    }
}

/// Whether an argument is part of starting mcp-remote and not a secret.
pub(super) fn is_start(text: &str) -> bool {
    SUBCOMMANDS.contains(&text) || is_launcher(text) || is_package(text)
}

/// The index of the package to run. `-p PACKAGE` only names what to install.
fn package_index(arguments: &[&str]) -> Option<usize> {
    let is_installed = |index: usize| {
        index
            .checked_sub(1)
            .and_then(|before| arguments.get(before))
            .is_some_and(|it| ["-p", "--package"].contains(it))
    };
    arguments
        .iter()
        .enumerate()
        .position(|(index, text)| is_package(text) && !is_installed(index))
}

fn is_launcher(text: &str) -> bool {
    LAUNCHERS.contains(&program_name(text))
}

/// The name of a program without its folder and the file extensions of Windows.
fn program_name(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    [".cmd", ".exe", ".ps1"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name)
}

/// Whether the argument is `mcp-remote`, with or without a version, or its main script.
fn is_package(text: &str) -> bool {
    let path = text.replace('\\', "/");
    let name = text
        .strip_prefix("npm:")
        .unwrap_or(text)
        .split('@')
        .next()
        .unwrap_or_default();
    name == "mcp-remote" || path.ends_with("/mcp-remote/dist/proxy.js")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_recognized() {
        for (command, arguments, expected) in [
            ("npx", &["mcp-remote", "u"][..], Launch::McpRemote(1)),
            (
                "/opt/homebrew/bin/npx",
                &["-y", "mcp-remote@latest", "u"],
                Launch::McpRemote(2),
            ),
            (
                "C:\\Program Files\\nodejs\\npx.cmd",
                &["-y", "mcp-remote@0.1.18", "u"],
                Launch::McpRemote(2),
            ),
            (
                "cmd",
                &["/c", "npx", "-y", "mcp-remote", "u"],
                Launch::McpRemote(4),
            ),
            (
                "npx",
                &["-p", "mcp-remote@latest", "mcp-remote", "u"],
                Launch::McpRemote(3),
            ),
            (
                "npx",
                &["--package=mcp-remote", "mcp-remote", "u"],
                Launch::McpRemote(2),
            ),
            ("bunx", &["mcp-remote", "u"], Launch::McpRemote(1)),
            ("pnpm", &["dlx", "mcp-remote", "u"], Launch::McpRemote(2)),
            (
                "deno",
                &["run", "-A", "npm:mcp-remote@0.15.1", "u"],
                Launch::McpRemote(3),
            ),
            (
                "node",
                &["/usr/lib/node_modules/mcp-remote/dist/proxy.js", "u"],
                Launch::McpRemote(1),
            ),
            ("/usr/local/bin/mcp-remote", &["u"], Launch::McpRemote(0)),
            (
                "npx",
                &["-p", "mcp-remote", "mcp-remote-client", "u"],
                Launch::Unknown,
            ),
            ("sh", &["-c", "npx mcp-remote https://a"], Launch::Unknown),
            ("npx mcp-remote https://a", &[], Launch::Unknown),
            ("docker", &["run", "mcp-remote", "u"], Launch::Unknown),
            ("npx", &["other", "mcp-remote", "u"], Launch::Unknown),
            ("npx", &["-y", "mcp-remote-extra", "u"], Launch::Other),
            ("npx", &["@someone/mcp-remote", "u"], Launch::Other),
            ("portcullis", &["connect", "u"], Launch::Other),
            ("portcullis", &["mcp-remote", "u"], Launch::Other),
        ] {
            assert_eq!(
                Launch::of(command, arguments),
                expected,
                "{command} {arguments:?}"
            );
        }
    }
}
