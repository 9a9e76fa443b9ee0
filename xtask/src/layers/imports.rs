/// The path of a module from the root of its crate, such as `["fetch", "tls"]`. The root's is
/// empty.
pub(super) type ModulePath = Vec<String>;

/// Returns the paths that the code of `module` names from its own crate, in `use` declarations and
/// elsewhere. The last names can be those of items. Comments and the unit tests at the end of the
/// text are ignored.
pub(super) fn imports(text: &str, module: &ModulePath) -> Vec<ModulePath> {
    let code = code_of(text);
    let mut found = Vec::new();
    for (start, keyword) in keywords(&code) {
        let mut base = match keyword {
            "self" => module.clone(),
            "super" => parent(module),
            _ => ModulePath::new(),
        };
        let mut rest = &code[start + keyword.len() + 2..];
        while let Some(outer) = rest.strip_prefix("super::") {
            base = parent(&base);
            rest = outer;
        }
        read_tree(rest, &base, &mut found);
    }
    found
}

/// Removes comments, and everything from the first `#[cfg(test)]` that a module with a body
/// follows.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_test = line.trim() == "#[cfg(test)]";
        while is_test
            && lines
                .peek()
                .is_some_and(|next| next.trim_start().starts_with("#["))
        {
            // An attribute can have several lines.
            while lines.next().is_some_and(|line| !line.ends_with(']')) {}
        }
        match lines.peek() {
            Some(next)
                if is_test && next.trim_start().starts_with("mod ") && next.ends_with('{') =>
            {
                break;
            }
            Some(_) if is_test => drop(lines.next()),
            _ if line.trim_start().starts_with("//") => {}
            _ => {
                code.push_str(line);
                code.push('\n');
            }
        }
    }
    code
}

/// Returns where paths begin with `crate::`, `self::` or `super::`.
fn keywords(code: &str) -> Vec<(usize, &'static str)> {
    let mut found: Vec<_> = ["crate", "self", "super"]
        .into_iter()
        .flat_map(|keyword| {
            let starts = code.match_indices(keyword).map(|(start, _)| start);
            let begins = move |start: &usize| {
                let before = code[..*start].chars().next_back();
                let is_start =
                    before.is_none_or(|before| !is_name(before) && !matches!(before, ':' | '$'));
                is_start && code[start + keyword.len()..].starts_with("::")
            };
            starts.filter(begins).map(move |start| (start, keyword))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Reads a path, or a tree of paths in braces, and returns what follows it.
fn read_tree<'a>(text: &'a str, base: &ModulePath, found: &mut Vec<ModulePath>) -> &'a str {
    let mut path = base.clone();
    let mut rest = text.trim_start();
    loop {
        if let Some(tree) = rest.strip_prefix('{') {
            rest = tree.trim_start();
            while !rest.is_empty() && !rest.starts_with('}') {
                let after = read_tree(rest, &path, found).trim_start();
                // What is no path, such as a renaming, is skipped.
                rest = after.trim_start_matches(|character| !matches!(character, ',' | '}'));
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        let name = &rest[..rest
            .find(|character| !is_name(character))
            .unwrap_or(rest.len())];
        rest = &rest[name.len()..];
        if !name.is_empty() && name != "self" {
            path.push(name.to_owned());
        }
        match rest.strip_prefix("::") {
            Some(next) if !name.is_empty() => rest = next,
            _ => {
                found.push(path);
                return rest;
            }
        }
    }
}

fn parent(module: &ModulePath) -> ModulePath {
    module[..module.len().saturating_sub(1)].to_vec()
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, module: &[&str]) -> Vec<String> {
        let module: ModulePath = module.iter().map(|name| (*name).to_owned()).collect();
        imports(text, &module)
            .into_iter()
            .map(|path| path.join("::"))
            .collect()
    }

    #[test]
    fn declarations_and_paths_are_found() {
        let text = "use crate::{error::VerifyError, settings::{self, Issuer as Other}};\nuse super::{a, b::C};\nfn f() { crate::time::now(); super::super::x::y(); }";
        let expected = [
            "error::VerifyError",
            "settings",
            "settings::Issuer",
            "p::a",
            "p::b::C",
            "time::now",
            "x::y",
        ];
        assert_eq!(found(text, &["p", "q"]), expected);
        assert_eq!(
            found(
                "pub(crate) use self::{one::One, two};\nuse std::fmt;",
                &["p"]
            ),
            ["p::one::One", "p::two"]
        );
    }

    #[test]
    fn comments_tests_and_other_names_are_ignored() {
        let text = "//! [`X`](crate::a::X)\n    /// crate::b::c\n#[cfg(test)]\nuse crate::d::E;\nfn f() { $crate::g(); my_crate::h(); }\n#[cfg(test)]\n#[expect(x)]\n#[expect(\n    y\n)]\nmod tests {\n    use crate::i::J;\n}";
        assert_eq!(found(text, &["p"]), [""; 0]);
    }
}
