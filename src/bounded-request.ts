import type { ClientRequest } from 'node:http';

/** Most informational answers (1xx) to one request; servers send one or two. */
export const MAX_INFORMATIONAL = 16;
/**
 * Most pieces of the body of an answer. Readers keep an object of a hundred bytes for each, also where the server sends
 * every byte as a chunk of its own.
 */
export const MAX_BODY_PIECES = 10_000;

/**
 * Destroys a request with an Error unless it has ended after `ms` milliseconds: the timeouts of node:http begin anew
 * with each byte. Also destroys it where the server sends more than {@link MAX_INFORMATIONAL} informational answers, or
 * the body in more than {@link MAX_BODY_PIECES} pieces.
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
  request.once('response', (answer) => {
    let pieces = 0;
    answer.on('data', () => {
      pieces++;
      if (pieces > MAX_BODY_PIECES) request.destroy();
    });
  });
  request.once('close', () => clearTimeout(timer));
}
