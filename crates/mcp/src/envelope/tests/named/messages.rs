//! Generated messages, and a simple parser of their names.

use proptest::sample::select;

use super::*;
use crate::meta;

/// Returns the names that a simple parser finds in the listed members, in any order.
pub(super) fn plainly_named(message: &Value) -> Vec<String> {
    let method = message["method"]
        .as_str()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let params = &message["params"];
    let related = [&params["_meta"], &message["result"]["_meta"]]
        .map(|meta| meta[meta::RELATED_TASK]["taskId"].clone());
    let mut found: Vec<_> = related.into();
    found.extend(match &*method {
        "tools/call" | "prompts/get" => vec![params["name"].clone()],
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            vec![params["uri"].clone()]
        }
        "completion/complete" => vec![params["ref"]["name"].clone(), params["ref"]["uri"].clone()],
        "subscriptions/listen" => params["notifications"]["resourceSubscriptions"]
            .as_array()
            .cloned()
            .unwrap_or_default(),
        "tasks/get"
        | "tasks/result"
        | "tasks/cancel"
        | "tasks/update"
        | "notifications/tasks/status" => {
            vec![params["taskId"].clone()]
        }
        _ => vec![],
    });
    let mut found: Vec<_> = found
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    found.sort_unstable();
    found
}

/// Generates a message of relevant members in any order, some of them invalid.
pub(super) fn message() -> impl Strategy<Value = String> {
    let member = |names: &'static [&'static str], values: &'static [&'static str]| {
        let member = (select(names), select(values));
        member.prop_map(|(name, value)| format!("\"{name}\":{value}"))
    };
    let object = |members: BoxedStrategy<String>, most: usize| {
        vec(members, 0..most)
            .prop_map(|all| format!("{{{}}}", all.join(",")))
            .boxed()
    };
    let texts: &[&str] = &[
        "\"a\"",
        "\"b:c\"",
        "\"\\u0064\"",
        "null",
        "7",
        "[]",
        "{}",
        "[\"e\",\"f\"]",
        "[7]",
        "\"\\u0000\"",
    ];
    let task = object(member(&["taskId", "TaskId", "x"], texts).boxed(), 2);
    let meta = object(
        task.prop_map(|task| format!("\"{}\":{task}", meta::RELATED_TASK))
            .boxed(),
        2,
    );
    let reference = object(member(&["name", "uri", "type", "Name"], texts).boxed(), 4);
    let filter = object(
        member(
            &[
                "resourceSubscriptions",
                "toolsListChanged",
                "re\u{17f}ourceSubscriptions",
            ],
            texts,
        )
        .boxed(),
        3,
    );
    let param = prop_oneof![
        4 => member(&["name", "uri", "taskId", "arguments", "NAME", "ta\u{17f}kId"], texts),
        2 => prop_oneof![reference, Just("\"x\"".to_owned())].prop_map(|reference| format!("\"ref\":{reference}")),
        2 => prop_oneof![filter, Just("null".to_owned())].prop_map(|filter| format!("\"notifications\":{filter}")),
        1 => meta.clone().prop_map(|meta| format!("\"_meta\":{meta}")),
    ];
    let methods = NAMED
        .iter()
        .map(|(method, ..)| *method)
        .chain(["TOOLS/CALL", "acme/x"])
        .collect::<Vec<_>>();
    let call = (select(methods), object(param.boxed(), 5)).prop_map(|(method, params)| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    });
    prop_oneof![
        9 => call,
        1 => meta.prop_map(|meta| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"_meta":{meta}}}}}"#)),
    ]
}
