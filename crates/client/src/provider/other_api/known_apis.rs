//! The domains, applications and scopes of known APIs.

// The display names of APIs.
pub(super) const GRAPH: &str = "Microsoft Graph";
pub(super) const MICROSOFT: &str = "a Microsoft API";
pub(super) const GOOGLE: &str = "a Google API";
pub(super) const UNKNOWN: &str = "an API that is not recognized";

/// Domains of APIs, each with its name.
pub(super) const DOMAINS: &[(&str, &str)] = &[
    // https://learn.microsoft.com/en-us/graph/deployments
    ("graph.microsoft.com", GRAPH),
    ("graph.microsoft.us", GRAPH),
    ("dod-graph.microsoft.us", GRAPH),
    ("microsoftgraph.chinacloudapi.cn", GRAPH),
    ("graph.windows.net", GRAPH),
    // https://learn.microsoft.com/en-us/entra/identity-platform/scopes-oidc, and the APIs of Azure
    // and Microsoft 365
    ("microsoft.com", MICROSOFT),
    ("microsoft.us", MICROSOFT),
    ("azure.com", MICROSOFT),
    ("azure.net", MICROSOFT),
    ("azure.us", MICROSOFT),
    ("azure.cn", MICROSOFT),
    ("windows.net", MICROSOFT),
    ("usgovcloudapi.net", MICROSOFT),
    ("chinacloudapi.cn", MICROSOFT),
    ("office.com", MICROSOFT),
    ("office.net", MICROSOFT),
    ("office365.com", MICROSOFT),
    ("sharepoint.com", MICROSOFT),
    ("dynamics.com", MICROSOFT),
    ("powerbi.com", MICROSOFT),
    ("powerapps.com", MICROSOFT),
    ("visualstudio.com", MICROSOFT),
    // https://developers.google.com/identity/protocols/oauth2/scopes
    ("googleapis.com", GOOGLE),
    ("google.com", GOOGLE),
    ("googleusercontent.com", GOOGLE),
];

/// Microsoft's API applications, beside those of the form `0000000N-0000-0000-c000-000000000000`
/// (<https://learn.microsoft.com/en-us/troubleshoot/entra/entra-id/governance/verify-first-party-apps-sign-in>).
pub(super) const APPLICATIONS: &[&str] = &[
    "797f4846-ba00-4fd7-ba43-dac1f8f63013", // Azure Resource Manager
    "cfa8b339-82a2-471a-a3c9-0fc0be7a4093", // Key Vault
    "e406a681-f3d4-42a8-90b6-c2b029497af1", // Storage
    "022907d3-0f1b-48f7-badc-1ba6abab6d66", // SQL Database
    "499b84ac-1321-427f-aa17-267ca6975798", // DevOps
    "c5393580-f805-4401-95e8-94b7a6ef2fc2", // Office 365 Management
];
/// The applications of Microsoft Graph and its predecessor.
pub(super) const GRAPH_APPLICATIONS: &[&str] = &[
    "00000003-0000-0000-c000-000000000000",
    "00000002-0000-0000-c000-000000000000",
];

/// Scopes of OpenID Connect, which belong to no API.
pub(super) const OPENID_SCOPES: &[&str] = &[
    "openid",
    "profile",
    "email",
    "address",
    "phone",
    "offline_access",
];
/// Google's OpenID Connect scopes in their long form.
pub(super) const GOOGLE_OPENID_SCOPES: &[&str] = &[
    "https://www.googleapis.com/auth/userinfo.email",
    "https://www.googleapis.com/auth/userinfo.profile",
];
