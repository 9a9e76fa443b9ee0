//! [`Profile`]: what callgrind counted, by function.

use std::collections::BTreeMap;

/// The instructions of each function, without those of the functions that it calls.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub(super) functions: BTreeMap<String, i64>,
}

impl Profile {
    /// Parses an output file of callgrind with one event and without compressed names.
    ///
    /// The line after `calls=` has the instructions of the called function, which are counted
    /// there.
    pub(super) fn parse(text: &str) -> Self {
        let mut profile = Self::default();
        let mut function = String::new();
        let mut is_call = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = without_hashes(name);
            } else if line.starts_with("calls=") {
                is_call = true;
            } else if let Some(instructions) = instructions(line) {
                if !is_call {
                    *profile.functions.entry(function.clone()).or_default() += instructions;
                }
                is_call = false;
            }
        }
        profile
    }

    /// Returns the instructions of all functions.
    pub(super) fn total(&self) -> i64 {
        self.functions.values().sum()
    }

    /// Returns what this profile has more than a shorter one. A function that has less counts
    /// negatively.
    pub(super) fn since(&self, shorter: &Self) -> Self {
        let mut functions = self.functions.clone();
        for (name, count) in &shorter.functions {
            *functions.entry(name.clone()).or_default() -= count;
        }
        Self { functions }
    }
}

/// Returns the instructions of a cost line: a position, relative or absolute, and a number.
fn instructions(line: &str) -> Option<i64> {
    let (position, count) = line.split_once(' ')?;
    position
        .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
        .then(|| count.parse().ok())?
}

/// Removes what differs from build to build: the hash of a legacy name and the disambiguators of
/// crates.
///
/// A function of a library without symbols has an address for a name.
fn without_hashes(name: &str) -> String {
    if name.starts_with("0x") {
        return "(functions without names)".to_owned();
    }
    let name = match name.rsplit_once("::h") {
        Some((path, hash))
            if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            path
        }
        _ => name,
    };
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        short.push_str(before);
        match after.split_once(']') {
            Some((hash, after))
                if hash.len() >= 13 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
            {
                rest = after
            }
            _ => {
                short.push('[');
                rest = after;
            }
        }
    }
    short + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
events: Ir
fn=serve::respond::h0123456789abcdef
12 30
+3 12
cfn=memcpy
calls=2 0
* 500
fn=memcpy
0 500
fn=serve::respond::h0123456789abcdef
9 8
totals: 550
";

    #[test]
    fn instructions_are_counted_for_the_function_that_executes_them() {
        let profile = Profile::parse(OUTPUT);
        assert_eq!(profile.functions["serve::respond"], 50);
        assert_eq!(profile.functions["memcpy"], 500);
        assert_eq!(profile.total(), 550);
    }

    #[test]
    fn the_difference_of_two_runs_is_by_function() {
        let longer = Profile::parse("fn=a\n0 70\nfn=b\n0 5\n");
        let shorter = Profile::parse("fn=a\n0 40\nfn=b\n0 6\n");
        let difference = longer.since(&shorter);
        assert_eq!(difference.functions["a"], 30);
        assert_eq!(difference.functions["b"], -1);
        assert_eq!(difference.total(), 29);
    }

    #[test]
    fn disambiguators_are_removed() {
        assert_eq!(
            without_hashes("<core[846817f741e54dfd]::Option<[u8]>>::map"),
            "<core::Option<[u8]>>::map"
        );
    }
}
