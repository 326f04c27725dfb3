import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { createClientCodec } from '../../../src/codec/client-codec.js';
import type { RateLimitResponse } from '../../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import type { Random } from '../../fuzz/random.js';
import { type Answer, readAnswer } from './answer.js';
import { type Bucket, DOMAIN } from './buckets.js';

const codec = createClientCodec();
/** gRPC prefix of a message: not compressed, and its length. */
const PREFIX_BYTES = 5;

/** Options of a caller. */
export interface CallerOptions {
  readonly name: string;
  readonly port: number;
  /** Value of `grpc-timeout`, in milliseconds. The caller waits for late answers, too. */
  readonly deadlineMs: number;
  /** Buckets of each kind of request. No other caller uses the first bucket of a request. */
  readonly requests: readonly (readonly Bucket[])[];
  readonly intervalMs: number;
  readonly connections: number;
}

/** An answered call. Times are in milliseconds of the test's clock. */
export interface AnsweredCall {
  readonly caller: Caller;
  readonly connection: number;
  readonly requested: readonly Bucket[];
  readonly sentMs: number;
  readonly endMs: number;
  readonly answer: Answer;
}

/** Receives the answers. */
export interface CallerEvents {
  sent(requested: readonly Bucket[]): void;
  answered(answered: AnsweredCall): void;
  /** A connection was closed. A Redis fault must not cause this. */
  connectionLost(caller: Caller, reason: string): void;
}

/**
 * Calls weir at an exact rate, independent of earlier calls, with Node's HTTP/2, which uses little CPU. Close it after
 * use.
 */
export class Caller {
  readonly options: CallerOptions;
  private readonly random: Random;
  private readonly events: CallerEvents;
  private readonly messages: readonly Buffer[];
  private readonly sessions: ClientHttp2Session[] = [];
  private nextMs = 0;
  private turn = 0;
  private closed = false;
  /** Number of calls without an answer. */
  waiting = 0;

  constructor(options: CallerOptions, random: Random, events: CallerEvents) {
    this.options = options;
    this.random = random;
    this.events = events;
    this.messages = options.requests.map((buckets) => {
      const descriptors = buckets.map(({ name }) => ({
        entries: [{ key: 'bucket', value: name }],
        limit: undefined,
        hitsAddend: undefined,
        isNegativeHits: false,
      }));
      const message = codec.encodeRequest({ domain: DOMAIN, descriptors, hitsAddend: 1 });
      const prefix = Buffer.alloc(PREFIX_BYTES);
      prefix.writeUInt32BE(message.length, 1);
      return Buffer.concat([prefix, message]);
    });
  }

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
    const { intervalMs, requests, connections } = this.options;
    if (this.nextMs === 0) this.nextMs = nowMs + this.random.below(Math.ceil(intervalMs));
    // After a delay of this process, missed calls are skipped instead of being sent in a burst.
    if (nowMs - this.nextMs > 10 * intervalMs) this.nextMs = nowMs;
    while (this.nextMs <= nowMs) {
      this.nextMs += intervalMs;
      this.call(this.turn++ % connections, this.random.below(requests.length));
    }
  }

  close(): void {
    this.closed = true;
    for (const session of this.sessions) session.destroy();
  }

  private lost(reason: string): void {
    if (!this.closed) this.events.connectionLost(this, reason);
  }

  private call(connection: number, shape: number): void {
    const session = this.sessions[connection] as ClientHttp2Session;
    if (session.destroyed) return;
    const requested = this.options.requests[shape] as readonly Bucket[];
    const sentMs = performance.now();
    this.waiting++;
    this.events.sent(requested);
    const stream = session.request({
      ':method': 'POST',
      ':path': SHOULD_RATE_LIMIT_PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': `${this.options.deadlineMs}m`,
    });
    this.listen(stream, (status, details, body) => {
      this.waiting--;
      this.events.answered({
        caller: this,
        connection,
        requested,
        sentMs,
        endMs: performance.now(),
        answer: this.read(requested, status, details, body),
      });
    });
    stream.end(this.messages[shape]);
  }

  private read(requested: readonly Bucket[], status: number, details: string, body: Buffer): Answer {
    let response: RateLimitResponse | undefined;
    if (body.length > 0) {
      if (body.length < PREFIX_BYTES || body.readUInt32BE(1) !== body.length - PREFIX_BYTES) {
        return { kind: 'wrong', why: `not a message: ${body.toString('hex', 0, 40)}` };
      }
      try {
        response = codec.decodeResponse(body.subarray(PREFIX_BYTES));
      } catch (error) {
        return { kind: 'wrong', why: `not a RateLimitResponse: ${(error as Error).message}` };
      }
    }
    return readAnswer(requested, status, details, response);
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
