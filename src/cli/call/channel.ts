import { checkServerIdentity } from 'node:tls';
import {
  type ChannelCredentials,
  Client,
  type ClientOptions,
  credentials,
  type VerifyOptions,
} from '@grpc/grpc-js';
import type { ClientCodec, RateLimitResponse } from '../../codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../codec/rls-definition.js';
import { ipOfTarget, withoutServerName } from '../../runtime/no-server-name.js';
import { readNamedFile } from '../../server/followed-files.js';
import { CommandError, EXIT } from '../io.js';
import type { ServerTarget } from './target.js';

/**
 * Returns a client that connects with its first call; the caller closes it. Throws a
 * {@link CommandError} if a certificate or key file cannot be used.
 */
export function openClient(target: ServerTarget, options: ClientOptions = {}): Client {
  return new Client(target.address, channelCredentials(target), {
    // The server is addressed directly, so proxy variables of the environment do not apply.
    'grpc.enable_http_proxy': 0,
    ...withoutServerName(target.address),
    ...options,
  });
}

/** Sends one encoded request. Rejects with a ServiceError. */
export function askServer(
  client: Client,
  codec: ClientCodec,
  request: Buffer,
  timeoutMs: number,
): Promise<RateLimitResponse> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      SHOULD_RATE_LIMIT_PATH,
      (message: Buffer) => message,
      (bytes: Buffer) => codec.decodeResponse(bytes),
      request,
      { deadline: Date.now() + timeoutMs },
      (error, answer) => {
        if (answer === undefined) reject(error);
        else resolve(answer);
      },
    );
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
    throw new CommandError(
      EXIT.FAILED,
      `${files} cannot be used (${(error as Error).message}); specify certificates and keys as PEM ` +
        'files, and a key that belongs to the certificate',
    );
  }
}

/**
 * Returns how to verify the server's certificate. The server of this environment is called on loopback, so any
 * certificate is accepted unless `--ca` is set.
 */
function verification(own: boolean, ca: string | undefined, address: string): VerifyOptions {
  if (own)
    return { checkServerIdentity: () => undefined, ...(ca === undefined && { rejectUnauthorized: false }) };
  const ip = ipOfTarget(address);
  return ip === undefined
    ? {}
    : { checkServerIdentity: (_name, certificate) => checkServerIdentity(ip, certificate) };
}

function read(option: string, path: string | undefined): Buffer | null {
  try {
    return path === undefined ? null : readNamedFile(option, path);
  } catch (error) {
    throw new CommandError(EXIT.FAILED, (error as Error).message);
  }
}
