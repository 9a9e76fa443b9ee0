//! Concurrent requests share introspection calls, whose number is bounded.

use super::*;

fn verify(fixture: &Fixture, token: String) -> tokio::task::JoinHandle<Option<&'static str>> {
    let verifier = Arc::clone(&fixture.verifier);
    tokio::spawn(async move {
        verifier
            .verify(&AccessToken::new(token))
            .await
            .err()
            .map(|error| error.code())
    })
}

/// D4: concurrent requests with one token cause one call and share its result.
#[tokio::test(start_paused = true)]
async fn one_call_for_one_token() {
    for (response, code) in [
        (active(), None),
        (json!({"active": false}), Some("token.inactive")),
    ] {
        let fixture = fixture();
        fixture.issuer.refresh_now().await.unwrap();
        set_response(&fixture, &response);
        let gate = fixture.fake.hang(endpoint(&fixture));
        let callers: Vec<_> = (0..100)
            .map(|_| verify(&fixture, OPAQUE.to_owned()))
            .collect();
        gate.reached().await;
        settle().await;
        assert_eq!(calls(&fixture), 1);
        gate.release();
        for caller in callers {
            assert_eq!(caller.await.unwrap(), code);
        }
        assert_eq!(calls(&fixture), 1);
    }
}

/// D4: requests for several resources share the call, too.
#[tokio::test(start_paused = true)]
async fn one_call_for_all_resources() {
    let fixture = fixture();
    fixture.issuer.refresh_now().await.unwrap();
    let other = crate::testing::verifier_of(
        "https://mcp.example.com/other",
        vec![Arc::clone(&fixture.issuer)],
        &fixture.clock,
    );
    let gate = fixture.fake.hang(endpoint(&fixture));
    let one = verify(&fixture, OPAQUE.to_owned());
    let token = AccessToken::new(OPAQUE);
    let two =
        tokio::spawn(async move { other.verify(&token).await.err().map(|error| error.code()) });
    settle().await;
    gate.release();
    assert_eq!(one.await.unwrap(), None);
    assert_eq!(two.await.unwrap(), Some("token.audience_mismatch"));
    assert_eq!(calls(&fixture), 1);
}

/// D4: if the request that started a call is cancelled, the others get its result, and the token
/// can be introspected again.
#[tokio::test(start_paused = true)]
async fn a_cancelled_request_does_not_cancel_the_call() {
    let fixture = fixture();
    fixture.issuer.refresh_now().await.unwrap();
    let gate = fixture.fake.hang(endpoint(&fixture));
    let leader = verify(&fixture, OPAQUE.to_owned());
    gate.reached().await;
    let follower = verify(&fixture, OPAQUE.to_owned());
    settle().await;
    leader.abort();
    assert!(leader.await.unwrap_err().is_cancelled());

    gate.release();
    assert_eq!(follower.await.unwrap(), None);
    assert_eq!(calls(&fixture), 1);

    let alone = verify(&fixture, "another".to_owned());
    settle().await;
    alone.abort();
    settle().await;
    assert_eq!(verify(&fixture, "another".to_owned()).await.unwrap(), None);
}

/// D4: the number of concurrent calls is bounded. Further tokens are not verified.
#[tokio::test(start_paused = true)]
async fn concurrent_calls_are_bounded() {
    let fixture = fixture_with(|settings| settings.max_in_flight = 3);
    fixture.issuer.refresh_now().await.unwrap();
    let gate = fixture.fake.hang(endpoint(&fixture));
    let callers: Vec<_> = (0..3)
        .map(|at| verify(&fixture, format!("token-{at}")))
        .collect();
    for _ in 0..3 {
        gate.reached().await;
    }
    let error = fixture
        .verifier
        .verify(&AccessToken::new("one more"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "issuer.introspection_busy");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));

    let follower = verify(&fixture, "token-0".to_owned());
    settle().await;
    assert_eq!(calls(&fixture), 3);
    gate.release();
    for caller in callers {
        assert_eq!(caller.await.unwrap(), None);
    }
    assert_eq!(follower.await.unwrap(), None);
    assert_eq!(fixture.rejection("one more").await, None);
}

/// D4: the default is 64.
#[tokio::test(start_paused = true)]
async fn sixty_four_calls_by_default() {
    let fixture = fixture();
    fixture.issuer.refresh_now().await.unwrap();
    let gate = fixture.fake.hang(endpoint(&fixture));
    let callers: Vec<_> = (0..65)
        .map(|at| verify(&fixture, format!("token-{at}")))
        .collect();
    for _ in 0..64 {
        gate.reached().await;
    }
    settle().await;
    gate.release();
    let mut codes = Vec::new();
    for caller in callers {
        codes.push(caller.await.unwrap());
    }
    assert_eq!(codes.iter().filter(|code| code.is_none()).count(), 64);
    assert_eq!(
        codes
            .iter()
            .filter(|code| **code == Some("issuer.introspection_busy"))
            .count(),
        1
    );
}

/// D4, F4: the number of requests that wait for one call is bounded, too.
#[tokio::test(start_paused = true)]
async fn waiting_requests_are_bounded() {
    let fixture = fixture();
    fixture.issuer.refresh_now().await.unwrap();
    let gate = fixture.fake.hang(endpoint(&fixture));
    let waiting: Vec<_> = (0..512)
        .map(|_| verify(&fixture, "one token".to_owned()))
        .collect();
    gate.reached().await;
    settle().await;
    let error = fixture
        .verifier
        .verify(&AccessToken::new("one token"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "issuer.introspection_busy");
    assert!(error.is_unavailable());

    gate.release();
    for request in waiting {
        assert_eq!(request.await.unwrap(), None);
    }
    assert_eq!(calls(&fixture), 1);
    assert_eq!(fixture.rejection("one token").await, None);
}

/// D4, F4: so is the number of those that wait until the endpoint is discovered.
#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_the_discovery_are_bounded() {
    let fixture = fixture();
    let gate = fixture.fake.hang(fixture.test_issuer.metadata_url());
    let waiting: Vec<_> = (0..512)
        .map(|number| verify(&fixture, format!("token {}", number % 8)))
        .collect();
    gate.reached().await;
    settle().await;
    let error = fixture
        .verifier
        .verify(&AccessToken::new("another token"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "issuer.introspection_busy");
    gate.release();
    for request in waiting {
        assert_eq!(request.await.unwrap(), None);
    }
}

/// D4: calls run on the control runtime; once it has ended, waiting requests fail.
#[test]
fn calls_run_on_the_control_runtime() {
    let control = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let worker = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let endpoint = Url::parse("https://issuer.example/introspect").unwrap();
    let mut settings = client();
    settings.endpoint = Some(endpoint);
    let fixture = Fixture::on(control.handle().clone(), |issuer| {
        issuer.validation = Validation::Introspection(settings)
    });
    set_response(&fixture, &active());
    assert_eq!(worker.block_on(fixture.rejection(OPAQUE)), None);
    control.shutdown_background();
    assert_eq!(
        worker.block_on(fixture.rejection("another")),
        Some("issuer.unavailable")
    );
    assert_eq!(calls(&fixture), 1);
}
