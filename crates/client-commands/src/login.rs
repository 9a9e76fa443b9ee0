//! `portcullis login`, `logout` and `token`: stored tokens of protected resources.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use portcullis_client::{
    ResourceToken, Shortened, SignOut, StartUrl, TokenManager, store::CredentialStore,
};
use portcullis_discovery::{Product, ResourceMatch};
use portcullis_metadata::{Clock as _, EscapedText, Scopes, SystemClock};
use portcullis_terminal::{counted, print, remedy, report, tell};

use crate::{
    cli, command_error,
    end_signals::until_signal,
    sign_in::{self, LoginOptions, SignIn, TOKEN_VARIABLE},
};

/// Signs in, even if there is a valid token.
pub(crate) fn login(login: &cli::Login, product: Product) -> anyhow::Result<()> {
    let arguments = &login.sign_in;
    let options = LoginOptions {
        device: login.device,
        fresh: login.fresh,
    };
    if std::env::var_os(TOKEN_VARIABLE).is_some() {
        bail!("{TOKEN_VARIABLE} is set and replaces the sign-in; unset it");
    }
    crate::control_runtime()?.block_on(async {
        let start = StartUrl::parse(&arguments.url)?;
        let store = sign_in::store(arguments)?;
        let SignIn { token_manager, .. } =
            sign_in::prepare_login(arguments, product, start, store.clone(), options).await?;
        // A token that is only in memory would be lost with this process.
        store.check_writable().await?;
        let token = token_manager.sign_in().await?;
        let start = token_manager.start_url();
        if let Some(failure) = store.write_failure() {
            bail!(
                "signed in, but the token is lost: {failure}{}",
                remedy(&failure)
            );
        }
        tell(format_args!(
            "signed in to {}\n{}",
            token.resource().as_str(),
            granted(&token)
        ));
        if ResourceMatch::of(token.resource(), start.url()) == Some(ResourceMatch::PathPrefix) {
            tell(format_args!(
                "the token is valid for all paths of {}, not only for {start}",
                token.resource().as_str()
            ));
        }
        let missing = token.ungranted_scopes();
        if !missing.is_empty() {
            tell(format_args!(
                "not granted: {}; requests that need these scopes will be rejected",
                Shortened(&missing)
            ));
        }
        Ok(())
    })
}

/// Deletes a token, and revokes it if the authorization server supports that.
pub(crate) fn logout(logout: &cli::Logout, product: Product) -> anyhow::Result<()> {
    let arguments = &logout.sign_in;
    if std::env::var_os(TOKEN_VARIABLE).is_some() {
        bail!(
            "{TOKEN_VARIABLE} is set and replaces the stored token, which would be kept; unset it to sign out"
        );
    }
    match (logout.all, arguments.url.is_empty()) {
        (true, false) => bail!("`logout --all` does not accept a URL"),
        (false, true) => bail!("give the URL to sign out of, or --all"),
        _ => {}
    }
    crate::control_runtime()?.block_on(async {
        let store = sign_in::store(arguments)?;
        if !logout.all {
            return sign_out(logout, product, StartUrl::parse(&arguments.url)?, store).await;
        }
        let starts = store.start_urls()?;
        if starts.is_empty() {
            tell("there was no token");
        }
        let mut failed = 0;
        for start in starts {
            tell(&start);
            // If one server cannot be reached, the other tokens are still deleted.
            if let Err(error) = sign_out(logout, product, start, store.clone()).await {
                report(&command_error(error));
                failed += 1;
            }
        }
        // Unreadable files can contain tokens.
        let removed = store.remove_corrupted(None)?;
        if removed > 0 {
            tell(format_args!(
                "removed {}",
                counted(removed, "unreadable file")
            ));
        }
        if failed > 0 {
            bail!("{} failed", counted(failed, "sign-out"));
        }
        Ok(())
    })
}

async fn sign_out(
    logout: &cli::Logout,
    product: Product,
    start: StartUrl,
    store: CredentialStore,
) -> anyhow::Result<()> {
    let SignIn { token_manager, .. } =
        sign_in::prepare(&logout.sign_in, product, start, store).await?;
    let (result, registrations) = match logout.forget_client {
        true => token_manager.sign_out_and_forget_client().await?,
        false => (token_manager.sign_out().await?, 0),
    };
    tell(match result {
        SignOut::NotSignedIn => "there was no token",
        SignOut::Revoked => "signed out; the authorization server revoked the token",
        SignOut::RefreshTokenRevoked => {
            "signed out; the authorization server revoked the refresh token. It does not revoke access tokens: the current one \
             is valid until it expires"
        }
        SignOut::ForgottenLocally => {
            "signed out on this machine; the authorization server does not revoke tokens: the token is valid until it expires"
        }
    });
    if logout.forget_client {
        tell(format_args!("registrations deleted here: {registrations}"));
    }
    Ok(())
}

/// Prints a valid access token. It never opens a browser, because scripts cannot sign in.
pub(crate) fn token(arguments: &cli::SignIn, product: Product) -> anyhow::Result<ExitCode> {
    if let Some(token) = sign_in::token_of_the_environment()? {
        print(token.secret())?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = crate::control_runtime()?;
    let outcome = runtime.block_on(async {
        let SignIn { token_manager, .. } = prepare(arguments, product).await?;
        until_signal(&token_manager, print_token(arguments, &token_manager)).await
    });
    // After a signal, the resolution of a name must not delay the end.
    runtime.shutdown_background();
    outcome
}

async fn print_token(
    arguments: &cli::SignIn,
    token_manager: &TokenManager,
) -> anyhow::Result<ExitCode> {
    let url = &arguments.url;
    let wanted = wanted_scopes(arguments)?;
    let Some(token) = token_manager.token_with_scopes(&wanted).await? else {
        bail!(
            "no stored token for {url} can be used without interaction; run `portcullis login {url}`"
        );
    };
    let missing = token.missing_scopes(&wanted);
    if !missing.is_empty() {
        bail!(
            "the token for {url} lacks the scopes {}, and its refresh token grants no more; run \
             `portcullis login {url} --scope \"…\"` with all scopes",
            Shortened(&missing)
        );
    }
    if token.is_dpop_bound() {
        bail!(
            "the token for {url} is bound to a key (DPoP): it cannot be used without the key; call through `portcullis call`"
        );
    }
    print(token.access_token().secret())?;
    Ok(ExitCode::SUCCESS)
}

fn wanted_scopes(arguments: &cli::SignIn) -> anyhow::Result<Scopes> {
    let Some(scope) = &arguments.scope else {
        return Ok(Scopes::empty());
    };
    Scopes::parse(scope).with_context(|| format!("--scope {scope:?}"))
}

async fn prepare(arguments: &cli::SignIn, product: Product) -> anyhow::Result<SignIn> {
    sign_in::prepare(
        arguments,
        product,
        StartUrl::parse(&arguments.url)?,
        sign_in::store(arguments)?,
    )
    .await
}

/// Describes what was granted.
fn granted(token: &ResourceToken) -> String {
    let scopes = token
        .scopes()
        .map(|scopes| scopes.iter().collect::<Vec<_>>().join(" "));
    let life = match token.expires_at() {
        Some(expires) => format!(
            "{} s",
            expires
                .saturating_duration_since(SystemClock::new().now())
                .as_secs()
        ),
        None => "an unknown time".to_owned(),
    };
    let renewal = if token.refresh_token().is_some() {
        "it is refreshed automatically"
    } else {
        "there is no refresh token"
    };
    format!(
        "  granted by  {}\n  to client   {}\n  scopes      {}\n  valid for   {life}; {renewal}",
        token.issuer(),
        EscapedText(&Shortened(token.client_id().unwrap_or("without a name")).to_string()),
        Shortened(scopes.unwrap_or_else(|| "not stated".to_owned())),
    )
}
