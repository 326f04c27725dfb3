import type { ClientRequest } from 'node:http';

/** Maximum number of informational answers (1xx) to a request. Servers send one or two. */
export const MAX_INFORMATIONAL = 16;
/**
 * Maximum number of pieces in the body of an answer. Readers keep an object of about a hundred bytes for each piece,
 * even if the server sends each byte as a separate chunk.
 */
export const MAX_BODY_PIECES = 10_000;

/**
 * Destroys a request with an Error unless it has ended after `ms` milliseconds. The timeouts of node:http are not
 * sufficient, because each byte restarts them. Also destroys the request if the server sends more than {@link
 * MAX_INFORMATIONAL} informational answers, or a body of more than {@link MAX_BODY_PIECES} pieces.
 */
export function boundRequest(request: ClientRequest, ms: number): void {
  const onTimeout = (): void => {
    request.destroy(Object.assign(new Error(`no answer within ${Math.round(ms)} ms`), { code: 'ETIMEDOUT' }));
  };
  const timer = setTimeout(onTimeout, ms).unref();
  let informational = 0;
  request.on('information', () => {
    informational++;
    if (informational > MAX_INFORMATIONAL)
      request.destroy(new Error('the server sent too many informational responses (1xx)'));
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
