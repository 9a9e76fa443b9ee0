//! [`meaning`]: what the documentation of a variant says about its code.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the first paragraph of the documentation as one line of Markdown, without links.
pub(crate) fn meaning(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let paragraph: Vec<&str> = lines
        .iter()
        .map(|line| line.trim())
        .take_while(|line| !line.is_empty())
        .collect();
    without_links(&paragraph.join(" "))
}

/// Returns a line of documentation.
fn line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(line),
                ..
            }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Replaces `` [`name`](target) `` and `` [`name`] `` by the name: their targets mean nothing
/// outside of the crate.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else {
            break;
        };
        out.push_str(before);
        out.push_str(&format!("`{name}`"));
        rest = match after
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
        {
            Some((_, after)) => after,
            None => after,
        };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_paragraph_is_the_meaning() {
        let variant: syn::Variant = syn::parse_str(
            "/// It is [`missing`](crate::missing) or\n/// [`late`].\n///\n/// More.\n#[error(\"a text\")]\nMissing",
        )
        .unwrap();
        assert_eq!(meaning(&variant.attrs), "It is `missing` or `late`.");
    }

    #[test]
    fn no_documentation_is_no_meaning() {
        assert_eq!(meaning(&[]), "");
    }
}
