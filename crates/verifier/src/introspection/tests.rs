//! Tests of introspection.

use http::header;
use portcullis_metadata::Secret;
use portcullis_testkit::TestIssuer;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::*;
use crate::{
    IssuerHealth, Validation,
    testing::{Fixture, ISSUER, Logged, all, settle},
};

mod concurrency;
mod endpoint;
mod probe;
mod request;
mod responses;
mod routing;

const OPAQUE: &str = "an-opaque-token";

fn client() -> IntrospectionSettings {
    IntrospectionSettings {
        client_secret: Some(Secret::new("hush")),
        ..IntrospectionSettings::new("portcullis")
    }
}

/// Returns a fixture whose issuer introspects all tokens as active.
fn fixture() -> Fixture {
    fixture_with(|_| ())
}

fn fixture_with(change: impl FnOnce(&mut IntrospectionSettings)) -> Fixture {
    let mut settings = client();
    change(&mut settings);
    let fixture = Fixture::with(|issuer| issuer.validation = Validation::Introspection(settings));
    set_response(&fixture, &active());
    fixture
}

/// Returns a fixture whose issuer verifies signatures and introspects.
fn both() -> Fixture {
    let fixture =
        Fixture::with(|issuer| issuer.validation = Validation::JwtAndIntrospection(client()));
    set_response(&fixture, &active());
    fixture
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
    let mut response = active();
    response[member] = value.into();
    response
}

fn active_without(member: &str) -> Value {
    let mut response = active();
    response.as_object_mut().unwrap().remove(member);
    response
}

fn set_response(fixture: &Fixture, response: &Value) {
    fixture
        .fake
        .serve(endpoint(fixture), 200, response.to_string());
}

fn endpoint(fixture: &Fixture) -> Url {
    fixture.test_issuer.endpoint("introspect")
}

/// Returns the number of introspection calls.
fn calls(fixture: &Fixture) -> usize {
    fixture.fake.hits(endpoint(fixture))
}

/// Returns the form and the `Authorization` header of the last call.
fn last_call(fixture: &Fixture) -> (Vec<(String, String)>, Option<String>) {
    let request = fixture.fake.requests(endpoint(fixture)).pop().unwrap();
    let form = form_urlencoded::parse(&request.body).into_owned().collect();
    let authorization = request.headers.get(header::AUTHORIZATION).map(|value| {
        assert!(value.is_sensitive());
        value.to_str().unwrap().to_owned()
    });
    (form, authorization)
}

fn fields(form: &[(String, String)]) -> Vec<(&str, &str)> {
    form.iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}
