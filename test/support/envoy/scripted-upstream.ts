import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { closeLater } from '../process/close-later.js';
import { waitFor } from '../process/wait-for.js';

/** A request that waits for its response from the test. */
export class UpstreamCall {
  readonly path: string;
  /** Resolves when the request is over, for any reason. */
  readonly over: Promise<void>;
  private readonly socket: Socket | Duplex;
  private readonly response: ServerResponse | undefined;

  constructor(request: IncomingMessage, socket: Socket | Duplex, response: ServerResponse | undefined) {
    this.path = request.url ?? '';
    this.socket = socket;
    this.response = response;
    this.over = new Promise((resolve) => (response ?? socket).once('close', () => resolve()));
  }

  /** Sends a complete response. */
  answer(status: number, headers: OutgoingHttpHeaders = {}): void {
    this.response?.writeHead(status, headers).end('words\n');
  }

  /** Sends the headers and the beginning of a response. {@link end} completes it. */
  begin(status: number, headers: OutgoingHttpHeaders = {}): void {
    this.response?.writeHead(status, headers).write('some ');
  }

  end(text: string): void {
    this.response?.end(text);
  }

  /** Resets the connection. */
  reset(): void {
    (this.socket as Socket).resetAndDestroy();
  }

  /** Accepts an upgrade to WebSocket, and echoes all bytes. */
  upgrade(): void {
    this.socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    );
    this.socket.pipe(this.socket);
  }
}

/** An upstream whose responses the test sends. Each request names itself in the header `x-id`. */
export class ScriptedUpstream {
  private readonly arrived = new Map<string, UpstreamCall[]>();
  private readonly server = createServer((request, response) => this.add(request, request.socket, response));

  private constructor() {
    this.server.on('upgrade', (request, socket) => {
      socket.on('error', () => {});
      this.add(request, socket, undefined);
    });
  }

  static async start(): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream();
    await new Promise<void>((resolve) => upstream.server.listen(0, '127.0.0.1', resolve));
    return closeLater(upstream, () => upstream.stop());
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  private add(request: IncomingMessage, socket: Socket | Duplex, response: ServerResponse | undefined): void {
    const id = String(request.headers['x-id']);
    const call = new UpstreamCall(request, socket, response);
    this.arrived.set(id, [...(this.arrived.get(id) ?? []), call]);
  }

  /** Waits for the next request with this name. */
  next(id: string): Promise<UpstreamCall> {
    return waitFor(`a request ${id} at the upstream`, () => this.arrived.get(id)?.shift());
  }

  /** Returns all requests with this name that {@link next} has not returned. */
  waiting(id: string): UpstreamCall[] {
    return this.arrived.get(id)?.splice(0) ?? [];
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
