import { readFileSync } from 'node:fs';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import type { ChannelOptions } from './tls-options.js';

/**
 * Credentials for a gRPC channel. `anyServer` takes whatever certificate the server shows: for asking oneself on
 * loopback. Throws a sentence as Error when a file cannot be used.
 */
export function channelCredentials(options: ChannelOptions, anyServer = false): ChannelCredentials {
  if (!options.tls) return credentials.createInsecure();
  const read = (path: string | undefined): Buffer | null => (path === undefined ? null : readFileSync(path));
  return credentials.createSsl(read(options.ca), read(options.key), read(options.cert), {
    ...(anyServer && options.ca === undefined ? { rejectUnauthorized: false } : {}),
  });
}
