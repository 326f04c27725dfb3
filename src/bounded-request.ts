import type { ClientRequest } from 'node:http';

/** Most informational answers (1xx) to one request; servers send one or two. */
export const MAX_INFORMATIONAL = 16;

/**
 * Destroys a request with an Error unless it has ended after `ms` milliseconds: the timeouts of node:http begin anew
 * with each byte. Also destroys it where the server sends more than {@link MAX_INFORMATIONAL} informational answers.
 */
export function boundRequest(request: ClientRequest, ms: number): void {
  const late = (): void => {
    request.destroy(Object.assign(new Error(`no answer within ${Math.round(ms)} ms`), { code: 'ETIMEDOUT' }));
  };
  const timer = setTimeout(late, ms).unref();
  let informational = 0;
  request.on('information', () => {
    informational++;
    if (informational > MAX_INFORMATIONAL) request.destroy(new Error('too many informational answers (1xx)'));
  });
  request.once('close', () => clearTimeout(timer));
}
