import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';

/** Reads the events of `/overview`. */
export interface EventReader {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** Names and parsed data of the events received so far. */
  readonly events: readonly { readonly name: string; readonly data: unknown }[];
  /** Received text that is not an event, such as the body of an error. */
  readonly rest: string;
  /** Whether the answer has ended, or was cut off. */
  readonly ended: boolean;
  /** Closes the connection. */
  pause(): void;
  close(): void;
}

/** Starts reading; resolves once the answer has started. */
export function readEvents(debugPort: number, headers: OutgoingHttpHeaders = {}): Promise<EventReader> {
  return new Promise((resolve, reject) => {
    const outgoing: ClientRequest = request(
      {
        host: '127.0.0.1',
        port: debugPort,
        path: '/overview',
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
      },
      (answer) => {
        const events: { name: string; data: unknown }[] = [];
        let rest = '';
        let ended = false;
        const end = (): void => {
          ended = true;
        };
        answer.setEncoding('utf8').on('data', (text: string) => {
          rest += text;
          for (let at = rest.indexOf('\n\n'); at !== -1; at = rest.indexOf('\n\n')) {
            const [, name = '', data = 'null'] = /^event: (.*)\ndata: (.*)$/.exec(rest.slice(0, at)) ?? [];
            events.push({ name, data: JSON.parse(data) });
            rest = rest.slice(at + 2);
          }
        });
        answer.once('end', end).once('error', end).once('close', end);
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          events,
          get rest() {
            return rest;
          },
          get ended() {
            return ended;
          },
          pause: () => answer.pause(),
          close: () => outgoing.destroy(),
        });
      },
    );
    outgoing.once('error', reject);
    outgoing.end('{}');
  });
}
