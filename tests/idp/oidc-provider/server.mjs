// npm's oidc-provider as the authorization server of protected resources on this machine, or as the identity provider of a broker.
//
// It runs where `oidc-provider` is installed, and prints `oidc-provider listens: ISSUER` once it can be asked. Its
// settings come from the environment:
//   CLIENT_DOCUMENT_URL, CLIENT_DOCUMENT   the address of a client's metadata document, and the file that is served there
//   INTROSPECTION_SECRET                   the secret of the client `portcullis`, which introspects
//   BROKER_URL, BROKER_SECRET              instead, the base URL of the broker that is the client `portcullis`, and its secret
//   REMOVED_USERS                          a file with the names of users that are unknown from then on, one a line
//
// Its login and consent pages are oidc-provider's own: any name gets in, with any password.

import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.cwd()}/`);
const { Provider, errors } = await import(pathToFileURL(require.resolve('oidc-provider')));

const {
  CLIENT_DOCUMENT_URL, CLIENT_DOCUMENT, INTROSPECTION_SECRET, BROKER_URL, BROKER_SECRET, REMOVED_USERS,
} = process.env;

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
  if (BROKER_URL !== undefined && new URL(url).origin === BROKER_URL) {
    // Without the dispatcher, which refuses loopback.
    const { dispatcher: _refusing, ...allowed } = options;
    return fetch(url, allowed);
  }
  throw new Error(`nothing is fetched from ${new URL(url).origin}`);
}

async function findAccount(_context, id) {
  const removed = REMOVED_USERS === undefined ? '' : await readFile(REMOVED_USERS, 'utf8');
  return removed.split('\n').includes(id) ? undefined :
    { accountId: id, claims: () => ({ sub: id, name: id, email: `${id}@example.test` }) };
}

const INTROSPECTING = {
  client_id: 'portcullis',
  client_secret: INTROSPECTION_SECRET,
  grant_types: [],
  redirect_uris: [],
  response_types: [],
};
const BROKER = {
  client_id: 'portcullis',
  client_secret: BROKER_SECRET,
  grant_types: ['authorization_code', 'refresh_token'],
  redirect_uris: [`${BROKER_URL}/oauth/callback/oidc`],
  response_types: ['code'],
  backchannel_logout_uri: `${BROKER_URL}/oauth/logout/oidc`,
  backchannel_logout_session_required: true,
};

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  claims: { openid: ['sub'], profile: ['name'], email: ['email'] },
  clients: [BROKER_URL === undefined ? INTROSPECTING : BROKER],
  cookies: { keys: ['for development and tests'] },
  features: {
    backchannelLogout: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    introspection: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: { enabled: true, getResourceServerInfo: resourceServer },
    revocation: { enabled: true },
  },
  fetch: fetchHere,
  findAccount,
  jwks: {
    keys: [
      key('rs256', 'RS256', 'rsa', { modulusLength: 2048 }),
      key('es256', 'ES256', 'ec', { namedCurve: 'P-256' }),
    ],
  },
  // Registrations may name no scope that is not listed here.
  scopes: ['openid', 'offline_access', 'mcp:tools', 'mcp:admin'],
  // A broker cannot check a user with these for long, so that it must have got a refresh token.
  ttl: BROKER_URL === undefined ? {} : { AccessToken: 10 },
});
for (const event of ['server_error', 'authorization.error', 'grant.error', 'registration_create.error',
  'introspection.error', 'revocation.error', 'backchannel.error']) {
  provider.on(event, (_context, error) => console.log(`${event}: ${error.message} ${error.error_description ?? ''}`));
}
server.on('request', provider.callback());
console.log(`oidc-provider listens: ${issuer}`);
