//! The circles of imports between the modules of a crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use super::imports::{ModulePath, imports};

/// The modules of a crate, and those that each imports.
#[derive(Default)]
pub(super) struct Modules(BTreeMap<ModulePath, BTreeSet<ModulePath>>);

impl Modules {
    /// Reads the modules below a source folder. Those of tests are left out. Fails if a file cannot
    /// be read.
    pub(super) fn read(source: &Path) -> io::Result<Self> {
        let mut texts = BTreeMap::new();
        read_folder(source, &ModulePath::new(), &mut texts)?;
        Ok(Self::of(&texts))
    }

    /// An import between a module and one that contains it is none: they are parts of one whole.
    fn of(texts: &BTreeMap<ModulePath, String>) -> Self {
        let mut modules = Self::default();
        for (module, text) in texts {
            let named = imports(text, module);
            let targets = named.iter().filter_map(|path| longest_module(path, texts));
            let targets =
                targets.filter(|target| !target.starts_with(module) && !module.starts_with(target));
            modules
                .0
                .insert(module.clone(), targets.map(<[String]>::to_vec).collect());
        }
        modules
    }

    /// Returns one circle through each module that is in one, as the files' paths, without
    /// repetitions.
    pub(super) fn circles(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for module in self.0.keys() {
            if seen.contains(module) {
                continue;
            }
            if let Some(circle) = self.way_back(module) {
                let names: Vec<_> = circle
                    .iter()
                    .chain([module])
                    .map(|module| module.join("/") + ".rs")
                    .collect();
                circles.push(names.join(" -> "));
                seen.extend(circle);
            }
        }
        circles
    }

    /// Returns the shortest way from a module to itself.
    fn way_back(&self, start: &ModulePath) -> Option<Vec<ModulePath>> {
        let mut came_from = BTreeMap::new();
        let mut next = vec![start];
        while !next.is_empty() {
            let mut further = Vec::new();
            for module in next {
                for target in self.0.get(module).into_iter().flatten() {
                    if target == start {
                        let mut way = vec![module.clone()];
                        while let Some(before) = came_from.get(&way[way.len() - 1]) {
                            way.push(ModulePath::clone(before));
                        }
                        way.reverse();
                        return Some(way);
                    }
                    if !came_from.contains_key(target) {
                        came_from.insert(target.clone(), module.clone());
                        further.push(target);
                    }
                }
            }
            next = further;
        }
        None
    }
}

/// Returns the longest beginning of a path that is a module.
fn longest_module<'a>(
    path: &'a [String],
    texts: &BTreeMap<ModulePath, String>,
) -> Option<&'a [String]> {
    (1..=path.len())
        .rev()
        .map(|length| &path[..length])
        .find(|beginning| texts.contains_key(*beginning))
}

fn read_folder(
    folder: &Path,
    module: &ModulePath,
    texts: &mut BTreeMap<ModulePath, String>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
            continue;
        };
        if matches!(name, "bin" | "lib" | "main" | "testing" | "tests") {
            continue;
        }
        let child = [&module[..], &[name.to_owned()]].concat();
        if path.is_dir() {
            read_folder(&path, &child, texts)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.insert(child, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files.iter().map(|(file, text)| {
            (
                file.split('/').map(str::to_owned).collect(),
                (*text).to_owned(),
            )
        });
        Modules::of(&texts.collect()).circles()
    }

    /// N1: modules that import each other are found, also over others.
    #[test]
    fn circles_are_found() {
        assert_eq!(
            circles(&[("a", "use crate::b::B;"), ("b", "use crate::a::A;")]),
            ["a.rs -> b.rs -> a.rs"]
        );
        let files = [
            ("a", "use crate::b::B;"),
            ("b", "use crate::c;"),
            ("c", "use crate::a::A;"),
            ("d", "use crate::a::A;"),
        ];
        assert_eq!(circles(&files), ["a.rs -> b.rs -> c.rs -> a.rs"]);
        let files = [
            ("a", "pub use self::x::X;"),
            ("a/x", "use super::Y;"),
            ("b", "use crate::a::X;"),
        ];
        assert_eq!(
            circles(&files),
            [""; 0],
            "a module and its parts are one whole"
        );
    }
}
