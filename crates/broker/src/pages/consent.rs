//! [`ConsentPage`]: asks the user whether a client may have access.

use std::{
    borrow::Cow,
    fmt::{self, Display},
};

use portcullis_metadata::HtmlText;

use crate::pages::{
    decision::Decision,
    escaped::{Ascii, ClientName},
    headers::{Forms, Page},
    layout::Layout,
    redirect_target::{RedirectTarget, TargetKind},
};

/// The page that asks the user whether a client may have access.
///
/// The form is sent to `/oauth/consent` with `request`, a [`Decision`] as `decision`, and
/// `remember=on` if the user ticked the box.
#[derive(Clone, Debug)]
pub(crate) struct ConsentPage<'a> {
    pub(crate) client: ClientView<'a>,
    /// Where the answer goes.
    pub(crate) redirect: &'a RedirectTarget,
    pub(crate) resource: ResourceView<'a>,
    pub(crate) scopes: &'a [ScopeView<'a>],
    /// The providers at which the user can sign in. At least one.
    pub(crate) providers: &'a [ProviderView<'a>],
    /// Whether the consent can be remembered. It never is for a redirect target that several
    /// programs can use, and for a client that registered itself.
    pub(crate) is_remember_offered: bool,
    /// Whether the answer can be displayed, for a client on another machine.
    pub(crate) is_remote_offered: bool,
    /// The sealed request.
    pub(crate) request: &'a str,
}

/// What the page shows of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientView<'a> {
    /// The host of its metadata document, in ASCII, if it has one.
    pub(crate) document_host: Option<&'a str>,
    /// The name that it chose. Control and invisible characters are not shown.
    pub(crate) name: Option<&'a str>,
}

/// What the page shows of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceView<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) url: &'a str,
}

/// What the page shows of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScopeView<'a> {
    pub(crate) name: &'a str,
    /// Its meaning in the operator's words.
    pub(crate) description: Option<&'a str>,
}

/// What the page shows of a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProviderView<'a> {
    /// Its name in the configuration.
    pub(crate) name: &'a str,
    /// Its name for people.
    pub(crate) display_name: &'a str,
}

impl ConsentPage<'_> {
    /// Renders the page.
    pub(crate) fn render(&self, layout: &Layout) -> Page {
        let host = self.host();
        let host = Ascii(&host);
        let body = format!(
            r#"<h1><span class="host">{host}</span> asks for access to <bdi>{resource_name}</bdi></h1>
<p>{name}</p>
{warning}
<dl>
<div><dt>It asks for</dt><dd>{scopes}</dd></div>
<div><dt>Access to</dt><dd>{resource}</dd></div>
<div><dt>The answer goes to</dt><dd>{target}</dd></div>
</dl>
<form method="post" action="/oauth/consent">
<input type="hidden" name="request" value="{request}">
{remember}{remote}<p id="sign-in" class="soft">To allow this, sign in:</p>
<div class="buttons" role="group" aria-labelledby="sign-in">
{providers}</div>
<div class="buttons">
<button name="decision" value="{deny}">Deny</button>
</div>
</form>"#,
            resource_name = ResourceName(self.resource),
            name = NameLine(self.client.name),
            warning = Warning(self),
            scopes = ScopeList(self.scopes),
            resource = self.resource,
            target = Target(self.redirect),
            request = HtmlText(self.request),
            remember = if self.offers_remember() { REMEMBER } else { "" },
            remote = if self.is_remote_offered { REMOTE } else { "" },
            providers = Lines(self.providers),
            deny = Decision::Deny,
        );
        let title = format!("Allow access for {host}?");
        layout.page(&title, &body, Forms::ToSelf)
    }

    /// Returns who asks: the only thing about a client that it cannot choose freely.
    fn host(&self) -> Cow<'_, str> {
        match self.client.document_host {
            Some(host) => Cow::Borrowed(host),
            // An address of this computer would say less to the user.
            None if self.redirect.kind() == TargetKind::Loopback => {
                Cow::Borrowed("A program on this computer")
            }
            None => self.redirect.host(),
        }
    }

    fn offers_remember(&self) -> bool {
        self.is_remember_offered && self.client.document_host.is_some() && !self.redirect.is_local()
    }
}

const REMOTE: &str = r#"<div class="choice"><input type="checkbox" id="remote" name="remote" value="on"><label for="remote">My client is on another machine</label></div>
"#;
const REMEMBER: &str = r#"<div class="choice"><input type="checkbox" id="remember" name="remember" value="on"><label for="remember">Remember this for this browser</label></div>
"#;

/// The sentence with the client's name.
struct NameLine<'a>(Option<&'a str>);

impl Display for NameLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(ClientName::new) {
            Some(name) => write!(
                f,
                r#"It calls itself <bdi class="name">{name}</bdi> <span class="soft claim">Any program can choose this name.</span>"#
            ),
            None => f.write_str("It has no name."),
        }
    }
}

/// What the user should consider before a decision.
struct Warning<'a>(&'a ConsentPage<'a>);

impl Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(page) = self;
        if !page.redirect.is_local() {
            return f.write_str(
                r#"<p class="soft">Continue only if you have just started this yourself.</p>"#,
            );
        }
        f.write_str(r#"<p class="caution">Any program on this computer could be asking"#)?;
        if let Some(host) = page.client.document_host {
            write!(f, " in the name of {}", Ascii(host))?;
        }
        f.write_str(". Continue only if you have just started this yourself.</p>")
    }
}

struct ScopeList<'a>(&'a [ScopeView<'a>]);

impl Display for ScopeList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("Everything that you can do there");
        }
        write!(f, "<ul>{}</ul>", Lines(self.0))
    }
}

impl Display for ScopeView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.description {
            Some(description) => write!(f, "<li>{}</li>", HtmlText(description)),
            None => write!(f, "<li><code>{}</code></li>", Ascii(self.name)),
        }
    }
}

struct ResourceName<'a>(ResourceView<'a>);

impl Display for ResourceName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.name {
            Some(name) => HtmlText(name).fmt(f),
            None => Ascii(self.0.url).fmt(f),
        }
    }
}

impl Display for ResourceView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name {
            write!(f, "<bdi>{}</bdi> ", HtmlText(name))?;
        }
        write!(f, "<code>{}</code>", Ascii(self.url))
    }
}

struct Target<'a>(&'a RedirectTarget);

impl Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = match self.0.kind() {
            TargetKind::Web => "on another machine",
            TargetKind::Loopback => "on this computer",
            TargetKind::Scheme => "an application on this device",
        };
        let place = self.0.place();
        write!(
            f,
            r#"<code>{}</code> <span class="soft place">{location}</span>"#,
            Ascii(&place)
        )
    }
}

impl Display for ProviderView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"<button class="allow" name="decision" value="{}">Continue with {}</button>"#,
            HtmlText(&Decision::Allow(self.name).to_string()),
            HtmlText(self.display_name)
        )
    }
}

/// The items, each with a line break.
struct Lines<'a, T>(&'a [T]);

impl<T: Display> Display for Lines<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|item| writeln!(f, "{item}"))
    }
}

#[cfg(test)]
mod tests;
