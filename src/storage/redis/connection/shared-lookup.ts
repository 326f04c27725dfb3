import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';

type Callback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/** Who waits for which lookup. */
const waiting = new Map<string, Callback[]>();

/**
 * `dns.lookup` for connections that are tried again and again: one lookup of a name at a time, which all who ask for it
 * meanwhile share. A lookup cannot be ended, and few run at once in a process (UV_THREADPOOL_SIZE): while the DNS is
 * silent, a lookup for each attempt would pile up, and files would be read after them.
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
