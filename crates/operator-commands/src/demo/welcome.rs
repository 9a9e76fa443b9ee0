//! What the demo prints: its addresses, and commands to try.

use std::{fmt, net::SocketAddr};

use owo_colors::{OwoColorize as _, Stream};
use portcullis_metadata::Issuer;

use super::ENDPOINT;

pub(super) struct Welcome<'a> {
    pub(super) address: SocketAddr,
    pub(super) issuer: &'a Issuer,
    /// Whether the protected server issues the tokens, and the issuer is an identity provider.
    pub(super) has_broker: bool,
    pub(super) auto_consent: bool,
}

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            issuer,
            has_broker,
            auto_consent,
        } = self;
        // A broker always asks for consent on its page.
        let consent = if *auto_consent && !has_broker {
            " --auto-consent"
        } else {
            ""
        };
        writeln!(
            f,
            "{}              http://{address}{ENDPOINT}",
            bold("protected MCP server")
        )?;
        writeln!(f, "{}  {issuer}", bold("development authorization server"))?;
        if *has_broker {
            self.write_about_broker(f)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "{}",
            bold("Without a token: 401, and a challenge with the URL of the metadata")
        )?;
        writeln!(f, "  curl -i -X POST http://{address}{ENDPOINT}\n")?;
        writeln!(f, "{}", bold("The metadata at that URL"))?;
        writeln!(
            f,
            "  curl http://{address}/.well-known/oauth-protected-resource{ENDPOINT}\n"
        )?;
        writeln!(
            f,
            "{}",
            bold("With a token: discover, register, authorize, call")
        )?;
        writeln!(
            f,
            "  {} call{consent} http://{address}{ENDPOINT} tools/call '{{\"name\":\"add\",\"arguments\":{{\"a\":2,\"b\":3}}}}'\n",
            program()
        )?;
        self.write_without_browser(f)?;
        write!(f, "Ctrl-C ends it.")
    }
}

impl Welcome<'_> {
    /// Names the ways to sign in where no browser can be opened. The broker has none of them.
    fn write_without_browser(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            has_broker,
            auto_consent,
            ..
        } = self;
        if *has_broker || *auto_consent {
            return Ok(());
        }
        writeln!(
            f,
            "{}",
            bold(
                "Without a browser on this machine: sign in on another device, then call as above"
            )
        )?;
        writeln!(
            f,
            "  {} login --device http://{address}{ENDPOINT}",
            program()
        )?;
        writeln!(
            f,
            "Without a user: start it again with --auto-consent, which the call then needs, too.\n"
        )
    }

    fn write_about_broker(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address, issuer, ..
        } = self;
        writeln!(f)?;
        writeln!(
            f,
            "{}",
            bold(
                "The development server is a provider like Microsoft Entra ID: no client can register there"
            )
        )?;
        writeln!(
            f,
            "  curl {}/.well-known/openid-configuration\n",
            issuer.as_str().trim_end_matches('/')
        )?;
        writeln!(
            f,
            "{}",
            bold("The protected server issues the tokens itself: clients register here")
        )?;
        writeln!(
            f,
            "  curl http://{address}/.well-known/oauth-authorization-server\n"
        )?;
        writeln!(
            f,
            "{}",
            bold(
                "In the browser: first the consent page of this server, then the sign-in at the provider"
            )
        )?;
        writeln!(f, "  {} login http://{address}{ENDPOINT}", program())
    }
}

fn bold(text: &'static str) -> String {
    text.if_supports_color(Stream::Stdout, |text| text.bold())
        .to_string()
}

/// How to start this program again, for the printed commands.
fn program() -> String {
    std::env::args()
        .next()
        .unwrap_or_else(|| "portcullis".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J8: the demo names a sign-in without a browser, unless there is none or none is needed.
    #[test]
    fn a_sign_in_without_a_browser_is_named() {
        for (has_broker, auto_consent, is_named) in [
            (false, false, true),
            (false, true, false),
            (true, false, false),
        ] {
            let welcome = Welcome {
                address: ([127, 0, 0, 1], 3000).into(),
                issuer: &Issuer::parse("http://127.0.0.1:9000").unwrap(),
                has_broker,
                auto_consent,
            };
            let text = welcome.to_string();
            assert_eq!(
                text.contains(" login --device http://127.0.0.1:3000/mcp"),
                is_named,
                "{text}"
            );
            assert_eq!(
                text.contains(" call --auto-consent http://"),
                auto_consent,
                "{text}"
            );
        }
    }
}
