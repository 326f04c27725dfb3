import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { closeLater } from '../process/close-later.js';
import { freePorts } from '../process/free-port.js';

/** Options of a relay. */
export interface RelayOptions {
  /** Path prefix, such as `/weir`; other paths are not found. Default: none. */
  readonly prefix?: string;
  /** Whether the relay buffers an answer until it is complete. Default: false. */
  readonly buffersAnswers?: boolean;
}

/** Replaces a piece of an answer. */
export type Rewrite = (path: string, piece: string) => string;

/** A reverse proxy in front of a debug port. It may add a path prefix, or buffer answers. */
export class Relay {
  readonly port: number;
  /** May be changed; answers that have started are not affected. */
  buffersAnswers: boolean;
  /** May be changed at any time; also affects answers that have started. */
  rewrite: Rewrite = (_path, piece) => piece;
  readonly #server: Server;

  private constructor(port: number, server: Server, buffersAnswers: boolean) {
    this.port = port;
    this.buffersAnswers = buffersAnswers;
    this.#server = server;
  }

  /** Starts a relay on 127.0.0.1 in front of the port `to`. Close it after use. */
  static async start(to: number, { prefix = '', buffersAnswers = false }: RelayOptions = {}): Promise<Relay> {
    const [port = 0] = await freePorts(1);
    const server = createServer((incoming, answer) => {
      const path = incoming.url ?? '/';
      if (!path.startsWith(`${prefix}/`) && path !== prefix) {
        answer.writeHead(404).end();
        return;
      }
      passOn(incoming, answer, to, path.slice(prefix.length) || '/', relay);
    });
    const relay = new Relay(port, server, buffersAnswers);
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return closeLater(relay, () => relay.close());
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function passOn(
  incoming: IncomingMessage,
  answer: ServerResponse,
  port: number,
  path: string,
  relay: Relay,
): void {
  const headers = {
    ...incoming.headers,
    'x-forwarded-for': '127.0.0.1',
    'accept-encoding': 'identity',
  };
  const outgoing = request({ host: '127.0.0.1', port, path, method: incoming.method, headers }, (from) => {
    const { 'content-length': _length, ...kept } = from.headers;
    const begin = (): void => void answer.writeHead(from.statusCode ?? 502, kept);
    from.setEncoding('utf8');
    if (relay.buffersAnswers) {
      const pieces: string[] = [];
      from.on('data', (piece: string) => pieces.push(piece));
      from.on('end', () => {
        begin();
        answer.end(relay.rewrite(path, pieces.join('')));
      });
    } else {
      begin();
      answer.flushHeaders();
      from.on('data', (piece: string) => void answer.write(relay.rewrite(path, piece)));
      from.on('end', () => answer.end());
    }
    from.on('error', () => answer.destroy());
  });
  outgoing.on('error', () => {
    if (!answer.headersSent) answer.writeHead(502);
    answer.end();
  });
  answer.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}
