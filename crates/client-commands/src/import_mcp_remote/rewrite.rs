//! The edits that replace mcp-remote in a client's configuration.

use std::path::{Path, PathBuf};

use portcullis_client::store::CredentialStore;

use super::{
    edit::{self, Edit},
    jsonc::{Document, Node, Value},
    launcher::Launch,
    mask::{HIDDEN, shown_arguments},
    migration::Migration,
    secret_file::{self, SecretFile},
};
use crate::mcp_remote::{
    arguments::Arguments,
    translation::{Context, Translation},
};

/// The members in which clients list their servers: Claude Desktop, Cursor and Windsurf; VS Code;
/// Zed.
const LISTS: [&str; 3] = ["mcpServers", "servers", "context_servers"];
/// The maximum number of arguments. A server with more is not changed.
const MAX_ARGUMENTS: usize = 256;

/// The replacement of mcp-remote.
pub(super) struct Replacement<'a> {
    pub(super) program: &'a str,
    /// Where tokens and secrets are stored.
    pub(super) store: Option<&'a Path>,
    /// Whether the user chose the store, so that the configuration must name it.
    pub(super) is_store_chosen: bool,
}

/// The changes of a configuration.
#[derive(Default)]
pub(super) struct Rewrite {
    pub(super) servers: Vec<Server>,
    pub(super) edits: Vec<Edit>,
    /// The masks of all strings and comments that are not displayed unchanged.
    pub(super) masks: Vec<Edit>,
}

/// A server that is started with mcp-remote.
pub(super) struct Server {
    pub(super) name: String,
    pub(super) notices: Vec<String>,
    /// What to migrate, or why the server is not changed.
    pub(super) result: Result<Migration, String>,
}

impl Rewrite {
    /// Plans the changes. It reads the files that arguments name, and writes nothing.
    pub(super) fn of(text: &str, document: &Document, replacement: &Replacement<'_>) -> Self {
        let mut rewrite = Self::default();
        rewrite
            .masks
            .extend(document.comments.iter().map(|span| Edit {
                span: span.clone(),
                text: String::new(),
                shown: comment_mask(text, span.clone()),
            }));
        rewrite.mask(&document.root);
        rewrite.find(text, &document.root, replacement);
        rewrite
    }

    /// Masks all string values. Those that can be displayed are unmasked later.
    fn mask(&mut self, node: &Node) {
        match &node.value {
            Value::Object(members) => members.iter().for_each(|member| self.mask(&member.node)),
            Value::Array(items) => items.iter().for_each(|item| self.mask(&item.node)),
            Value::String(_) => self.masks.push(Edit::string(node.span.clone(), "", HIDDEN)),
            Value::Other => {}
        }
    }

    fn unmask(&mut self, node: &Node, shown: &str) {
        if let Some(mask) = self.masks.iter_mut().find(|mask| mask.span == node.span) {
            mask.shown = edit::literal(shown);
        }
    }

    fn find(&mut self, text: &str, node: &Node, replacement: &Replacement<'_>) {
        for member in node.as_object().unwrap_or_default() {
            let servers = member
                .node
                .as_object()
                .filter(|_| LISTS.contains(&member.name.as_str()));
            match servers {
                Some(servers) => servers
                    .iter()
                    .for_each(|it| self.server(text, &it.name, &it.node, replacement)),
                None => self.find(text, &member.node, replacement),
            }
        }
    }

    fn server(&mut self, text: &str, name: &str, node: &Node, replacement: &Replacement<'_>) {
        // An older configuration format of Zed has an object with `path` and `args` as the command.
        let (holder, program) = match node.get("command") {
            Some(command) if command.as_object().is_some() => (command, command.get("path")),
            command => (node, command),
        };
        let Some((program, command)) = program.and_then(|node| Some((node, node.as_str()?))) else {
            return;
        };
        let items = holder
            .get("args")
            .and_then(Node::as_array)
            .unwrap_or_default();
        let arguments: Vec<&str> = items.iter().filter_map(|item| item.node.as_str()).collect();
        let start = match Launch::of(command, &arguments) {
            Launch::Other => return,
            Launch::McpRemote(start)
                if arguments.len() == items.len() && items.len() <= MAX_ARGUMENTS =>
            {
                start
            }
            Launch::McpRemote(_) | Launch::Unknown => {
                let reason =
                    "it starts mcp-remote in a way that is not understood; change it by hand"
                        .to_owned();
                return self.servers.push(Server {
                    name: name.to_owned(),
                    notices: Vec::new(),
                    result: Err(reason),
                });
            }
        };
        let environment = holder.get("env");
        let mut notices = Vec::new();
        let result = plan(
            arguments.get(start..).unwrap_or_default(),
            environment,
            replacement,
            &mut notices,
        );
        let result = result
            .map_err(|error| format!("{error:#}"))
            .map(|(new, migration)| {
                for (item, shown) in items.iter().zip(shown_arguments(&arguments)) {
                    self.unmask(&item.node, &shown);
                }
                self.unmask(program, command);
                self.edits.push(Edit::string(
                    program.span.clone(),
                    replacement.program,
                    replacement.program,
                ));
                let shown = shown_arguments(&new.iter().map(String::as_str).collect::<Vec<_>>());
                let shown = |index: usize| shown.get(index).cloned().unwrap_or_default();
                self.edits.extend(edit::array(text, items, &new, shown));
                migration
            });
        self.servers.push(Server {
            name: name.to_owned(),
            notices,
            result,
        });
    }
}

/// Returns the arguments of this program, and what to migrate.
fn plan(
    texts: &[&str],
    environment: Option<&Node>,
    replacement: &Replacement<'_>,
    notices: &mut Vec<String>,
) -> anyhow::Result<(Vec<String>, Migration)> {
    let arguments = Arguments::parse(texts.iter().copied())?;
    let context = Context {
        environment: None,
        store: replacement.store,
    };
    let mut translation = Translation::of(&arguments, &context)?;
    let client_id = value_of(&translation.arguments, "--client-id");
    let has_issuer = value_of(&translation.arguments, "--authorization-server").is_some();
    let secret = translation.client_secret.take();
    let client_secret = match (secret, replacement.store) {
        _ if translation.depends_on_start => None,
        (Some(secret), Some(store)) => {
            Some(secret_file::choose(store, &translation.session, secret)?)
        }
        (secret, _) => {
            translation.depends_on_start = secret.is_some();
            None
        }
    };
    let variable = |name: &str| {
        environment
            .and_then(|it| it.get(name))
            .and_then(Node::as_str)
            .filter(|it| !it.is_empty() && !it.contains("${"))
    };
    let separate = value_of(&translation.arguments, "--store").map(PathBuf::from);
    let mut new = match translation.depends_on_start {
        true => [&["mcp-remote"][..], texts]
            .concat()
            .iter()
            .map(|&text| text.to_owned())
            .collect(),
        false => std::mem::take(&mut translation.arguments),
    };
    if !translation.depends_on_start {
        let mut add = |option: &str, value: &str| new.extend([option.to_owned(), value.to_owned()]);
        if let Some(SecretFile { path, .. }) = &client_secret {
            add("--client-secret-file", &path.to_string_lossy());
        }
        if let Some(file) = variable("NODE_EXTRA_CA_CERTS") {
            add("--ca-file", file);
        }
        if let Some(store) = replacement
            .store
            .filter(|_| replacement.is_store_chosen && separate.is_none())
        {
            add("--store", &store.to_string_lossy());
        }
    }
    notices.append(&mut translation.notices);
    let migration = Migration {
        mcp_remote_directory: variable("MCP_REMOTE_CONFIG_DIR").map(PathBuf::from),
        store: match translation.depends_on_start {
            true => started_store(separate.as_deref()),
            false => separate.or_else(|| replacement.store.map(Path::to_path_buf)),
        },
        session: translation.session,
        arguments,
        client_id,
        client_secret,
    };
    // The resource could name another authorization server, which would get the client's secret.
    if let Some(issuer) = migration
        .recorded_issuer()
        .filter(|_| !has_issuer && !translation.depends_on_start)
    {
        new.extend(["--authorization-server".to_owned(), issuer.to_string()]);
    }
    Ok((new, migration))
}

/// The store of `portcullis mcp-remote`, which has no option for it.
fn started_store(separate: Option<&Path>) -> Option<PathBuf> {
    let user = CredentialStore::user_directory()?;
    Some(
        separate
            .and_then(Path::file_name)
            .map_or_else(|| user.clone(), |name| user.join(name)),
    )
}

fn value_of(arguments: &[String], option: &str) -> Option<String> {
    let joined = format!("{option}=");
    let index = arguments.iter().position(|argument| argument == option);
    let separate = index.and_then(|index| arguments.get(index + 1)).cloned();
    separate.or_else(|| {
        arguments
            .iter()
            .find_map(|argument| argument.strip_prefix(&joined).map(str::to_owned))
    })
}

/// A mask for a comment with the same number of lines.
fn comment_mask(text: &str, span: std::ops::Range<usize>) -> String {
    let comment = text.get(span).unwrap_or_default();
    match comment.starts_with("//") {
        true => format!("// {HIDDEN}"),
        false => format!(
            "/* {HIDDEN}{} */",
            "\n".repeat(comment.matches('\n').count())
        ),
    }
}
