//! Tests of the links in the documentation, and of the table of contents.

use std::{collections::BTreeSet, fs};

use xtask::workspace;

use super::document::markdown_files;

/// Returns the lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn targets(text: &str) -> Vec<&str> {
    prose(text)
        .flat_map(|line| {
            line.split("](")
                .skip(1)
                .filter_map(|rest| rest.split_once(')'))
        })
        .map(|(url, _)| url)
        .collect()
}

/// Returns the anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading = |line: &str| {
        let title = line
            .strip_prefix('#')?
            .trim_start_matches('#')
            .strip_prefix(' ')?
            .trim()
            .to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        Some(kept.map(|c| if c == ' ' { '-' } else { c }).collect())
    };
    prose(text).filter_map(heading).collect()
}

#[test]
fn every_link_leads_to_a_page_and_its_heading() {
    let root = workspace::root();
    let mut broken = Vec::new();
    let pages = [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "RELEASING.md",
        "CHANGELOG.md",
    ];
    let mut pages = pages.map(|page| root.join(page)).to_vec();
    for folder in ["docs", "crates", "deploy"] {
        pages.extend(markdown_files(&root.join(folder)).unwrap());
    }
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text)
            .into_iter()
            .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let other = if path.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(path)
            };
            let has_heading =
                || anchors(&fs::read_to_string(&other).unwrap_or_default()).contains(anchor);
            if !other.exists() || (!anchor.is_empty() && !has_heading()) {
                broken.push(format!(
                    "{}: {target}",
                    page.strip_prefix(&root).unwrap().display()
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_table_of_contents_has_every_page() {
    let docs = workspace::root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<_> = targets(&summary)
        .into_iter()
        .map(|target| docs.join(target))
        .collect();
    let existing: BTreeSet<_> = markdown_files(&docs)
        .unwrap()
        .into_iter()
        .filter(|page| !page.ends_with("SUMMARY.md"))
        .collect();
    assert_eq!(listed, existing);
}

/// `docs/README.md` is the table of contents with a line about each page.
#[test]
fn the_index_has_the_pages_in_the_order_of_the_table_of_contents() {
    let docs = workspace::root().join("docs");
    let [summary, index] =
        ["SUMMARY.md", "README.md"].map(|page| fs::read_to_string(docs.join(page)).unwrap());
    let of_docs = |text: &str| -> Vec<String> {
        let inside = targets(text)
            .into_iter()
            .filter(|target| !target.starts_with("../") && *target != "README.md");
        inside.map(str::to_owned).collect()
    };
    assert_eq!(of_docs(&index), of_docs(&summary));
}
