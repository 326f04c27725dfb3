import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import {
  type ChannelCredentials,
  Client,
  type ClientOptions,
  credentials,
  type VerifyOptions,
} from '@grpc/grpc-js';
import { readNamedFile } from '../../server/settings/named-file.js';
import { hostOf } from './address.js';
import type { ServerTarget } from './target.js';

/**
 * The name asked for in the handshake where there is none: an IP address may not be asked for (RFC 6066 section 3), and
 * no server has a certificate for a name below `invalid` (RFC 6761 section 6.4).
 */
const NO_NAME = 'address.invalid';

/**
 * A client of the server, which connects with its first call; `close` it. Throws a sentence as Error when a file cannot
 * be used.
 */
export function openClient(target: ServerTarget, options: ClientOptions = {}): Client {
  const host = hostOf(target.address);
  return new Client(target.address, channelCredentials(target, host), {
    // A proxy of the environment has no business between these tools and a server named by address.
    'grpc.enable_http_proxy': 0,
    ...(target.channel.tls && isIP(host) !== 0 && { 'grpc.ssl_target_name_override': NO_NAME }),
    ...options,
  });
}

function channelCredentials({ channel, own }: ServerTarget, host: string): ChannelCredentials {
  const { tls, ca, cert, key } = channel;
  if (!tls) return credentials.createInsecure();
  const [issuers, ownKey, ownCert] = [read('--ca', ca), read('--key', key), read('--cert', cert)];
  try {
    return credentials.createSsl(issuers, ownKey, ownCert, verification(own, ca, host));
  } catch (error) {
    const files = [ca, cert, key].filter((path) => path !== undefined).join(', ');
    throw new Error(
      `${files} cannot be used: certificates and keys must be PEM files, and a key must belong to its ` +
        `certificate (${(error as Error).message})`,
    );
  }
}

/** Which certificates are good: one's own server on loopback is known without any. */
function verification(own: boolean, ca: string | undefined, host: string): VerifyOptions {
  if (own)
    return { checkServerIdentity: () => undefined, ...(ca === undefined && { rejectUnauthorized: false }) };
  if (isIP(host) === 0) return {};
  return { checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate) };
}

function read(option: string, path: string | undefined): Buffer | null {
  return path === undefined ? null : readNamedFile(option, path);
}
