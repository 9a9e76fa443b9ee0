//! The forms and links of a page.

use std::collections::BTreeMap;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) action: String,
    /// The values of its named fields and buttons.
    pub(super) fields: BTreeMap<String, String>,
}

/// Returns the forms of a page.
///
/// Reads the pages of a few known servers. It does not parse HTML in general: it ignores comments,
/// scripts and nesting.
pub(super) fn forms(page: &str) -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::new();
    for tag in page
        .split('<')
        .skip(1)
        .filter_map(|rest| rest.split_once('>'))
        .map(|(tag, _)| tag)
    {
        let attribute = |name| attribute(tag, name);
        match tag.split_ascii_whitespace().next() {
            Some("form") => {
                forms.push(Form {
                    action: attribute("action").unwrap_or_default(),
                    fields: BTreeMap::new(),
                });
            }
            // The user ticks no box.
            Some("input") if attribute("type").as_deref() == Some("checkbox") => {}
            Some(element @ ("input" | "button")) => {
                if let (Some(form), Some(name)) = (forms.last_mut(), attribute("name")) {
                    let value = attribute("value").unwrap_or_default();
                    // Of several buttons with one name, the first one is used.
                    if element == "input" || !form.fields.contains_key(&name) {
                        form.fields.insert(name, value);
                    }
                }
            }
            _ => {}
        }
    }
    forms
}

/// Returns the targets of the links of a page.
pub(super) fn links(page: &str) -> Vec<String> {
    let tags = page
        .split('<')
        .skip(1)
        .filter_map(|rest| rest.split_once('>'))
        .map(|(tag, _)| tag);
    tags.filter(|tag| tag.starts_with("a "))
        .filter_map(|tag| attribute(tag, "href"))
        .collect()
}

/// Returns the target of a page that continues elsewhere by itself.
pub(super) fn continued(page: &str) -> Option<String> {
    let (_, rest) = page.split_once("http-equiv=\"refresh\" content=\"0;url=")?;
    Some(unescaped(rest.split('"').next()?))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let start = tag
        .find(&format!(" {name}=\""))
        .or_else(|| tag.find(&format!("\n{name}=\"")))?;
    let value = &tag[start + name.len() + 3..];
    Some(unescaped(value.split('"').next()?))
}

fn unescaped(text: &str) -> String {
    text.replace("&#x2F;", "/")
        .replace("&#39;", "'")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_with_its_fields() {
        let page = r#"<body><input name="outside"><form id="f" action="/go?a=1&amp;b=2" method="post">
            <input name="username" type="text"/><input type="hidden" name="code" value="x &amp; y">
            <input name="remember" type="checkbox" value="on">
            <button name="accept" value="Yes">Yes</button><button name="accept" value="No">No</button></form>"#;
        let forms = forms(page);
        assert_eq!(forms.len(), 1);
        assert_eq!(forms[0].action, "/go?a=1&b=2");
        let fields: Vec<_> = forms[0]
            .fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            fields,
            [("accept", "Yes"), ("code", "x & y"), ("username", "")]
        );
        assert!(super::forms("no form").is_empty());
        let page = r#"<meta http-equiv="refresh" content="0;url=http://a/?b=1&amp;c=2">"#;
        assert_eq!(continued(page).as_deref(), Some("http://a/?b=1&c=2"));
        assert_eq!(continued("<meta charset=\"utf-8\">"), None);
        assert_eq!(
            links(r#"<a class="x" href="/a?b&amp;c">x</a><abbr href="no">"#),
            ["/a?b&c"]
        );
    }
}
