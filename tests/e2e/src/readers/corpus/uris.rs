//! Spellings of one resource's URI.

use serde_json::json;

use super::{Case, legacy, modern, read};

/// Other spellings of `file:///secret/x`, or what a reader could interpret as one.
pub(in crate::readers) const ALIASES: [&str; 67] = [
    "file:///secret/x",
    "file:///public/../secret/x",
    "file:///public/./../secret/x",
    "file:///public/a/../../secret/x",
    "file:///../secret/x",
    "file:///./secret/x",
    "file:///secret/./x",
    "file:///secret/y/../x",
    "file:///public/%2e%2e/secret/x",
    "file:///public/%2E%2E/secret/x",
    "file:///public/.%2e/secret/x",
    "file:///public/%2e./secret/x",
    "file:///public/%252e%252e/secret/x",
    "file:///public/..%2fsecret/x",
    "file:///public/..%2Fsecret/x",
    "file:///public/..%5csecret/x",
    "file:///public/..\\secret/x",
    "file:///public\\..\\secret\\x",
    "file:\\\\\\secret\\x",
    "file:///secret\\x",
    "file:///%73ecret/x",
    "file:///s%65cret/x",
    "file:///secret%2fx",
    "file:///secret%2Fx",
    "file:///secre%74/x",
    "file:///%2573ecret/x",
    "file://localhost/secret/x",
    "file://LOCALHOST/secret/x",
    "file://LocalHost/public/../secret/x",
    "file://localhost./secret/x",
    "file://%6c%6f%63alhost/secret/x",
    "file://127.0.0.1/secret/x",
    "file://me:pw@localhost/secret/x",
    "file://localhost:80/secret/x",
    "file:/secret/x",
    "file:secret/x",
    "file:////secret/x",
    "file://///secret/x",
    "file:///c:/../secret/x",
    "file:///public/C:/../../secret/x",
    "file:///public/C|/../../secret/x",
    "file:///public/C:/%2e%2e/.%2E/secret/x",
    "file:///public/x?/../../../secret/x",
    "file:///public/x#/../../../secret/x",
    "FILE:///secret/x",
    "File:///secret/x",
    "fi\u{17f}e:///secret/x",
    " file:///secret/x",
    "  file:///secret/x",
    "file:///secret/x ",
    "\tfile:///secret/x",
    "file:///sec\tret/x",
    "file:///sec\nret/x",
    "file:///sec\rret/x",
    "fi\tle:///secret/x",
    "file:\t///secret/x",
    "\nfile:///secret/x\n",
    "\u{0}file:///secret/x",
    "\u{1f}file:///secret/x",
    "\u{a0}file:///secret/x",
    "\u{feff}file:///secret/x",
    "file:///\u{ff53}ecret/x",
    "file:///secret/x\u{0}",
    "file:///secret\u{0}/x",
    "file:///secret;a/x",
    "file:///secret/x?query",
    "file:///secret/x#fragment",
];

/// Spellings of another resource, or of none.
const OTHERS: [&str; 12] = [
    "",
    "x",
    "secret/x",
    "/secret/x",
    "../secret/x",
    "file:",
    "http://example.com/secret/x",
    "file:///public/x?../secret/x",
    "file:///public/x#/../secret/x",
    "file:///SECRET/x",
    "file:///public/secret/x",
    "file://example.com/secret/x",
];

/// Returns every spelling in every member with a URI.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for uri in ALIASES.into_iter().chain(OTHERS) {
        let argument = json!({"name": "name", "value": ""});
        let complete = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": argument});
        let listen = json!({"notifications": {"resourceSubscriptions": [uri]}});
        cases.push(read("alias", uri));
        cases.push(modern("alias", "resources/read", &json!({"uri": uri})));
        cases.push(legacy("alias", "resources/subscribe", &json!({"uri": uri})));
        cases.push(legacy("alias", "completion/complete", &complete));
        cases.push(modern("alias", "subscriptions/listen", &listen));
    }
    cases
}
