//! The request headers in which a proxy asserts its client's address, identity or certificate: one
//! table.
//!
//! An upstream that trusts one of them must get it from a proxy, never from a client. A client's
//! copy is dropped unless `forward_headers` lists its name.

/// One row of [`TABLE`].
struct Row {
    name: &'static str,
    /// Whether the row stands for all names that begin with `name`.
    is_prefix: bool,
}

const fn exact(name: &'static str) -> Row {
    Row {
        name,
        is_prefix: false,
    }
}

/// A row for all names with this beginning.
const fn prefix(name: &'static str) -> Row {
    Row {
        name,
        is_prefix: true,
    }
}

/// The names in lower case and in byte order, each with the standard or the products that define
/// it. No name begins with the name of another row that is a prefix.
const TABLE: &[Row] = &[
    exact("ali-cdn-real-ip"),             // Alibaba Cloud CDN
    prefix("cf-access-"),                 // Cloudflare Access
    prefix("cf-client-cert-"),            // Cloudflare client certificates
    prefix("cf-connecting-"),             // Cloudflare: CF-Connecting-IP, -IPv6, -O2O
    exact("cf-ipcountry"),                // Cloudflare
    exact("cf-pseudo-ipv4"),              // Cloudflare
    exact("cf-visitor"),                  // Cloudflare
    prefix("client-cert"),                // RFC 9440: Client-Cert, Client-Cert-Chain
    exact("client-ip"),                   // older proxies
    prefix("cloudfront-"),                // Amazon CloudFront: CloudFront-Viewer-*
    exact("do-connecting-ip"),            // DigitalOcean App Platform
    prefix("fastly-client"),              // Fastly: Fastly-Client, Fastly-Client-IP
    exact("fastly-ssl"),                  // Fastly
    prefix("fly-"),                       // Fly.io: Fly-Client-IP, Fly-Forwarded-*
    prefix("forwarded"),                  // RFC 7239: Forwarded; older proxies: Forwarded-For
    prefix("impersonate-"),               // Kubernetes: Impersonate-User, -Group, -Uid, -Extra-*
    exact("incap-client-ip"),             // Imperva
    prefix("iv-"),                        // IBM Verify Access: iv-user, iv-groups, iv-creds
    prefix("l5d-"),                       // Linkerd: l5d-client-id, l5d-remote-ip
    prefix("oidc-"),                      // mod_auth_openidc: OIDC_CLAIM_*
    prefix("proxy-client-ip"),            // WebLogic
    prefix("proxy-remote-"),              // older proxies: Proxy-Remote-User
    prefix("remote-"), // CGI, Authelia: Remote-User, -Groups, -Email, -Name, -Addr
    prefix("shib-"),   // Shibboleth
    prefix("sm-"),     // SiteMinder: SM_USER, SM_USERDN
    prefix("ssl-client-"), // ingress-nginx, HAProxy: SSL-Client-Verify, -Cert, -Subject-DN
    prefix("tailscale-"), // Tailscale Serve: Tailscale-User-Login, -Name
    exact("teleport-jwt-assertion"), // Teleport
    exact("true-client-ip"), // Akamai, Cloudflare
    prefix("wl-proxy-"), // WebLogic: WL-Proxy-Client-IP, -Client-Cert, -SSL
    exact("x-akamai-edgescape"), // Akamai
    prefix("x-amzn-lambda-context"), // AWS Lambda Web Adapter
    prefix("x-amzn-mtls-"), // Amazon ALB: X-Amzn-Mtls-Clientcert-*
    prefix("x-amzn-oidc-"), // Amazon ALB: X-Amzn-Oidc-Identity, -Data, -Accesstoken
    prefix("x-amzn-request-context"), // AWS Lambda Web Adapter
    exact("x-anonymous-consumer"), // Kong
    exact("x-apigateway-api-userinfo"), // Google API Gateway
    prefix("x-appengine-"), // Google App Engine: X-Appengine-User-*
    prefix("x-arr-"),  // Azure App Service: X-ARR-ClientCert
    exact("x-auth-audience"), // Gatekeeper for Keycloak
    exact("x-auth-email"), // Gatekeeper for Keycloak
    exact("x-auth-groups"), // Gatekeeper for Keycloak
    prefix("x-auth-request-"), // oauth2-proxy
    exact("x-auth-roles"), // Gatekeeper for Keycloak
    exact("x-auth-subject"), // Gatekeeper for Keycloak
    prefix("x-auth-user"), // Gatekeeper for Keycloak: X-Auth-Userid, -Username
    prefix("x-authenticated-"), // Kong, Ory: X-Authenticated-User, -Userid, -Scope, -Groups
    prefix("x-authentik-"), // authentik
    prefix("x-azure-"), // Azure Front Door: X-Azure-ClientIP, -SocketIP, -FDID
    prefix("x-client-cert"), // NGINX, HAProxy
    exact("x-client-dn"), // NGINX
    exact("x-client-ip"), // older proxies
    exact("x-client-verify"), // NGINX
    exact("x-cluster-client-ip"), // Rackspace, Zeus
    prefix("x-consumer-"), // Kong: X-Consumer-ID, -Username, -Groups
    prefix("x-credential-"), // Kong: X-Credential-Identifier
    exact("x-endpoint-api-userinfo"), // Google Cloud Endpoints
    prefix("x-envoy-"), // Envoy: X-Envoy-External-Address
    prefix("x-forward"), // Squid and most proxies: X-Forwarded, X-Forwarded-*
    prefix("x-goog-authenticated-user-"), // Google IAP
    prefix("x-goog-iap-"), // Google IAP: X-Goog-IAP-JWT-Assertion
    prefix("x-hasura-"), // Hasura GraphQL Engine: X-Hasura-Role, -User-Id, -Admin-Secret
    exact("x-id-token"), // Apache APISIX
    exact("x-jwt-assertion"), // WSO2
    exact("x-jwt-payload"), // Istio
    prefix("x-mcp-"),  // MCP gateways: X-MCP-Subject, -Authenticated. MCP itself defines Mcp-*.
    prefix("x-ms-client-principal"), // Azure App Service: X-MS-CLIENT-PRINCIPAL, -ID, -NAME, -IDP
    prefix("x-ms-token-"), // Azure App Service: X-MS-TOKEN-AAD-*
    exact("x-nf-client-connection-ip"), // Netlify
    exact("x-original-forwarded-for"), // ingress-nginx
    exact("x-original-host"), // Azure Application Gateway
    prefix("x-original-remote-"), // ingress-nginx
    exact("x-originating-ip"), // older proxies
    prefix("x-pomerium-"), // Pomerium: X-Pomerium-Jwt-Assertion, -Claim-*
    prefix("x-proxy-user"), // older proxies
    exact("x-proxyuser-ip"), // older proxies
    prefix("x-real-"), // NGINX: X-Real-IP
    prefix("x-remote-"), // Kubernetes: X-Remote-User, -Group, -Extra-*; X-Remote-IP, -Addr
    exact("x-rh-identity"), // Red Hat
    exact("x-scopes"), // common
    prefix("x-ssl-"),  // NGINX, HAProxy: X-SSL-Client-*, X-SSL-Cert
    exact("x-subject"), // common
    prefix("x-sucuri-"), // Sucuri: X-Sucuri-ClientIP
    prefix("x-tls-"),  // NGINX, HAProxy: X-TLS-Client-*
    exact("x-true-client-ip"), // older proxies
    exact("x-user"),   // Ory Oathkeeper, common
    exact("x-user-email"), // common
    exact("x-user-groups"), // common
    exact("x-user-id"), // common
    exact("x-user-name"), // common
    exact("x-user-roles"), // common
    exact("x-userid"), // common
    exact("x-userinfo"), // Kong, Apache APISIX
    exact("x-username"), // common
    prefix("x-vercel-"), // Vercel: X-Vercel-Forwarded-For
    prefix("x-vouch-"), // Vouch Proxy
    prefix("x-webauth-"), // Grafana, Gitea: X-WEBAUTH-USER
];

/// Returns whether a header with this lower-case name asserts the client's address, identity or
/// certificate.
pub(super) fn asserts_client(name: &str) -> bool {
    // Names that begin with the same prefix are neighbours in byte order, so the last row that is
    // not greater decides.
    let after = TABLE.partition_point(|row| row.name <= name);
    TABLE[..after]
        .last()
        .is_some_and(|row| row.name == name || (row.is_prefix && name.starts_with(row.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L8: binary search finds the same row as a search through all rows: the rows are sorted, and
    /// no prefix covers another row.
    #[test]
    fn the_table_is_sorted() {
        for pair in TABLE.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} before {}",
                pair[0].name,
                pair[1].name
            );
            assert!(
                !(pair[0].is_prefix && pair[1].name.starts_with(pair[0].name)),
                "{}",
                pair[1].name
            );
        }
        for row in TABLE {
            assert!(asserts_client(row.name), "{}", row.name);
            assert_eq!(
                asserts_client(&format!("{}~", row.name)),
                row.is_prefix,
                "{}",
                row.name
            );
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(row.name.bytes().all(plain), "{}", row.name);
        }
    }

    /// L8: the table has the headers that common proxies set, and none that clients set themselves.
    #[test]
    fn which_headers_assert_the_client() {
        for name in [
            "cf-access-jwt-assertion",
            "cf-connecting-ip",
            "cf-connecting-ipv6",
            "cf-pseudo-ipv4",
            "client-cert",
            "client-cert-chain",
            "fastly-client-ip",
            "forwarded",
            "remote-user",
            "ssl-client-verify",
            "true-client-ip",
            "x-amzn-oidc-identity",
            "x-appengine-user-email",
            "x-auth-request-email",
            "x-authenticated-user",
            "x-azure-clientip",
            "x-client-cert",
            "x-client-ip",
            "x-cluster-client-ip",
            "x-envoy-external-address",
            "x-forwarded",
            "x-forwarded-client-cert",
            "x-forwarded-email",
            "x-forwarded-for",
            "x-forwarded-groups",
            "x-forwarded-preferred-username",
            "x-forwarded-user",
            "x-goog-authenticated-user-email",
            "x-goog-iap-jwt-assertion",
            "x-hasura-role",
            "x-hasura-user-id",
            "x-mcp-authenticated",
            "x-mcp-subject",
            "x-ms-client-principal",
            "x-ms-client-principal-name",
            "x-real-ip",
            "x-remote-user",
            "x-rh-identity",
            "x-scopes",
            "x-ssl-client-cert",
            "x-subject",
            "x-user",
            "x-user-id",
        ] {
            assert!(asserts_client(name), "{name}");
        }
        for name in [
            "",
            "a",
            "accept",
            "cache-control",
            "mcp-method",
            "mcp-name",
            "mcp-param-region",
            "mcp-protocol-version",
            "mcp-session-id",
            "origin",
            "referer",
            "sec-fetch-mode",
            "traceparent",
            "user-agent",
            "x-api-key",
            "x-auth-token",
            "x-b3-traceid",
            "x-custom",
            "x-datadog-trace-id",
            "x-requested-with",
            "x-user-agent",
            "zz",
        ] {
            assert!(!asserts_client(name), "{name}");
        }
    }
}
