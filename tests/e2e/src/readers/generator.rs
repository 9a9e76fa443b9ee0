//! Generated messages: combinations of parts that readers interpret differently, and fixed messages
//! with small changes.

use portcullis_mcp::meta;

use super::{
    corpus::{CONTENT_TYPES, Case, Era, URI_ALIASES, UTF_7_NAME},
    random::Random,
};

/// The methods with names, and where each has them.
const METHODS: [(&str, Place); 12] = [
    ("tools/call", Place::Name),
    ("prompts/get", Place::Name),
    ("resources/read", Place::Uri),
    ("resources/subscribe", Place::Uri),
    ("resources/unsubscribe", Place::Uri),
    ("completion/complete", Place::Reference),
    ("completion/complete", Place::ResourceReference),
    ("subscriptions/listen", Place::Subscriptions),
    ("tasks/get", Place::Task),
    ("tasks/result", Place::Task),
    ("tasks/cancel", Place::Task),
    ("tasks/update", Place::Task),
];

/// The member of the parameters that has the name.
#[derive(Clone, Copy)]
enum Place {
    Name,
    Uri,
    Reference,
    ResourceReference,
    Subscriptions,
    Task,
}

/// Texts that are inserted anywhere: syntax, blanks, escapes, and whole members.
const TOKENS: [&str; 34] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    " ",
    "\t",
    "\n",
    "\u{b}",
    "\u{a0}",
    "\u{feff}",
    "\u{2028}",
    "\0",
    "\\u0000",
    "\\u0061",
    "\\ud800",
    "\\udc00",
    "\"name\":\"admin_wipe\",",
    "\"Name\":\"admin_wipe\",",
    "\"params\":{\"name\":\"admin_wipe\"},",
    "\"method\":\"tools/call\",",
    "\"uri\":\"file:///secret/x\",",
    "\"taskId\":\"admin-1\",",
    "null",
    "1e999",
    "//",
    "/*",
    "*/",
    "\u{17f}",
    "\u{212a}",
    "\\/",
];

/// Returns this number of messages, which are the same for the same seed.
pub(super) fn generate(seed: u64, count: usize, fixed: &[Case]) -> Vec<Case> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|number| generated(&mut random, number, fixed))
        .collect()
}

/// Returns a fixed or a composed message, in one of three cases damaged.
fn generated(random: &mut Random, number: usize, fixed: &[Case]) -> Case {
    let mut case = if random.once_in(3) {
        fixed[random.below(fixed.len())].clone()
    } else {
        composed(random)
    };
    if random.once_in(3) {
        (0..=random.below(3)).for_each(|_| damage(random, &mut case.body));
    }
    if case.era == Era::Legacy && random.once_in(10) {
        case = case.header("content-type", random.of(&CONTENT_TYPES));
    }
    case.label = format!("generated {number}");
    case
}

/// Returns a message with random spellings of names, members and whitespace.
fn composed(random: &mut Random) -> Case {
    let (method, place) = METHODS[random.below(METHODS.len())];
    let params = members(random, place);
    let method = text(random, method);
    let mut members = vec![
        "\"jsonrpc\":\"2.0\"".to_owned(),
        "\"id\":0".to_owned(),
        format!("{}:{method}", member(random, "method")),
        format!("{}:{params}", member(random, "params")),
    ];
    if random.once_in(6) {
        let again = random.of(&[
            "\"method\":\"tools/call\"",
            "\"params\":{\"name\":\"admin_wipe\"}",
            "\"params\":{}",
        ]);
        members.push(again.to_owned());
    }
    if random.once_in(8) {
        members.rotate_left(1);
    }
    let blank = if random.once_in(6) {
        random.of(&["\n", "\t ", " ", "\u{b}", "\u{feff}"])
    } else {
        ""
    };
    Case::composed(format!(
        "{{{blank}{}{blank}}}",
        members.join(&format!(",{blank}"))
    ))
}

/// Returns the parameters of a message, with random spellings and repetitions.
fn members(random: &mut Random, place: Place) -> String {
    let value = |random: &mut Random| name(random, place);
    let extra = if random.once_in(4) {
        format!(",\"_meta\":{{\"{}\":1}}", meta::CLIENT_INFO)
    } else {
        String::new()
    };
    match place {
        Place::Name | Place::Uri | Place::Task => {
            let key = match place {
                Place::Name => "name",
                Place::Uri => "uri",
                _ => "taskId",
            };
            let mut list = vec![format!("{}:{}", member(random, key), value(random))];
            if random.once_in(4) {
                list.push(format!("{}:{}", member(random, key), value(random)));
            }
            if random.once_in(4) {
                list.insert(0, "\"arguments\":{\"name\":\"admin_wipe\"}".to_owned());
            }
            format!("{{{}{extra}}}", list.join(","))
        }
        Place::Reference | Place::ResourceReference => {
            let (form, key) = if matches!(place, Place::Reference) {
                ("prompt", "name")
            } else {
                ("resource", "uri")
            };
            let outer = member(random, "ref");
            let inner = member(random, key);
            let value = value(random);
            let argument = "\"argument\":{\"name\":\"topic\",\"value\":\"\"}";
            format!("{{{outer}:{{\"type\":\"ref/{form}\",{inner}:{value}}},{argument}{extra}}}")
        }
        Place::Subscriptions => {
            let outer = member(random, "notifications");
            let inner = member(random, "resourceSubscriptions");
            let first = value(random);
            let second = value(random);
            format!("{{{outer}:{{{inner}:[{first},{second}]}}{extra}}}")
        }
    }
}

/// Returns a member's name, mostly unchanged.
fn member(random: &mut Random, name: &str) -> String {
    if random.once_in(12) {
        let changed = match random.below(6) {
            0 => name.to_uppercase(),
            1 => name.replacen('s', "\u{17f}", 1),
            2 => name.replacen('k', "\u{212a}", 1),
            3 => format!("{name}\\u0000"),
            4 => format!("{name} "),
            _ => return text(random, name),
        };
        return format!("\"{changed}\"");
    }
    format!("\"{name}\"")
}

/// Returns a name, which is protected in one of three cases.
fn name(random: &mut Random, place: Place) -> String {
    let is_protected = random.once_in(3);
    let plain = match (place, is_protected) {
        (Place::Name, true) => random
            .of(&["admin_wipe", "secret_plan", "admin_", UTF_7_NAME])
            .to_owned(),
        (Place::Name, false) => random.of(&["echo", "greeting"]).to_owned(),
        (Place::Reference, true) => "secret_plan".to_owned(),
        (Place::Reference, false) => "greeting".to_owned(),
        (Place::Task, true) => "admin-1".to_owned(),
        (Place::Task, false) => "task-1".to_owned(),
        (_, true) => uri(random),
        (_, false) => "file:///public/x".to_owned(),
    };
    text(random, &plain)
}

/// Returns a spelling of the protected resource with up to two insertions.
fn uri(random: &mut Random) -> String {
    let mut uri = random.of(&URI_ALIASES).to_owned();
    for _ in 0..random.below(3) {
        let boundaries: Vec<usize> = uri
            .char_indices()
            .map(|(at, _)| at)
            .chain([uri.len()])
            .collect();
        let at = boundaries[random.below(boundaries.len())];
        let part = random.of(&[
            "/../",
            "/./",
            "%2e%2e/",
            "..%2f",
            "\\",
            "\t",
            "\n",
            " ",
            "%73",
            "//",
            "localhost",
            "@",
            "?",
            "#",
            "%",
            ";",
            "\0",
        ]);
        uri.insert_str(at, part);
    }
    uri
}

/// Returns a JSON string with some escaped characters.
fn text(random: &mut Random, plain: &str) -> String {
    let escapes = random.once_in(3);
    let mut text = String::from("\"");
    for character in plain.chars() {
        let code = u32::from(character);
        if code < 0x20
            || matches!(character, '"' | '\\')
            || (escapes && code < 0x1_0000 && random.once_in(5))
        {
            text.push_str(&format!("\\u{code:04x}"));
        } else {
            text.push(character);
        }
    }
    text.push('"');
    text
}

/// Inserts, removes, repeats or changes a few bytes.
fn damage(random: &mut Random, body: &mut Vec<u8>) {
    let at = random.below(body.len() + 1);
    let end = (at + random.below(12)).min(body.len());
    match random.below(5) {
        0 => drop(body.splice(at..at, random.of(&TOKENS).bytes())),
        1 => drop(body.drain(at..end)),
        2 => {
            let copy = body[at..end].to_vec();
            let to = random.below(body.len() + 1);
            drop(body.splice(to..to, copy));
        }
        3 if at < body.len() => body[at] ^= 1 << random.below(8),
        _ if at < body.len() => body[at] = random.next().to_le_bytes()[0],
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::corpus;

    #[test]
    fn a_seed_gives_the_same_messages() {
        let fixed = corpus::fixed();
        let bodies = |seed| {
            generate(seed, 50, &fixed)
                .into_iter()
                .map(|case| case.body)
                .collect::<Vec<_>>()
        };
        assert_eq!(bodies(7), bodies(7));
        assert_ne!(bodies(7), bodies(8));
    }

    #[test]
    fn many_generated_messages_are_json() {
        let fixed = corpus::fixed();
        let cases = generate(1, 400, &fixed);
        let valid = cases
            .iter()
            .filter(|case| serde_json::from_slice::<serde_json::Value>(&case.body).is_ok())
            .count();
        assert!(valid > 200, "{valid} of {}", cases.len());
    }
}
