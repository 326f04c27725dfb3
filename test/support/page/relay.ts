import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { freePorts } from '../process/free-port.js';

/** What a relay does with what passes it. */
export interface RelayOptions {
  /** Served below this path, such as `/weir`; without it elsewhere is nothing. Default: none. */
  readonly prefix?: string;
  /** True: no byte of an answer is passed on before all of it is there. */
  readonly holdsBack?: boolean;
}

/** A proxy before a debug port, as reverse proxies are: it may add a prefix, or hold answers back. */
export class Relay {
  readonly port: number;
  readonly #server: Server;

  private constructor(port: number, server: Server) {
    this.port = port;
    this.#server = server;
  }

  /** Starts one on 127.0.0.1 before the port `to`. Close it. */
  static async start(to: number, { prefix = '', holdsBack = false }: RelayOptions = {}): Promise<Relay> {
    const [port = 0] = await freePorts(1);
    const server = createServer((incoming, answer) => {
      const path = incoming.url ?? '/';
      if (!path.startsWith(`${prefix}/`) && path !== prefix) {
        answer.writeHead(404).end();
        return;
      }
      passOn(incoming, answer, to, path.slice(prefix.length) || '/', holdsBack);
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return new Relay(port, server);
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
  holdsBack: boolean,
): void {
  const headers = { ...incoming.headers, 'x-forwarded-for': '127.0.0.1' };
  const outgoing = request({ host: '127.0.0.1', port, path, method: incoming.method, headers }, (from) => {
    const begin = (): void => void answer.writeHead(from.statusCode ?? 502, from.headers);
    if (holdsBack) {
      const pieces: Buffer[] = [];
      from.on('data', (piece: Buffer) => pieces.push(piece));
      from.on('end', () => {
        begin();
        answer.end(Buffer.concat(pieces));
      });
    } else {
      begin();
      from.pipe(answer);
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
