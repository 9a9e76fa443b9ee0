//! A call that the server has accepted is not sent again when the server then loses the session.

use super::{
    server_requests::{AcceptingHandler, sent},
    *,
};

const NO_SESSION: &str =
    r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"No valid session"},"id":null}"#;

/// The rejections of a server that does not know the session.
fn rejections() -> [fn() -> Reply; 2] {
    [|| Reply::status(404), || Reply::json(400, NO_SESSION)]
}

/// Responds to a call as `call` does, to another request in its session as `rest` does, and
/// otherwise as [`legacy`].
fn server(call: impl Fn() -> Reply + Send + Sync + 'static, rest: fn() -> Reply) -> Arc<FetchFn> {
    endpoint(
        move |message, request| match (&request.method, message["method"].as_str()) {
            (&Method::POST, Some("tools/call")) => call(),
            (&Method::GET, _) | (&Method::POST, None) => rest(),
            _ => legacy(message, request),
        },
    )
}

/// A stream breaks, and the server does not know the session in which it is to be resumed.
#[tokio::test(start_paused = true)]
async fn a_call_whose_stream_cannot_be_resumed_is_sent_once() {
    for rejection in rejections() {
        let network = server(
            || Reply::events(&["id: e1\ndata:\n\n"]).interrupted(),
            rejection,
        );
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
        client.initialize().await.unwrap();
        assert_eq!(
            client.call("tools/call", None).await.unwrap_err().code(),
            "mcp.session_lost"
        );
        assert_eq!(sent(&network, "tools/call").len(), 1);
    }
}

/// The server does not know the session in which its own request is answered.
#[tokio::test]
async fn a_call_whose_request_cannot_be_answered_is_sent_once() {
    for rejection in rejections() {
        let question =
            "data: {\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"elicitation/create\"}\n\n";
        let network = server(move || Reply::events(&[question]), rejection);
        let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25)
            .with_request_handler(Arc::new(AcceptingHandler));
        client.initialize().await.unwrap();
        assert_eq!(
            client.call("tools/call", None).await.unwrap_err().code(),
            "mcp.session_lost"
        );
        assert_eq!(sent(&network, "tools/call").len(), 1);
    }
}

/// A header mismatch of a later request is not one of the call.
#[tokio::test(start_paused = true)]
async fn a_call_is_sent_once_if_a_later_request_is_rejected() {
    const MISMATCH: &str = r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"no"},"id":null}"#;
    let network = server(
        || Reply::events(&["id: e1\ndata:\n\n"]),
        || Reply::json(400, MISMATCH),
    );
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    let params = json!({ "name": "t" });
    assert_eq!(
        client
            .call("tools/call", Some(params))
            .await
            .unwrap_err()
            .code(),
        "mcp.rpc"
    );
    assert_eq!(sent(&network, "tools/call").len(), 1);
}

/// Another call replaces the session meanwhile. The identifier of an event means nothing in the new
/// one.
#[tokio::test(start_paused = true)]
async fn a_stream_is_not_resumed_in_another_session() {
    let pings = AtomicUsize::new(0);
    let network =
        endpoint(
            move |message, request| match (&request.method, message["method"].as_str()) {
                (&Method::POST, Some("tools/call")) => Reply::events(&["id: e1\ndata:\n\n"]),
                (&Method::POST, Some("ping")) if pings.fetch_add(1, Ordering::Relaxed) == 0 => {
                    Reply::status(404)
                }
                _ => legacy(message, request),
            },
        );
    let client = client(&network, &ScriptedUser::consents(), Revision::V2025_11_25);
    client.initialize().await.unwrap();
    let (call, ping) = tokio::join!(client.call("tools/call", None), client.call("ping", None));
    assert_eq!(call.unwrap_err().code(), "mcp.session_lost");
    assert_eq!(ping.unwrap(), "ok");
    assert_eq!(
        sent(&network, "initialize").len(),
        3,
        "without and with a token, and after the rejection"
    );
    assert!(
        network
            .to(RESOURCE)
            .iter()
            .all(|request| !request.headers.contains_key(names::LAST_EVENT_ID))
    );
}
