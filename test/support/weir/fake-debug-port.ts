import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Io } from '../../../src/cli/io.js';
import { reportErrors } from '../../../src/cli/io.js';
import { closeLater } from '../process/close-later.js';

/** A received request. */
export interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** A debug port whose answers the test sets. */
export interface FakeDebugPort {
  readonly address: string;
  /** Received requests, oldest first. */
  readonly asked: ReceivedRequest[];
  /** Answer to the next requests; undefined: the connection is closed after the request. */
  answer:
    | ((asked: ReceivedRequest) => { readonly status?: number; readonly body: unknown } | undefined)
    | undefined;
  close(): Promise<void>;
}

/** Starts a fake debug port on 127.0.0.1. A body that is not a string is sent as JSON. */
export async function startFakeDebugPort(): Promise<FakeDebugPort> {
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
    request.on('end', () => {
      const asked = { path: request.url ?? '', headers: request.headers, body: JSON.parse(text) as unknown };
      port.asked.push(asked);
      const answer = port.answer?.(asked);
      if (answer === undefined) request.socket.destroy();
      else {
        response.writeHead(answer.status ?? 200);
        response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port: FakeDebugPort = {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    answer: undefined,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return closeLater(port, () => port.close());
}

/** Output of a command without a terminal. */
export interface CommandOutput {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command of src/cli/, with its name, in this process, without a terminal. */
export async function outputOf(
  name: string,
  command: (args: readonly string[], io: Io) => Promise<number>,
  args: readonly string[],
  environment: Io['environment'] = {},
  isRead: (out: string) => boolean = () => true,
): Promise<CommandOutput> {
  let [out, err] = ['', ''];
  const io: Io = {
    environment,
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    terminal: false,
    isRead: () => isRead(out),
    entry: '',
    worker: false,
    onSignal: () => {},
  };
  const code = await reportErrors(`weir ${name}`, io, () => command(args, io));
  return { code, out, err };
}
