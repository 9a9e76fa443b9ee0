//! Letters of other scripts in a host that look like ASCII letters. Its punycode is another host,
//! which anyone can register, and not the one that is meant.

/// Each letter that looks like an ASCII letter, and that one.
const LOOK_ALIKES: [(&str, &str); 3] = [
    // Cyrillic.
    (
        "АаВСсԁЕеһНІіЈјКӀӏМОоРрԚԛЅѕТУуԜԝХх",
        "AaBCcdEehHIiJjKIlMOoPpQqSsTYyWwXx",
    ),
    // Greek.
    ("ΑαΒϲΕϳΖΗΙιΚκΜΝνΟοΡρΤΥυΧ", "AaBcEjZHIiKkMNvOoPpTYuX"),
    // Armenian.
    ("ցհոօԼքսՍ", "ghnoLpuU"),
];

/// Returns the problem of a URL with letters in its host that look like ASCII letters, and the fix.
/// `None` for names that are entirely in another script, and those with letters such as `ü`. The
/// message follows the URL.
pub(super) fn problem(url: &str) -> Option<String> {
    let letter = in_host(host(url))?;
    let code = u32::from(letter);
    let script = script(letter)?;
    let similar = ascii(letter).map(|ascii| format!(" that looks like `{ascii}`"));
    Some(format!(
        "has U+{code:04X} in its host, {script} letter{}; type the host in ASCII letters",
        similar.unwrap_or_default()
    ))
}

/// Returns the host of a text that need not be a URL, with its port.
fn host(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

/// Returns the first letter that is there for an ASCII letter. A label that consists of such
/// letters can be a word of its own script if no other label has ASCII letters.
fn in_host(host: &str) -> Option<char> {
    let has_ascii = |text: &str| text.contains(|letter: char| letter.is_ascii_alphabetic());
    host.split('.').find_map(|label| {
        let mut letters = label.chars().filter(|letter| script(*letter).is_some());
        let first = letters.next()?;
        let all_look_alike =
            ascii(first).is_some() && letters.all(|letter| ascii(letter).is_some());
        let is_meant_as_ascii =
            is_full_width(first) || has_ascii(label) || (all_look_alike && has_ascii(host));
        is_meant_as_ascii.then_some(first)
    })
}

/// Returns the script of a letter with its article, if it has letters that look like ASCII letters.
fn script(letter: char) -> Option<&'static str> {
    let script = match letter {
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => "a Greek",
        '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{a640}'..='\u{a69f}' => "a Cyrillic",
        '\u{530}'..='\u{58f}' => "an Armenian",
        _ if is_full_width(letter) => "a full-width",
        _ => return None,
    };
    Some(script)
}

/// Returns the ASCII character that a letter looks like.
fn ascii(letter: char) -> Option<char> {
    if is_full_width(letter) {
        let offset = u32::from('\u{ff01}') - u32::from('!');
        return char::from_u32(u32::from(letter) - offset);
    }
    LOOK_ALIKES.iter().find_map(|(letters, ascii)| {
        let mut pairs = letters.chars().zip(ascii.chars());
        pairs.find_map(|(other, ascii)| (other == letter).then_some(ascii))
    })
}

fn is_full_width(letter: char) -> bool {
    ('\u{ff01}'..='\u{ff5e}').contains(&letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: a letter of another script among ASCII letters is named, and so is a label of such
    /// letters only.
    #[test]
    fn look_alikes_are_named() {
        for (url, words) in [
            (
                "https://login.micros\u{43e}ftonline.com/t/v2.0",
                "has U+043E in its host, a Cyrillic letter that looks like `o`;",
            ),
            (
                "https://auth.acm\u{435}-tools.com:8443",
                "U+0435 in its host, a Cyrillic letter that looks like `e`;",
            ),
            ("https://\u{430}\u{440}\u{440}\u{4cf}\u{435}.com", "U+0430"),
            ("https://\u{430}.example/x", "U+0430"),
            (
                "https://auth.ex\u{3b1}mple",
                "a Greek letter that looks like `a`",
            ),
            (
                "https://\u{3b4}emo.example",
                "U+03B4 in its host, a Greek letter;",
            ),
            (
                "https://acme.examp\u{56c}e",
                "U+056C in its host, an Armenian letter;",
            ),
            (
                "https://auth.\u{585}\u{585}.example",
                "Armenian letter that looks like `o`",
            ),
            (
                "https://\u{ff4c}ogin.example",
                "a full-width letter that looks like `l`",
            ),
            ("me:x@\u{435}xample.com", "U+0435"),
            ("https://AUTH.\u{415}XAMPLE.COM", "looks like `E`"),
        ] {
            let problem = problem(url).unwrap_or_else(|| panic!("{url}"));
            assert!(problem.contains(words), "{url}: {problem}");
            assert!(
                problem.ends_with("; type the host in ASCII letters"),
                "{problem}"
            );
        }
        for url in [
            "https://m\u{fc}nchen.example",
            "https://\u{43f}\u{440}\u{438}\u{43c}\u{435}\u{440}.example",
            "https://\u{43e}\u{441}\u{430}.\u{440}\u{444}",
            "https://\u{3c0}\u{3b1}\u{3c1}\u{3ac}.\u{3b5}\u{3bb}",
            "https://\u{4f8b}\u{3048}.example",
            "https://auth.example/realms/pr\u{43e}d?x=\u{43e}",
            "https://m\u{435}:x@auth.example",
            "https://auth.example:8443",
            "",
        ] {
            assert_eq!(problem(url), None, "{url}");
        }
    }

    /// J9: each letter has the ASCII letter that it looks like, and a script.
    #[test]
    fn letters_have_pairs() {
        for (letters, ascii) in LOOK_ALIKES {
            assert_eq!(letters.chars().count(), ascii.len(), "{letters}");
            assert!(letters.chars().all(|letter| script(letter).is_some()));
            assert!(ascii.bytes().all(|letter| letter.is_ascii_alphabetic()));
        }
    }
}
