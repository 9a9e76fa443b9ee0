//! Duplicate, similar and invalid members.

use super::{Case, call, modern, raw};
use serde_json::json;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = envelopes();
    cases.extend(params());
    cases.extend(values());
    cases.extend(mirrors());
    cases
}

/// Variations of the members other than `params`.
fn envelopes() -> Vec<Case> {
    let echo = r#"{"name":"echo","arguments":{}}"#;
    let wipe = r#"{"name":"admin_wipe","arguments":{}}"#;
    let bodies = [
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","method":"tools/call","params":{wipe}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","method":"tools/list","params":{wipe}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","Method":"tools/call","params":{wipe}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":0,"METHOD":"tools/call","params":{wipe}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"ping","\u006dethod":"tools/call","params":{wipe}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"ping","method\u0000":"tools/call","params":{wipe}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{wipe},"params":{echo}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{echo},"params":{wipe}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{echo},"Params":{wipe}}}"#
        ),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/call\",\"params\":{echo},\"param\u{17f}\":{wipe}}}"
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{echo},"param\u017f":{wipe}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{echo},"params ":{wipe}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":" tools/call","params":{wipe}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call ","params":{wipe}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"TOOLS/CALL","params":{wipe}}}"#),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tool\u{17f}/call\",\"params\":{wipe}}}"
        ),
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools\/call","params":{wipe}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools\u002fcall","params":{wipe}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call\u0000","params":{wipe}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":["tools/call"],"params":{wipe}}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"tools/call","params":{wipe}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{wipe}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{wipe},"result":{{}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{}},"params":{wipe}}}"#),
        format!(r#"{{"id":0,"method":"tools/call","params":{wipe}}}"#),
        format!(r#"{{"jsonrpc":"1.0","id":0,"method":"tools/call","params":{wipe}}}"#),
        format!(r#"[{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{wipe}}}]"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"ping"}}{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{wipe}}}"#
        ),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}}\n{{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{wipe}}}"
        ),
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{wipe},}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":0,/*,*/"method":"tools/call","params":{wipe}}}"#),
        format!("{{'jsonrpc':'2.0','id':0,'method':'tools/call','params':{wipe}}}"),
    ];
    bodies
        .into_iter()
        .map(|body| Case::new("envelope", body))
        .collect()
}

/// Variations of the members of `params`.
fn params() -> Vec<Case> {
    let calls = [
        r#"{"name":"admin_wipe","name":"echo"}"#,
        r#"{"name":"echo","name":"admin_wipe"}"#,
        r#"{"name":"echo","Name":"admin_wipe"}"#,
        r#"{"Name":"admin_wipe"}"#,
        r#"{"NAME":"admin_wipe","arguments":{}}"#,
        r#"{"name":"echo","n\u0061me":"admin_wipe"}"#,
        r#"{"n\u0061me":"admin_wipe"}"#,
        r#"{"name":"echo","name\u0000":"admin_wipe"}"#,
        r#"{"name":"echo","\u0000name":"admin_wipe"}"#,
        r#"{"name":"echo","na\u006de":"admin_wipe","arguments":{}}"#,
        r#"{"name":"echo","nam\u0435":"admin_wipe"}"#,
        r#"{"name":"echo","arguments":{"name":"admin_wipe"}}"#,
        r#"{"arguments":{"name":"admin_wipe"},"name":"echo"}"#,
        r#"{"name":"echo","uri":"file:///secret/x"}"#,
        r#"{"name":"echo","task":{"taskId":"admin-1"}}"#,
        r#"{"name":"echo","_meta":{"name":"admin_wipe"}}"#,
        r#"{"name":"echo","_meta":{"progressToken":1},"_META":{}}"#,
        r#"{"name":null}"#,
        r#"{"name":["admin_wipe"]}"#,
        r#"{"name":{"toString":"admin_wipe"}}"#,
        r#"{"name":1}"#,
        r#"["admin_wipe"]"#,
        r#""admin_wipe""#,
        "null",
        r#"{"__proto__":{"name":"admin_wipe"}}"#,
        r#"{"name":"echo","__proto__":{"name":"admin_wipe"}}"#,
        r#"{"name":"echo","constructor":{"prototype":{"name":"admin_wipe"}}}"#,
    ];
    let completions = [
        r#"{"ref":{"type":"ref/prompt","name":"greeting","name":"secret_plan"},"argument":{"name":"topic","value":""}}"#,
        r#"{"ref":{"type":"ref/prompt","name":"secret_plan","name":"greeting"},"argument":{"name":"topic","value":""}}"#,
        r#"{"ref":{"type":"ref/prompt","name":"greeting","Name":"secret_plan"},"argument":{"name":"topic","value":""}}"#,
        r#"{"ref":{"type":"ref/prompt","name":"greeting"},"ref":{"type":"ref/prompt","name":"secret_plan"},"argument":{"name":"topic","value":""}}"#,
        r#"{"ref":{"type":"ref/prompt","name":"greeting"},"Ref":{"type":"ref/prompt","name":"secret_plan"},"argument":{"name":"topic","value":""}}"#,
        r#"{"ref":{"type":"ref/prompt","name":"greeting","uri":"file:///secret/x"},"argument":{"name":"topic","value":""}}"#,
        r#"{"ref":{"type":"ref/resource","name":"secret_plan","uri":"file:///public/x"},"argument":{"name":"topic","value":""}}"#,
        r#"{"ref":{"type":"ref/resource","uri":"file:///secret/{name}"},"argument":{"name":"name","value":""}}"#,
        r#"{"name":"greeting","ref":{"type":"ref/prompt","name":"secret_plan"},"argument":{"name":"topic","value":""}}"#,
        r#"{"argument":{"name":"topic","value":""},"\u0072ef":{"type":"ref/prompt","\u006eame":"secret_plan"}}"#,
        r#"{"ref":"secret_plan","argument":{"name":"topic","value":""}}"#,
    ];
    let listens = [
        r#"{"notifications":{"resourceSubscriptions":["file:///public/x"],"resourceSubscriptions":["file:///secret/x"]}}"#,
        r#"{"notifications":{"resourceSubscriptions":["file:///public/x"],"ResourceSubscriptions":["file:///secret/x"]}}"#,
        r#"{"notifications":{"resourceSubscriptions":["file:///public/x"],"re\u0073ourceSubscriptions":["file:///secret/x"]}}"#,
        r#"{"notifications":{},"notifications":{"resourceSubscriptions":["file:///secret/x"]}}"#,
        r#"{"notifications":{},"Notifications":{"resourceSubscriptions":["file:///secret/x"]}}"#,
        r#"{"notifications":{"resourceSubscriptions":[1,"file:///secret/x",null]}}"#,
        r#"{"notifications":{"resourceSubscriptions":"file:///secret/x"}}"#,
        r#"{"notifications":{"resourceSubscriptions":[["file:///secret/x"]]}}"#,
        r#"{"resourceSubscriptions":["file:///secret/x"]}"#,
    ];
    let tasks = [
        r#"{"taskId":"task-1","taskId":"admin-1"}"#,
        r#"{"taskId":"task-1","taskID":"admin-1"}"#,
        r#"{"taskid":"admin-1"}"#,
        "{\"tas\u{212a}Id\":\"admin-1\"}",
        r#"{"taskId":"task-1","ta\u017fkId":"admin-1"}"#,
        r#"{"taskIds":["admin-1"]}"#,
    ];
    let of = |method: &'static str, list: &[&str]| -> Vec<Case> {
        list.iter()
            .map(|params| raw("members", method, params))
            .collect()
    };
    let mut cases = of("tools/call", &calls);
    cases.extend(of(
        "prompts/get",
        &[
            r#"{"name":"greeting","name":"secret_plan"}"#,
            r#"{"Name":"secret_plan"}"#,
        ],
    ));
    cases.extend(of("completion/complete", &completions));
    cases.extend(of("subscriptions/listen", &listens));
    ["tasks/get", "tasks/cancel"]
        .iter()
        .for_each(|method| cases.extend(of(method, &tasks)));
    cases.extend(of(
        "resources/read",
        &[
            r#"{"uri":"file:///public/x","uri":"file:///secret/x"}"#,
            r#"{"uri":"file:///public/x","URI":"file:///secret/x"}"#,
            r#"{"uri":"file:///public/x","Uri":"file:///secret/x"}"#,
            r#"{"\u0075ri":"file:\/\/\/secret\/x"}"#,
            r#"{"uri":"file:///public/x","name":"file:///secret/x"}"#,
        ],
    ));
    cases
}

/// Unusual strings, numbers and depths.
fn values() -> Vec<Case> {
    let names = [
        "\\u0061dmin_wipe",
        "admin\\u005fwipe",
        "admin_wipe\\u0000",
        "\\u0000admin_wipe",
        "admin_wipe\\ud800",
        "\\udc00admin_wipe",
        "\\ud83d\\ude00",
        "\\ud83d",
        "\\ud800\\ud800",
        "\\ufeffadmin_wipe",
        " admin_wipe",
        "admin_wipe ",
        "Admin_wipe",
        "ADMIN_WIPE",
        "\u{430}dmin_wipe",
        "admin_w\u{131}pe",
        "admin\u{2044}wipe",
        "admin\u{200b}_wipe",
        "a\u{301}dmin_wipe",
        "\\u0061\\u0064\\u006d\\u0069\\u006e_wipe",
        "\\U0061dmin_wipe",
        "\\x61dmin_wipe",
        "echo\\n",
        "echo\n",
        "echo\u{1}",
        "ec\tho",
        "",
    ];
    let mut cases: Vec<Case> = names
        .into_iter()
        .map(|name| {
            raw(
                "name",
                "tools/call",
                &format!(r#"{{"name":"{name}","arguments":{{}}}}"#),
            )
        })
        .collect();
    let numbers = [
        "1e999",
        "-0",
        "-1e-999",
        "12345678901234567890123",
        "0.1e1",
        "01",
        "1.",
        "+1",
        "NaN",
        "Infinity",
        "0x1",
    ];
    for number in numbers {
        cases.push(raw(
            "number",
            "tools/call",
            &format!(r#"{{"name":"echo","arguments":{{"a":{number}}}}}"#),
        ));
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"echo"}}}}"#
        );
        cases.push(Case::new("number as the identifier", text));
    }
    for depth in [8, 60, 127, 200, 1000, 10_000] {
        let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        cases.push(raw(
            "depth",
            "tools/call",
            &format!(r#"{{"arguments":{{"a":{nested}}},"name":"echo"}}"#),
        ));
        let nested = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        cases.push(raw(
            "depth",
            "tools/call",
            &format!(r#"{{"arguments":{nested},"name":"admin_wipe"}}"#),
        ));
    }
    cases.push(call("a long name", &format!("admin_{}", "x".repeat(300))));
    cases.push(call("a long name", &"x".repeat(300)));
    cases
}

/// Headers that repeat values of the message.
fn mirrors() -> Vec<Case> {
    let echo = json!({"name": "echo", "arguments": {}});
    vec![
        call("a name in a header", "echo").header("mcp-name", "admin_wipe"),
        call("a method in a header", "echo").header("mcp-method", "resources/read"),
        call("a name in a header", "echo").header("mcp-param-name", "admin_wipe"),
        call("another method of HTTP", "echo").header("x-http-method-override", "DELETE"),
        modern("a second name", "tools/call", &echo).header("mcp-name", "admin_wipe"),
        modern("a second method", "tools/call", &echo).header("mcp-method", "tools/list"),
        modern("a name in Base64", "tools/call", &echo)
            .header("mcp-name", "=?base64?YWRtaW5fd2lwZQ==?="),
        modern("a parameter in a header", "tools/call", &echo)
            .header("mcp-param-name", "admin_wipe"),
    ]
}
