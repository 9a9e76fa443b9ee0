//! Tests of introspection.

use http::header;
use portcullis_metadata::Secret;
use portcullis_testkit::TestIssuer;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::*;
use crate::{
    IssuerHealth, Validation,
    testing::{Bench, ISSUER, Logged, all, settle},
};

mod answers;
mod concurrency;
mod endpoint;
mod probe;
mod request;
mod routing;

const OPAQUE: &str = "an-opaque-token";

fn client() -> IntrospectionSettings {
    IntrospectionSettings { client_secret: Some(Secret::new("hush")), ..IntrospectionSettings::new("portcullis") }
}

/// Returns a bench whose issuer introspects all tokens as active.
fn bench() -> Bench {
    bench_with(|_| ())
}

fn bench_with(change: impl FnOnce(&mut IntrospectionSettings)) -> Bench {
    let mut settings = client();
    change(&mut settings);
    let bench = Bench::with(|issuer| issuer.validation = Validation::Introspection(settings));
    says(&bench, &active());
    bench
}

/// Returns a bench whose issuer verifies signatures and introspects.
fn both() -> Bench {
    let bench = Bench::with(|issuer| issuer.validation = Validation::JwtAndIntrospection(client()));
    says(&bench, &active());
    bench
}

/// Returns a valid introspection response.
fn active() -> Value {
    json!({
        "active": true,
        "aud": TestIssuer::RESOURCE,
        "client_id": "test-client",
        "scope": "mcp:tools mcp:admin",
        "exp": portcullis_testkit::ManualClock::START.as_secs() + 300,
        "sub": "alice",
    })
}

/// Returns a valid response with one changed member.
fn active_with(member: &str, value: impl Into<Value>) -> Value {
    let mut answer = active();
    answer[member] = value.into();
    answer
}

fn active_without(member: &str) -> Value {
    let mut answer = active();
    answer.as_object_mut().unwrap().remove(member);
    answer
}

fn says(bench: &Bench, answer: &Value) {
    bench.fake.serve(endpoint(bench), 200, answer.to_string());
}

fn endpoint(bench: &Bench) -> Url {
    bench.test_issuer.endpoint("introspect")
}

/// Returns the number of introspection calls.
fn calls(bench: &Bench) -> usize {
    bench.fake.hits(endpoint(bench))
}

/// Returns the form and the `Authorization` header of the last call.
fn last_call(bench: &Bench) -> (Vec<(String, String)>, Option<String>) {
    let request = bench.fake.requests(endpoint(bench)).pop().unwrap();
    let form = form_urlencoded::parse(&request.body).into_owned().collect();
    let authorization = request.headers.get(header::AUTHORIZATION).map(|value| {
        assert!(value.is_sensitive());
        value.to_str().unwrap().to_owned()
    });
    (form, authorization)
}

fn fields(form: &[(String, String)]) -> Vec<(&str, &str)> {
    form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}
