import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';

type Callback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/** Callbacks of each current lookup. */
const waiting = new Map<string, Callback[]>();

/**
 * Replaces `dns.lookup` for connections that are retried: concurrent lookups of a name share one. A lookup cannot be
 * canceled, and a process runs only few at once (UV_THREADPOOL_SIZE). While the DNS does not reply, one lookup per
 * attempt would block the pool, and with it all file reads.
 */
export function sharedLookup(hostname: string, options: LookupOptions, callback: Callback): void {
  const key = JSON.stringify([hostname, options.family, options.hints, options.all]);
  const others = waiting.get(key);
  if (others !== undefined) {
    others.push(callback);
    return;
  }
  const callbacks = [callback];
  waiting.set(key, callbacks);
  lookup(hostname, options, (error, address, family) => {
    waiting.delete(key);
    for (const one of callbacks) one(error, address, family);
  });
}
