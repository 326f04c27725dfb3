import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { createClientCodec } from '../../../src/codec/client-codec.js';
import type { Descriptor, RateLimitResponse } from '../../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import type { Random } from '../../fuzz/random.js';
import { prefixed } from '../../support/h2/http2-client.js';
import { DOMAIN } from './buckets.js';

const codec = createClientCodec();
/** gRPC prefix of a message: not compressed, and its length. */
const PREFIX_BYTES = 5;

/** Returns a request as gRPC sends it. */
export function encodeCall(descriptors: readonly Descriptor[]): Buffer {
  return prefixed(codec.encodeRequest({ domain: DOMAIN, descriptors, hitsAddend: 1 }));
}

/** Options of a client. */
export interface ClientOptions {
  readonly name: string;
  readonly port: number;
  /** Value of `grpc-timeout`, in milliseconds. The client waits for late answers, too. */
  readonly deadlineMs: number;
  readonly intervalMs: number;
  readonly connections: number;
}

/** The end of a call. Times are in milliseconds of the test's clock. */
export interface Reply {
  readonly sentMs: number;
  readonly endMs: number;
  readonly status: number;
  readonly details: string;
  readonly response: RateLimitResponse | undefined;
  /** Why the body is not a response, if it is not. */
  readonly malformed: string | undefined;
}

/**
 * Calls weir at an exact rate, independent of earlier calls, with Node's HTTP/2, which uses little CPU. Close it after
 * use.
 */
export abstract class PacedClient {
  protected readonly random: Random;
  private readonly onLost: (client: PacedClient, reason: string) => void;
  private readonly sessions: ClientHttp2Session[] = [];
  private nextMs = 0;
  private turn = 0;
  private closed = false;
  /** Number of calls without an answer. */
  waiting = 0;

  /** `onLost` is called when a connection was closed. A Redis fault must not cause this. */
  constructor(random: Random, onLost: (client: PacedClient, reason: string) => void) {
    this.random = random;
    this.onLost = onLost;
  }

  abstract get options(): ClientOptions;

  /** Sends the next call with {@link call}. */
  protected abstract sendNext(connection: number): void;

  /** Resolves when all connections are open. */
  async connect(): Promise<void> {
    const { port, connections } = this.options;
    for (let at = 0; at < connections; at++) {
      const session = connect(`http://127.0.0.1:${port}`);
      this.sessions.push(session);
      await new Promise((resolve, reject) => {
        session.once('connect', resolve);
        session.once('error', reject);
      });
      session.on('error', (error) => this.lost(error.message));
      session.on('goaway', (code) => this.lost(`GOAWAY, code ${code}`));
      session.on('close', () => this.lost('the connection was closed'));
    }
  }

  /** Local ports of the connections. */
  ports(): number[] {
    return this.sessions.map(({ socket }) => socket.localPort as number);
  }

  /** Sends the calls that are due. */
  sendDueCalls(nowMs: number): void {
    const { intervalMs, connections } = this.options;
    if (this.nextMs === 0) this.nextMs = nowMs + this.random.below(Math.ceil(intervalMs));
    // After a delay of this process, missed calls are skipped instead of being sent in a burst.
    if (nowMs - this.nextMs > 10 * intervalMs) this.nextMs = nowMs;
    while (this.nextMs <= nowMs) {
      this.nextMs += intervalMs;
      const connection = this.turn++ % connections;
      if (this.sessions[connection]?.destroyed === false) this.sendNext(connection);
    }
  }

  close(): void {
    this.closed = true;
    for (const session of this.sessions) session.destroy();
  }

  /** Sends a call. `done` gets its end. */
  protected call(connection: number, message: Buffer, done: (reply: Reply) => void): void {
    const sentMs = performance.now();
    this.waiting++;
    const stream = (this.sessions[connection] as ClientHttp2Session).request({
      ':method': 'POST',
      ':path': SHOULD_RATE_LIMIT_PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': `${this.options.deadlineMs}m`,
    });
    this.listen(stream, (status, details, body) => {
      this.waiting--;
      done({ sentMs, endMs: performance.now(), status, details, ...decoded(body) });
    });
    stream.end(message);
  }

  private lost(reason: string): void {
    if (!this.closed) this.onLost(this, reason);
  }

  private listen(
    stream: ClientHttp2Stream,
    done: (status: number, details: string, body: Buffer) => void,
  ): void {
    const chunks: Buffer[] = [];
    let status = -1;
    let details = 'the call ended without a status';
    const note = (headers: Readonly<Record<string, unknown>>): void => {
      if (headers['grpc-status'] === undefined) return;
      status = Number(headers['grpc-status']);
      details = decodeURIComponent(String(headers['grpc-message'] ?? ''));
    };
    stream.on('response', note);
    stream.on('trailers', note);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', (error) => {
      details = error.message;
    });
    stream.on('close', () => {
      if (!this.closed) done(status, details, Buffer.concat(chunks));
    });
  }
}

function decoded(body: Buffer): Pick<Reply, 'response' | 'malformed'> {
  const malformed = (why: string) => ({ response: undefined, malformed: why });
  if (body.length === 0) return { response: undefined, malformed: undefined };
  if (body.length < PREFIX_BYTES || body.readUInt32BE(1) !== body.length - PREFIX_BYTES)
    return malformed(`not a message: ${body.toString('hex', 0, 40)}`);
  try {
    return { response: codec.decodeResponse(body.subarray(PREFIX_BYTES)), malformed: undefined };
  } catch (error) {
    return malformed(`not a RateLimitResponse: ${(error as Error).message}`);
  }
}
