//! Servers whose small compressed responses expand to millions of tiny values, which exhaust the
//! client's memory.

use std::{fs, io::Write as _, process::Stdio, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use portcullis_scenarios::{Portcullis, Upstream, portcullis_command, portcullis_program};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::Child,
    time::timeout,
};

/// The time limit of a response. Without optimization, one takes seconds of computing.
const LIMIT: Duration = Duration::from_secs(120);
/// The size of a response, decompressed.
const SIZE: usize = 8 << 20;
const REVISION: &str = "2026-07-28";

/// Repeats a text to about [`SIZE`] bytes, separated by commas.
fn many(text: &str) -> String {
    let mut all = format!("{text},").repeat(SIZE / (text.len() + 1));
    all.pop();
    all
}

fn response(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

/// A server that responds to every `tools/list` with this text as JSON or as an event, compressed.
async fn server(text: &str, is_event: bool) -> Upstream {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let (before, after) = if is_event {
        ("data: ", "\n\n")
    } else {
        ("", "")
    };
    for part in [before, text, after] {
        encoder.write_all(part.as_bytes()).unwrap();
    }
    let body = Bytes::from(encoder.finish().unwrap());
    assert!(
        body.len() < text.len() / 40,
        "it is small when compressed: {}",
        body.len()
    );
    Upstream::scripted(move |request| {
        let content_type = if is_event {
            "text/event-stream"
        } else {
            "application/json"
        };
        let headers = [("content-type", content_type), ("content-encoding", "gzip")];
        let is_list = request.message_method().as_deref() == Some("tools/list");
        is_list.then(|| Upstream::response(200, &headers, body.clone()))
    })
    .await
}

fn start(upstream: &Upstream, command: &str, arguments: &[&str]) -> Child {
    let url = format!("{}/mcp", upstream.origin());
    let mut portcullis = tokio::process::Command::from(portcullis_command(portcullis_program()));
    portcullis
        .args([command, &url])
        .args(arguments)
        .env("PORTCULLIS_TOKEN", "hush")
        .kill_on_drop(true);
    portcullis
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The largest memory that a running process has used, in bytes.
fn peak(process: &Child) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id().unwrap())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim()
        .trim_end_matches(" kB")
        .parse::<usize>()
        .unwrap()
        * 1024
}

/// Lists the tools through `connect`. Returns the line of the response and the additional memory
/// that it took.
async fn list_through_connect(upstream: &Upstream) -> (String, usize) {
    let mut bridge = start(upstream, "connect", &[]);
    let mut input = bridge.stdin.take().unwrap();
    let mut output = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let mut request = async |method: &str| {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": REVISION });
        let request =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": meta } });
        input
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
        timeout(LIMIT, output.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
    };
    request("prompts/list").await;
    let before = peak(&bridge);
    let line = request("tools/list").await;
    (line, peak(&bridge) - before)
}

fn assert_small(taken: usize, name: &str) {
    assert!(
        taken < 3 * SIZE,
        "{name}: {} MiB for a message of {} MiB",
        taken >> 20,
        SIZE >> 20
    );
}

/// A message is forwarded unchanged, and takes less than three times its size.
#[tokio::test]
async fn a_message_through_connect_takes_little_memory() {
    for (name, is_event, result) in [
        (
            "tiny tools",
            false,
            format!(r#"{{"tools":[{}]}}"#, many("[]")),
        ),
        (
            "a tiny schema",
            true,
            format!(
                r#"{{"tools":[{{"name":"t","inputSchema":{{"x":[{}]}}}}]}}"#,
                many("{}")
            ),
        ),
        (
            "tiny members",
            false,
            format!(r#"{{"tools":[],"x":{{{}}}}}"#, many(r#""":0"#)),
        ),
        (
            "deep data",
            true,
            format!(
                r#"{{"tools":[],"x":{}{}}}"#,
                "[".repeat(SIZE / 2),
                "]".repeat(SIZE / 2)
            ),
        ),
    ] {
        let text = response(&result);
        let (line, taken) = list_through_connect(&server(&text, is_event).await).await;
        assert!(line == text, "{name}: {line:.200}");
        assert_small(taken, name);
    }
}

/// A list without its invalid tools, a message on several lines, and what is not a message also
/// take less than three times their size.
#[tokio::test]
async fn a_changed_or_rejected_message_takes_little_memory() {
    let valid = r#"{"name":"t"}"#;
    let invalid = r#"{"inputSchema":{"x-mcp-header":1}}"#;
    let filtered = response(&format!(r#"{{"tools":[{}]}}"#, many(valid)));
    let list = filtered.replacen('[', &format!("[{invalid},"), 1);
    let lines = response(&format!(r#"{{"tools":[{}]}}"#, many("[\n]")));
    let batch = format!("[{}]", many("[]"));
    let identifier = format!(r#"{{"jsonrpc":"2.0","id":[{}],"result":{{}}}}"#, many("[]"));
    for (name, text, expected) in [
        ("an invalid tool", &list, Some(filtered)),
        ("several lines", &lines, Some(lines.replace('\n', " "))),
        ("a batch", &batch, None),
        ("an identifier", &identifier, None),
    ] {
        let (line, taken) = list_through_connect(&server(text, false).await).await;
        match expected {
            Some(expected) => assert!(line == expected, "{name}: {line:.200}"),
            None => {
                let error: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(error["error"]["data"]["reason"], "mcp.answer", "{name}");
            }
        }
        assert_small(taken, name);
    }
}

/// Returns what `call` prints for a result without white space, and the memory of the program when
/// half of it is printed.
async fn print_through_call(result: &str) -> (String, usize) {
    let upstream = server(&response(result), false).await;
    let mut call = start(
        &upstream,
        "call",
        &["tools/list", "--modern", "--max-message", "16"],
    );
    let mut output = call.stdout.take().unwrap();
    // The program waits while its output is not read: it runs when the memory is measured.
    let mut printed = vec![0; result.len() / 2];
    timeout(LIMIT, output.read_exact(&mut printed))
        .await
        .unwrap()
        .unwrap();
    let taken = peak(&call);
    timeout(LIMIT, output.read_to_end(&mut printed))
        .await
        .unwrap()
        .unwrap();
    printed.retain(|character| !character.is_ascii_whitespace());
    (String::from_utf8(printed).unwrap(), taken)
}

/// `call` prints such a result with less than three times its size.
#[tokio::test]
async fn a_result_of_call_takes_little_memory() {
    // More than a pipe holds.
    let small = format!("[{}]", "[],".repeat(100_000) + "1");
    let (_, before) = print_through_call(&small).await;
    let result = format!(r#"{{"tools":[{}]}}"#, many(r#"{"x":[1]}"#));
    let (printed, peak) = print_through_call(&result).await;
    assert!(printed == result, "{printed:.200}");
    assert_small(peak - before, "call");
}

/// A message before the result, of which `call` shows the beginning, takes less than three times
/// its size.
#[tokio::test]
async fn a_message_before_the_result_takes_little_memory() {
    // More than a pipe holds, so that the program runs when its memory is measured.
    let result = format!("[{}]", "[],".repeat(100_000) + "1");
    let peak_with = async |data: &str| {
        let notification =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":[{data}]}}"#);
        let upstream = server(
            &format!("{notification}\n\ndata: {}", response(&result)),
            true,
        )
        .await;
        let mut call = start(
            &upstream,
            "call",
            &["tools/list", "--modern", "--max-message", "16"],
        );
        let mut output = call.stdout.take().unwrap();
        let mut printed = vec![0; result.len() / 2];
        timeout(LIMIT, output.read_exact(&mut printed))
            .await
            .unwrap()
            .unwrap();
        peak(&call)
    };
    let before = peak_with("[]").await;
    let with_large_message = peak_with(&many(r#"{"x+":"%2F\\u002f"}"#)).await;
    assert_small(with_large_message - before, "a message before the result");
}

/// Without the option, a result of more than 8 MiB is rejected, and the error names the option.
#[tokio::test]
async fn a_large_result_of_call_needs_an_option() {
    // The rest of the message exceeds the limit.
    let upstream = server(&response(&format!("[{},[],[]]", many("[]"))), false).await;
    let url = format!("{}/mcp", upstream.origin());
    let finished = Portcullis::run_with(
        &["call", &url, "tools/list", "--modern"],
        &[("PORTCULLIS_TOKEN", "hush")],
    )
    .await;
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("a message of more than 8 MiB; a larger --max-message permits it"),
        "{}",
        finished.stderr
    );
}
