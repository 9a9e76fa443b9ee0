//! Sign-ins without `resource`, at known providers and on request.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::{AccessToken, ResourceUri, Secret, client::ClientRegistrationResponse};
use serde_json::{Value, json};

use super::{confirming_user::ConfirmingUser, *};
use crate::store::{CredentialStore, ImportedToken};

const ENTRA: &str = "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0";
const ENTRA_TOKEN: &str =
    "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/oauth2/v2.0/token";
const OWN_SCOPE: &str = "api://11112222-bbbb-3333-cccc-4444dddd5555/tools";

/// Returns Entra ID's response to a token request, with a token for an audience.
fn entra_token(audience: &str, scope: &str) -> Value {
    let payload = URL_SAFE_NO_PAD.encode(json!({ "aud": audience }).to_string());
    json!({
        "access_token": format!("e30.{payload}.c2ln"), "token_type": "Bearer", "expires_in": 300, "scope": scope,
        "refresh_token": "refresh-me",
    })
}

/// A resource with Entra ID as its authorization server, and this scope in its challenge; and Entra
/// ID's endpoints.
fn at_entra(scope: &'static str, token: Value) -> Arc<FetchFn> {
    FetchFn::new(move |request| match request.url.as_str() {
        PRM_URL => {
            let mut document = prm(RESOURCE);
            document["authorization_servers"] = json!([ENTRA]);
            Some(Reply::json(200, document))
        }
        url if url == format!("{ENTRA}/.well-known/openid-configuration") => Some(Reply::json(
            200,
            json!({
                "issuer": ENTRA,
                "authorization_endpoint": ENTRA_TOKEN.replace("/token", "/authorize"),
                "token_endpoint": ENTRA_TOKEN,
                "device_authorization_endpoint": ENTRA_TOKEN.replace("/token", "/devicecode"),
                "response_types_supported": ["code"],
                "scopes_supported": ["openid", "profile", "email", "offline_access"],
            }),
        )),
        url if url.contains("login.microsoftonline.com/.well-known") => Some(Reply::status(404)),
        url if url.ends_with("/devicecode") => Some(Reply::json(
            200,
            json!({
                "device_code": "the-device", "user_code": "AB-CD", "expires_in": 600, "interval": 5,
                "verification_uri": "https://login.microsoftonline.com/device",
            }),
        )),
        ENTRA_TOKEN => Some(Reply::json(200, token.clone())),
        _ if request.url.host_str() == Some("mcp.example.com") && request.url.path() == "/mcp" => {
            let challenge = format!(r#"Bearer resource_metadata="{PRM_URL}", scope="{scope}""#);
            Some(Reply::status(401).header(header::WWW_AUTHENTICATE, &challenge))
        }
        _ => well_behaved(request),
    })
}

async fn signed_in(
    network: &Arc<FetchFn>,
    user: &Arc<ConfirmingUser>,
    settings: AuthorizerSettings,
) -> Result<ResourceToken, ClientError> {
    authorizer(network, user, settings)
        .authorize(&StartUrl::parse(RESOURCE).unwrap())
        .await
}

/// I1, G7: requests to Entra ID have no `resource`, but PKCE, and `scope` in refresh requests; the
/// user is asked first.
#[tokio::test]
async fn requests_to_entra() {
    let network = at_entra(OWN_SCOPE, entra_token("11112222", OWN_SCOPE));
    let user = ConfirmingUser::without_iss(true);
    let authorizer = authorizer(&network, &user, AuthorizerSettings::default());
    let start = StartUrl::parse(RESOURCE).unwrap();
    let token = authorizer.authorize(&start).await.unwrap();
    let authorization = query(&user.scripted.last_visit());
    assert!(!authorization.contains_key("resource"), "{authorization:?}");
    assert!(!authorization.contains_key("prompt"), "{authorization:?}");
    assert_eq!(authorization["code_challenge_method"], "S256");
    assert_eq!(
        authorization["scope"],
        format!("{OWN_SCOPE} offline_access")
    );
    assert!(!form(&network.to(ENTRA_TOKEN)[0]).contains_key("resource"));
    assert_eq!(
        user.questions(),
        [format!("{RESOURCE} {ENTRA} {OWN_SCOPE} offline_access")]
    );
    assert_eq!(user.recognized(), ["Microsoft Entra ID"]);

    authorizer.refresh(&start, &token, None).await.unwrap();
    let refresh = form(&network.to(ENTRA_TOKEN)[1]);
    assert_eq!(refresh["scope"], format!("{OWN_SCOPE} offline_access"));
    assert!(!refresh.contains_key("resource"));
}

/// I9: an imported token is refreshed with its resource, unless it was requested without one or its
/// provider rejects it. Only an unbound token can be for another API.
#[tokio::test]
async fn imported_tokens_are_refreshed_as_they_were_requested() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    for (issuer, token_url, is_unbound, resource) in [
        (ISSUER, TOKEN_URL, false, Some(RESOURCE)),
        (ISSUER, TOKEN_URL, true, None),
        (ENTRA, ENTRA_TOKEN, false, None),
    ] {
        let settings = AuthorizerSettings {
            store: CredentialStore::in_memory(),
            ..AuthorizerSettings::default()
        };
        let issuer = Issuer::parse(issuer).unwrap();
        let resource_uri = ResourceUri::parse(RESOURCE).unwrap();
        let mut token = ImportedToken::new(
            start.clone(),
            resource_uri,
            issuer,
            "client".into(),
            AccessToken::new("first"),
        );
        token.is_unbound = is_unbound;
        token.refresh_token = Some(Secret::new("refresh-me"));
        let registration = ClientRegistrationResponse::parse(br#"{"client_id":"client"}"#).unwrap();
        token.registration = Some((
            Url::parse("http://127.0.0.1/callback").unwrap(),
            registration,
        ));
        assert!(settings.store.import(token).await.unwrap());

        let stored = settings.store.tokens(&start).unwrap().remove(0);
        let graph = entra_token("https://graph.microsoft.com", "");
        let network = match token_url {
            TOKEN_URL => network_with(move |request| {
                (request.url.as_str() == TOKEN_URL).then(|| Reply::json(200, graph.clone()))
            }),
            _ => at_entra(OWN_SCOPE, graph),
        };
        let user = ConfirmingUser::without_iss(true);
        let result = authorizer(&network, &user, settings)
            .refresh(&start, &stored, None)
            .await;
        let sent = form(&network.to(token_url)[0]);
        assert_eq!(sent.get("resource").map(String::as_str), resource);
        let code = result.err().map(|error| error.code());
        assert_eq!(code, resource.is_none().then_some("client.other_api"));
    }
}

/// I1: a hostile server with Entra ID as its issuer and a scope of Microsoft Graph gets no token:
/// there is no question, no authorization request and no registration.
#[tokio::test]
async fn scopes_of_other_apis_are_rejected() {
    for scope in [
        "https://graph.microsoft.com/.default",
        "User.Read",
        ".default",
        "openid 00000003-0000-0000-c000-000000000000/Mail.ReadWrite",
        "api://11112222-bbbb-3333-cccc-4444dddd5555/tools https://graph.microsoft.com/Files.ReadWrite.All",
        "https://management.azure.com/user_impersonation",
    ] {
        let network = at_entra(scope, entra_token("x", ""));
        let user = ConfirmingUser::without_iss(true);
        let mut settings = AuthorizerSettings::default();
        settings.provider.accept_unbound_token = true;
        let error = signed_in(&network, &user, settings).await.unwrap_err();
        assert_eq!(error.code(), "client.other_api", "{scope}");
        assert_eq!(user.scripted.visits(), 0, "{scope}");
        assert_eq!(user.questions().len(), 0, "{scope}");
        assert_eq!(network.to(ENTRA_TOKEN).len(), 0, "{scope}");
        assert!(user.client_requests().is_empty());
    }
}

/// I1: a token whose audience or scopes belong to another API is not used, also after a refresh.
#[tokio::test]
async fn tokens_of_other_apis_are_rejected() {
    for token in [
        entra_token("00000003-0000-0000-c000-000000000000", OWN_SCOPE),
        entra_token("https://graph.microsoft.com", OWN_SCOPE),
        entra_token(
            "11112222",
            "profile openid https://graph.microsoft.com/User.Read",
        ),
    ] {
        let network = at_entra("openid", token.clone());
        let user = ConfirmingUser::without_iss(true);
        let error = signed_in(&network, &user, AuthorizerSettings::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), "client.other_api");
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains(token["access_token"].as_str().unwrap()),
            "{shown}"
        );
        assert!(!shown.contains("refresh-me"), "{shown}");
    }
}

/// I1: without the user's acceptance, no authorization request is made.
#[tokio::test]
async fn a_sign_in_needs_acceptance() {
    let network = at_entra(OWN_SCOPE, entra_token("x", OWN_SCOPE));
    let user = ConfirmingUser::without_iss(false);
    let error = signed_in(&network, &user, AuthorizerSettings::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "client.unbound_token");
    assert_eq!(user.questions().len(), 1);
    assert_eq!(user.scripted.visits(), 0);
    assert!(error.to_string().contains(OWN_SCOPE), "{error}");
    assert!(error.to_string().contains(ENTRA), "{error}");
    assert!(user.client_requests().is_empty(), "a client was requested");

    let mut settings = AuthorizerSettings::default();
    settings.provider.accept_unbound_token = true;
    assert!(signed_in(&network, &user, settings).await.is_ok());
    assert_eq!(user.questions().len(), 1);
}

/// I1, I6: the acceptance of a token covers its replacement, but not further scopes.
#[tokio::test]
async fn further_scopes_are_asked_about() {
    let network = at_entra(OWN_SCOPE, entra_token("x", OWN_SCOPE));
    let user = ConfirmingUser::without_iss(true);
    let authorizer = authorizer(&network, &user, AuthorizerSettings::default());
    let start = StartUrl::parse(RESOURCE).unwrap();
    let challenge = authorizer.probe(&start).await.unwrap();
    let token = authorizer.obtain(&start, &challenge, None).await.unwrap();
    authorizer
        .obtain(&start, &challenge, Some(&token))
        .await
        .unwrap();
    assert_eq!(user.questions().len(), 1);

    let more = challenge
        .with_scopes(&Scopes::parse("api://11112222-bbbb-3333-cccc-4444dddd5555/admin").unwrap());
    authorizer
        .obtain(&start, &more, Some(&token))
        .await
        .unwrap();
    assert_eq!(user.questions().len(), 2);
    let graph =
        challenge.with_scopes(&Scopes::parse("https://graph.microsoft.com/.default").unwrap());
    let error = authorizer
        .obtain(&start, &graph, Some(&token))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "client.other_api");
}

/// H3: a client for a sign-in without `resource` is used only for its start URL.
#[tokio::test]
async fn clients_are_bound_to_the_start_url() {
    let network = at_entra(OWN_SCOPE, entra_token("x", OWN_SCOPE));
    let user = ConfirmingUser::without_iss(true);
    let settings = AuthorizerSettings {
        store: CredentialStore::in_memory(),
        ..AuthorizerSettings::default()
    };
    for _ in 0..2 {
        signed_in(&network, &user, settings.clone()).await.unwrap();
        assert_eq!(user.client_requests().len(), 1);
    }
    let other = StartUrl::parse(&format!("{RESOURCE}?other")).unwrap();

    // Whether the other resource is served does not matter: the store has no client for it.
    let issuer = Issuer::parse(ENTRA).unwrap();
    let store = &settings.store;
    let start = StartUrl::parse(RESOURCE).unwrap();
    let read = |only_for: Option<Url>| {
        let issuer = issuer.clone();
        async move {
            store
                .lock_client_by_hand(&issuer, only_for.as_ref())
                .await
                .unwrap()
                .read(&issuer)
                .unwrap()
        }
    };
    assert!(read(Some(start.url().clone())).await.is_some());
    assert!(read(Some(other.url().clone())).await.is_none());
    assert!(read(None).await.is_none());
}

/// I1, G7: with the settings, `resource` is omitted and PKCE is assumed at any server, and the
/// registration is for this URL only.
#[tokio::test]
async fn the_settings_apply_to_any_server() {
    let network = network_with_metadata(|document| {
        drop(
            document
                .as_object_mut()
                .unwrap()
                .remove("code_challenge_methods_supported"),
        )
    });
    let user = ScriptedUser::consents();
    let mut settings = AuthorizerSettings::default();
    settings.provider.omit_resource = true;
    settings.provider.assume_pkce = true;
    let start = StartUrl::parse(RESOURCE).unwrap();
    let result = authorizer(&network, &user, settings.clone())
        .authorize(&start)
        .await;
    assert_eq!(result.unwrap_err().code(), "client.unbound_token");

    settings.provider.accept_unbound_token = true;
    let token = authorizer(&network, &user, settings)
        .authorize(&start)
        .await
        .unwrap();
    assert!(token.is_unbound());
    assert!(!query(&user.last_visit()).contains_key("resource"));
    assert!(!form(&network.to(TOKEN_URL)[0]).contains_key("resource"));
}

/// I1, I8: the device flow omits `resource`, asks the user first, has a client for its URL, and
/// rejects scopes and tokens of other APIs.
#[tokio::test(start_paused = true)]
async fn the_device_flow_is_checked() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let by_device =
        |network: &Arc<FetchFn>, user: &Arc<ConfirmingUser>, settings: AuthorizerSettings| {
            Authorizer::device_builder(user.clone())
                .fetch(network.clone())
                .clock(clock())
                .settings(settings)
                .build()
                .unwrap()
        };
    let device_url = ENTRA_TOKEN.replace("/token", "/devicecode");
    let network = at_entra(OWN_SCOPE, entra_token("11112222", OWN_SCOPE));
    let user = ConfirmingUser::without_iss(true);
    let mut settings = AuthorizerSettings {
        store: CredentialStore::in_memory(),
        ..AuthorizerSettings::default()
    };
    settings.provider.parameters =
        vec![crate::provider::AuthorizeParameter::parse("audience=own").unwrap()];
    let token = by_device(&network, &user, settings.clone())
        .authorize(&start)
        .await
        .unwrap();
    assert!(token.is_unbound());

    let request = form(&network.to(&device_url)[0]);
    assert!(!request.contains_key("resource"), "{request:?}");
    assert_eq!(
        request["scope"].as_str(),
        &*format!("{OWN_SCOPE} offline_access")
    );
    assert_eq!(request["audience"].as_str(), "own");
    assert!(!form(&network.to(ENTRA_TOKEN)[0]).contains_key("resource"));
    assert_eq!(user.questions().len(), 1);
    assert_eq!(user.recognized().len(), 1);

    let issuer = Issuer::parse(ENTRA).unwrap();
    for (only_for, is_kept) in [(Some(start.url()), true), (None, false)] {
        let entry = settings
            .store
            .lock_client_by_hand(&issuer, only_for)
            .await
            .unwrap();
        assert_eq!(entry.read(&issuer).unwrap().is_some(), is_kept);
    }

    struct Rejected {
        accepts: bool,
        scope: &'static str,
        audience: &'static str,
        code: &'static str,
        requests: usize,
    }
    let own = Rejected {
        accepts: true,
        scope: OWN_SCOPE,
        audience: "11112222",
        code: "client.other_api",
        requests: 0,
    };
    for Rejected {
        accepts,
        scope,
        audience,
        code,
        requests,
    } in [
        Rejected {
            accepts: false,
            code: "client.unbound_token",
            ..own
        },
        Rejected {
            scope: "User.Read",
            ..own
        },
        Rejected {
            audience: "https://graph.microsoft.com",
            requests: 1,
            ..own
        },
    ] {
        let network = at_entra(scope, entra_token(audience, OWN_SCOPE));
        let user = ConfirmingUser::without_iss(accepts);
        let result = by_device(&network, &user, AuthorizerSettings::default())
            .authorize(&start)
            .await;
        assert_eq!(result.unwrap_err().code(), code);
        assert_eq!(network.to(&device_url).len(), requests, "{code}");
    }
}

/// G4: a device authorization endpoint of a known provider at another issuer makes the token
/// unbound.
#[tokio::test]
async fn borrowed_device_endpoints_are_recognized() {
    let network = network_with_metadata(|document| {
        document["device_authorization_endpoint"] =
            "https://login.microsoftonline.com/common/oauth2/devicecode".into();
    });
    let user = ScriptedUser::consents();
    let authorizer = Authorizer::device_builder(user)
        .fetch(network.clone())
        .clock(clock())
        .build()
        .unwrap();
    let error = authorizer
        .authorize(&StartUrl::parse(RESOURCE).unwrap())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "client.other_api", "{error}");
    assert!(network.to(REGISTRATION_URL).is_empty());
}
