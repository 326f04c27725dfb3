import type { ClientRequest } from 'node:http';

/**
 * Destroys a request with an Error unless it has ended after `ms` milliseconds. The timeouts of node:http are not
 * sufficient, because each byte of the answer restarts them.
 */
export function limitTime(request: ClientRequest, ms: number): void {
  const onTimeout = (): void => {
    request.destroy(Object.assign(new Error(`no answer within ${Math.round(ms)} ms`), { code: 'ETIMEDOUT' }));
  };
  const timer = setTimeout(onTimeout, ms).unref();
  request.once('close', () => clearTimeout(timer));
}
