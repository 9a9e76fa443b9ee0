// npm's oidc-provider as the authorization server of protected resources on this machine.
//
// It runs where `oidc-provider` is installed, and prints `oidc-provider listens: ISSUER` once it can be asked. Its
// settings come from the environment:
//   CLIENT_DOCUMENT_URL, CLIENT_DOCUMENT   the address of a client's metadata document, and the file that is served there
//   INTROSPECTION_SECRET                   the secret of the client `portcullis`, which introspects
//
// Its login and consent pages are oidc-provider's own: any name gets in, with any password.

import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.cwd()}/`);
const { Provider, errors } = await import(pathToFileURL(require.resolve('oidc-provider')));

const { CLIENT_DOCUMENT_URL, CLIENT_DOCUMENT, INTROSPECTION_SECRET } = process.env;

// What the resources of this machine are, by their paths: how their tokens are made, and how long those live.
const RESOURCES = {
  '/mcp': { jwt: { sign: { alg: 'RS256' } } },
  '/signed-es256': { jwt: { sign: { alg: 'ES256' } } },
  '/opaque': { accessTokenFormat: 'opaque' },
  // A client refreshes with a fifth of this left, so that nobody has to wait long for it.
  '/brief': { jwt: { sign: { alg: 'RS256' } }, accessTokenTTL: 5 },
};

function resourceServer(_context, indicator) {
  const url = new URL(indicator);
  const resource = RESOURCES[url.pathname];
  if (url.hostname !== '127.0.0.1' || resource === undefined) {
    throw new errors.InvalidTarget();
  }
  return {
    scope: 'mcp:tools mcp:admin', audience: indicator, accessTokenFormat: 'jwt', accessTokenTTL: 300, ...resource,
  };
}

function key(kid, alg, type, options) {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' };
}

// A client is known by an https URL. No such address can be served here, so that this one is read from a file.
async function fetchHere(url, options) {
  if (String(url) === CLIENT_DOCUMENT_URL) {
    return new Response(await readFile(CLIENT_DOCUMENT), { headers: { 'content-type': 'application/json' } });
  }
  throw new Error(`nothing is fetched from ${new URL(url).origin}`);
}

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'portcullis',
    client_secret: INTROSPECTION_SECRET,
    grant_types: [],
    redirect_uris: [],
    response_types: [],
  }],
  cookies: { keys: ['for development and tests'] },
  features: {
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    introspection: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: { enabled: true, getResourceServerInfo: resourceServer },
    revocation: { enabled: true },
  },
  fetch: fetchHere,
  jwks: {
    keys: [
      key('rs256', 'RS256', 'rsa', { modulusLength: 2048 }),
      key('es256', 'ES256', 'ec', { namedCurve: 'P-256' }),
    ],
  },
  // Registrations may name no scope that is not listed here.
  scopes: ['openid', 'offline_access', 'mcp:tools', 'mcp:admin'],
});
for (const event of ['server_error', 'authorization.error', 'grant.error', 'registration_create.error',
  'introspection.error', 'revocation.error']) {
  provider.on(event, (_context, error) => console.log(`${event}: ${error.message} ${error.error_description ?? ''}`));
}
server.on('request', provider.callback());
console.log(`oidc-provider listens: ${issuer}`);
