import type { ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { HeaderField } from '../../../src/h2/hpack/header-field.js';
import type { RequestHandler, ServerStream } from '../../../src/h2/request-handler.js';
import { H2Server } from '../../../src/h2/serving/h2-server.js';
import type { H2ServerOptions } from '../../../src/h2/serving/served-connection.js';
import { closeLater } from '../process/close-later.js';
import { waitFor } from '../process/wait-for.js';
import { bytesBody } from './bytes-body.js';
import { FrameReader, type RawFrame } from './h2-frames.js';
import { TEST_LIMITS } from './h2-limits.js';
import { openSession, post } from './http2-client.js';

const OK = [new HeaderField(':status', '200')];
const TRAILERS = [new HeaderField('x-end', 'yes')];
const LARGE = Buffer.alloc(65_536, 'l');

/**
 * Answers `/large` with 64 KiB and `/later` in the next turn, never answers `/hold`, throws for `/throw`, and answers
 * `ok` to any other path.
 */
class TestHandler implements RequestHandler {
  readonly held: ServerStream[] = [];
  /** Number of streams that began, by their path. */
  readonly begun = new Map<string, number>();
  /** Number of streams that ended without a response. */
  resets = 0;

  onRequest(stream: ServerStream, endStream: boolean): void {
    const { path } = stream.head;
    this.begun.set(path, (this.begun.get(path) ?? 0) + 1);
    if (endStream) this.#answer(stream);
  }

  onData(stream: ServerStream, _chunk: Buffer, start: number, end: number, endStream: boolean): void {
    stream.consumed(end - start);
    if (endStream) this.#answer(stream);
  }

  onTrailers(stream: ServerStream): void {
    this.#answer(stream);
  }

  onDrained(): void {}

  onReset(): void {
    this.resets++;
  }

  #answer(stream: ServerStream): void {
    const answer = (body: Buffer): void => stream.sendResponse(OK, bytesBody(body), TRAILERS);
    switch (stream.head.path) {
      case '/hold':
        this.held.push(stream);
        return;
      case '/throw':
        throw new Error('a mistake in the handler');
      case '/later':
        setImmediate(() => answer(Buffer.from('later')));
        return;
      case '/large':
        answer(LARGE);
        return;
      default:
        answer(Buffer.from('ok'));
    }
  }
}

/** An H2Server on a free port of 127.0.0.1, with the clients of one test. */
export class TestServer {
  readonly handler = new TestHandler();
  /** Arguments of the calls of onBadConnection. */
  readonly complaints: string[] = [];
  /** Arguments of the calls of onError. */
  readonly errors: unknown[] = [];
  readonly server: H2Server;
  port = 0;
  readonly #ca: string | undefined;

  /** `ca` is the certificate authority that clients trust if `options` enable TLS. */
  constructor(options: Partial<H2ServerOptions> = {}, ca?: string) {
    this.#ca = ca;
    this.server = new H2Server(this.handler, {
      limits: TEST_LIMITS,
      maxConnections: 20_000,
      maxBufferedBytes: 32 * 1024 * 1024,
      maxConnectionAgeMs: Number.POSITIVE_INFINITY,
      maxConnectionAgeGraceMs: Number.POSITIVE_INFINITY,
      keepAliveIntervalMs: Number.POSITIVE_INFINITY,
      keepAliveTimeoutMs: Number.POSITIVE_INFINITY,
      handshakeTimeoutMs: 600_000,
      nowMs: () => performance.now(),
      random: () => 0.5,
      onError: (error) => this.errors.push(error),
      onBadConnection: (message) => this.complaints.push(message),
      ...options,
    });
    closeLater(this.server, (server) => {
      server.closeNow();
      return server.empty();
    });
  }

  async listen(): Promise<this> {
    this.port = await this.server.listen({ host: '127.0.0.1', port: 0 });
    return this;
  }

  session(): Promise<ClientHttp2Session> {
    return this.#ca === undefined
      ? openSession(this.port)
      : openSession(this.port, { ca: this.#ca, servername: 'localhost' }, '127.0.0.1', 'https');
  }

  /** Opens a TCP connection for arbitrary bytes. */
  socket(): Socket {
    const socket = connect(this.port, '127.0.0.1');
    socket.on('error', () => {});
    return closeLater(socket, (one) => one.destroy());
  }

  async untilComplaint(pattern: RegExp): Promise<void> {
    await waitFor(`${pattern} among the complaints`, () =>
      this.complaints.some((complaint) => pattern.test(complaint)),
    );
  }
}

/** A caller that makes one call after another over its own connection until it is stopped. */
export class SteadyCaller {
  /** Number of answered calls. */
  answered = 0;
  /** Number of failed calls. */
  failed = 0;
  #stopped = false;
  readonly #done: Promise<void>;

  constructor(session: ClientHttp2Session) {
    this.#done = this.#run(session);
  }

  /** Waits until `more` further calls are answered. */
  async untilAnswered(more = 20): Promise<void> {
    const goal = this.answered + more;
    await waitFor(`${more} answered calls`, () => this.answered >= goal || this.failed > 0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async #run(session: ClientHttp2Session): Promise<void> {
    while (!this.#stopped) {
      const { httpStatus, body } = await post(session, '/', Buffer.from('hello'));
      if (httpStatus === 200 && body.toString() === 'ok') this.answered++;
      else this.failed++;
      if (session.destroyed) return;
      // Without a pause, the caller would keep a core busy.
      await setTimeout(1);
    }
  }
}

/** Collects the bytes that a socket receives. `closed` resolves with all of them when the connection ends. */
export class Received {
  readonly closed: Promise<Buffer>;
  /** Number of bytes received so far. */
  length = 0;
  readonly #chunks: Buffer[] = [];

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.length += chunk.length;
      this.#chunks.push(chunk);
    });
    this.closed = new Promise((resolve) => {
      socket.once('close', () => resolve(this.bytes));
    });
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** Complete frames received so far. */
  get frames(): RawFrame[] {
    return new FrameReader().read(this.bytes);
  }
}
