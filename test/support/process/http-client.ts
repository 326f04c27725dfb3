import { type OutgoingHttpHeaders, request } from 'node:http';
import { request as tlsRequest } from 'node:https';

export interface HttpAnswer {
  readonly status: number;
  /** Headers in the order received, with names in lower case; a repeated header is listed twice. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /**
   * Times at which the request was handed to the kernel and its answer was complete, in milliseconds of
   * `performance.now()`.
   */
  readonly sentAt: number;
  readonly answeredAt: number;
}

export interface HttpRequestOptions {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
  /** Use TLS, and trust certificates of this issuer (PEM). */
  readonly ca?: string | undefined;
}

/** Sends one HTTP/1.1 request to 127.0.0.1 on its own connection. `path` is sent unchanged. */
export function httpRequest(
  port: number,
  path: string,
  { method = 'GET', headers = {}, body, ca }: HttpRequestOptions = {},
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const target = { host: '127.0.0.1', port, path, method, headers, agent: false };
    const [send, options] = ca === undefined ? [request, target] : [tlsRequest, { ...target, ca }];
    const outgoing = send(options, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      answer.once('error', reject);
      answer.once('end', () => {
        const pairs: (readonly [string, string])[] = [];
        for (let index = 0; index + 1 < answer.rawHeaders.length; index += 2) {
          pairs.push([String(answer.rawHeaders[index]).toLowerCase(), String(answer.rawHeaders[index + 1])]);
        }
        resolve({
          status: answer.statusCode ?? 0,
          headers: pairs,
          body,
          sentAt,
          answeredAt: performance.now(),
        });
      });
    });
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

/** Returns the headers whose names start with `prefix`, as pairs. */
export function headersLike(answer: HttpAnswer, prefix: string): [name: string, value: string][] {
  return answer.headers.filter(([name]) => name.startsWith(prefix)).map(([name, value]) => [name, value]);
}

/** Returns the value of a header that must occur exactly once; throws otherwise. */
export function headerOf(answer: HttpAnswer, name: string): string {
  const values = answer.headers.filter(([other]) => other === name);
  const [first] = values;
  if (first === undefined || values.length > 1) {
    throw new Error(`${name} is there ${values.length} times in ${JSON.stringify(answer.headers)}`);
  }
  return first[1];
}
