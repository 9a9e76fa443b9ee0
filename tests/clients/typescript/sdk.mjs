// The TypeScript SDK in two versions, and an OAuth provider that keeps its state in memory.

// Imports version `v1` or `v2` of the SDK.
export async function load(version) {
  if (version === "v2") {
    const { Client, StreamableHTTPClientTransport, UnauthorizedError } = await import("@modelcontextprotocol/client");
    return { Client, Transport: StreamableHTTPClientTransport, UnauthorizedError };
  }
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { UnauthorizedError } = await import("@modelcontextprotocol/sdk/client/auth.js");
  return { Client, Transport: StreamableHTTPClientTransport, UnauthorizedError };
}

// Returns the parameters of the authorization response in the form that this version of the SDK takes.
export function response(version, parameters) {
  return version === "v2" ? parameters : parameters.get("code");
}

// Creates a provider. `open` gets the URL of an authorization request. There is one request at a time, although a call and an event
// stream can both ask for one.
export function oauthProvider(redirectUrl, open) {
  const state = {};
  return {
    redirectUrl,
    clientMetadata: {
      client_name: "TypeScript SDK",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    state: () => "state-of-the-sdk",
    clientInformation: () => state.client,
    saveClientInformation: (client) => void (state.client = client),
    tokens: () => state.tokens,
    saveTokens: (tokens) => {
      state.tokens = tokens;
      state.isPending = false;
    },
    codeVerifier: () => state.verifier,
    saveCodeVerifier: (verifier) => {
      if (!state.isPending) state.verifier = verifier;
    },
    redirectToAuthorization: (authorization) => {
      if (!state.isPending) open(authorization.href);
      state.isPending = true;
    },
    invalidateCredentials: (scope) => {
      if (scope === "all" || scope === "tokens") state.tokens = undefined;
      if (scope === "all" || scope === "client") state.client = undefined;
    },
  };
}
