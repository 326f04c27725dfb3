import { checkServerIdentity } from 'node:tls';
import {
  type ChannelCredentials,
  Client,
  type ClientOptions,
  credentials,
  type VerifyOptions,
} from '@grpc/grpc-js';
import { boundGrpcCalls } from '../../bounded-grpc-calls.js';
import { ipOfTarget, withoutServerName } from '../../no-server-name.js';
import { readNamedFile } from '../../server/settings/named-file.js';
import type { ServerTarget } from './target.js';

/**
 * A client of the server, which connects with its first call; `close` it. Throws a sentence as Error when a file cannot
 * be used.
 */
export function openClient(target: ServerTarget, options: ClientOptions = {}): Client {
  boundGrpcCalls();
  return new Client(target.address, channelCredentials(target), {
    // A proxy of the environment has no business between these tools and a server named by address.
    'grpc.enable_http_proxy': 0,
    ...withoutServerName(target.address),
    ...options,
  });
}

function channelCredentials({ channel, own, address }: ServerTarget): ChannelCredentials {
  const { tls, ca, cert, key } = channel;
  if (!tls) return credentials.createInsecure();
  const [issuers, ownKey, ownCert] = [read('--ca', ca), read('--key', key), read('--cert', cert)];
  try {
    return credentials.createSsl(issuers, ownKey, ownCert, verification(own, ca, address));
  } catch (error) {
    const files = [ca, cert, key].filter((path) => path !== undefined).join(', ');
    throw new Error(
      `${files} cannot be used: certificates and keys must be PEM files, and a key must belong to its ` +
        `certificate (${(error as Error).message})`,
    );
  }
}

/** Which certificates are good: one's own server on loopback is known without any. */
function verification(own: boolean, ca: string | undefined, address: string): VerifyOptions {
  if (own)
    return { checkServerIdentity: () => undefined, ...(ca === undefined && { rejectUnauthorized: false }) };
  const ip = ipOfTarget(address);
  return ip === undefined
    ? {}
    : { checkServerIdentity: (_name, certificate) => checkServerIdentity(ip, certificate) };
}

function read(option: string, path: string | undefined): Buffer | null {
  return path === undefined ? null : readNamedFile(option, path);
}
