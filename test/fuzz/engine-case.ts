import { type ByteSink, type ConnectionEvents, H2Connection } from '../../src/h2/connection.js';
import type { H2Limits } from '../../src/h2/limits.js';
import { TEST_LIMITS } from '../support/h2/h2-limits.js';
import { ConnectionInput } from './connection-input.js';
import { FuzzHandler } from './fuzz-handler.js';
import type { FuzzRecord } from './hpack-case.js';
import { checkOutput } from './output-check.js';
import { Random } from './random.js';

/** Limits that a few frames reach. */
const TIGHT_LIMITS: H2Limits = {
  ...TEST_LIMITS,
  maxConcurrentStreams: 3,
  maxHeaderListBytes: 400,
  maxHeaderBlockBytes: 500,
  maxContinuations: 2,
  streamWindowBytes: 1000,
  connectionWindowBytes: 70_000,
  resetBurst: 3,
  resetRefillPerSecond: 1,
  controlBurst: 6,
  controlRefillPerSecond: 1,
  maxRememberedResets: 2,
  maxOutputBytes: 50_000,
};
const MAX_WINDOW = 0x7fff_ffff;

/**
 * Records all output. Checks that written bytes are not changed later, and that no output follows the end of the
 * connection.
 */
class CheckingSink implements ByteSink {
  bufferedBytes = 0;
  over = false;
  /** Whether the sink reports that it never drains. */
  private readonly slow: boolean;
  private readonly written: Buffer[] = [];
  private readonly copies: Buffer[] = [];

  constructor(slow: boolean) {
    this.slow = slow;
  }

  write(bytes: Buffer): boolean {
    if (this.over) throw new Error('a write after the end');
    this.written.push(bytes);
    this.copies.push(Buffer.from(bytes));
    if (this.slow) this.bufferedBytes += bytes.length;
    return !this.slow;
  }

  end(): void {
    this.over = true;
  }

  destroy(): void {
    this.over = true;
  }

  output(): Buffer {
    const output = Buffer.concat(this.copies);
    if (!Buffer.concat(this.written).equals(output))
      throw new Error('bytes were changed after they were written');
    return output;
  }
}

/** A connection with a handler and a sink, and checks of its contract. */
class Run {
  readonly sink: CheckingSink;
  readonly handler: FuzzHandler;
  readonly connection: H2Connection;
  private readonly limits: H2Limits;
  private nowMs = 1000;
  private outputWaits = false;
  private broken = 0;

  constructor(
    seed: number,
    limits: H2Limits,
    options: { readonly slow: boolean; readonly answersLater: boolean },
  ) {
    this.limits = limits;
    this.sink = new CheckingSink(options.slow);
    this.handler = new FuzzHandler(seed, options.answersLater);
    const events: ConnectionEvents = {
      onOutput: () => {
        if (this.outputWaits) throw new Error('onOutput was told twice without a flush');
        this.outputWaits = true;
      },
      onEstablished: () => {},
      onPingAck: () => {},
      onProtocolError: () => {
        this.broken += 1;
        if (this.broken > 1) throw new Error('onBroken was told twice');
      },
    };
    this.connection = new H2Connection(this.sink, this.handler, events, {
      peer: 'fuzz',
      limits,
      nowMs: () => this.nowMs,
    });
  }

  /** Passes the chunks in order, without other calls in between. */
  feed(chunks: readonly Buffer[]): void {
    for (const chunk of chunks) this.receive(chunk);
    this.finish();
  }

  /** Passes the chunks in order. In between, makes random calls that an owner may make. */
  feedWithEvents(chunks: readonly Buffer[], random: Random): void {
    for (const chunk of chunks) {
      if (random.oneIn(4)) this.nowMs += random.length(5000);
      if (random.oneIn(3)) this.handler.answerLater();
      if (random.oneIn(15)) this.connection.ping();
      if (random.oneIn(30)) this.connection.closeGracefully();
      if (random.oneIn(60)) this.connection.terminate(random.below(14), 'that is all');
      if (random.oneIn(60)) this.connection.resetStreams();
      if (this.outputWaits && random.oneIn(2)) this.flush();
      if (random.oneIn(10)) this.sink.bufferedBytes = 0;
      this.receive(chunk);
    }
    this.handler.answerLater();
    this.flush();
    if (random.oneIn(2)) this.connection.resetStreams();
    this.finish();
  }

  private receive(chunk: Buffer): void {
    // The engine must not keep a reference to the chunk, so it is overwritten after the call.
    const chunkCopy = Buffer.from(chunk);
    this.connection.receive(chunkCopy);
    chunkCopy.fill(0xaa);
    this.outputWaits = false;
    this.check();
  }

  private flush(): void {
    this.outputWaits = false;
    this.connection.flush();
    this.check();
  }

  private check(): void {
    const { connection, limits, sink } = this;
    if (connection.openStreams > limits.maxConcurrentStreams)
      throw new Error(`${connection.openStreams} streams are open`);
    const { unconsumedBytes } = connection;
    if (unconsumedBytes < 0 || unconsumedBytes > Math.max(65_535, limits.connectionWindowBytes))
      throw new Error(`${unconsumedBytes} bytes are not consumed`);
    if (sink.over) return;
    const waiting = sink.bufferedBytes + this.handler.queuedBytes;
    if (waiting > limits.maxOutputBytes) throw new Error(`${waiting} bytes wait for the peer`);
  }

  private finish(): void {
    const { connection, sink } = this;
    if (this.broken > 0 && !sink.over) throw new Error('a broken connection does not end');
    if (this.broken > 0 && connection.openStreams > 0)
      throw new Error('a broken connection has open streams');
    for (const stream of this.handler.streams) {
      if (stream.queuedBytes < 0 || stream.queuedBytes > MAX_WINDOW)
        throw new Error(`${stream.queuedBytes} bytes queued`);
    }
  }
}

/**
 * Passes random client input to a connection, in chunks of random size. Throws if the engine throws or breaks a limit,
 * its contract with handler and owner, or the protocol. Also throws if the same bytes in other chunks have a different
 * result. Returns the number of frames.
 */
export function runEngineCase(seed: number, record: FuzzRecord): number {
  const random = new Random(seed);
  const limits = random.oneIn(2) ? TIGHT_LIMITS : TEST_LIMITS;
  const { parts } = new ConnectionInput(random);
  record.inputs.push(...parts);
  const input = Buffer.concat(parts);
  if (random.oneIn(2)) {
    const run = new Run(seed, limits, { slow: random.oneIn(4), answersLater: true });
    run.feedWithEvents(cut(input, random), random);
    checkOutput(run.sink.output(), input);
    return parts.length;
  }
  const whole = new Run(seed, limits, { slow: false, answersLater: false });
  whole.feed([input]);
  const output = whole.sink.output();
  checkOutput(output, input);
  // The engine checks the waiting data after each chunk. With tight limits, the result therefore depends on the chunks.
  if (limits === TIGHT_LIMITS) return parts.length;
  const inParts = new Run(seed, limits, { slow: false, answersLater: false });
  inParts.feed(cut(input, random));
  if (!inParts.sink.output().equals(output)) throw new Error('the output depends on the cuts');
  if (inParts.handler.summary() !== whole.handler.summary())
    throw new Error('what the handler is told depends on the cuts');
  return parts.length;
}

function cut(input: Buffer, random: Random): Buffer[] {
  const largest = random.pick([1, 3, 20, 200, 20_000]);
  const chunks: Buffer[] = [];
  for (let at = 0; at < input.length; ) {
    const end = Math.min(input.length, at + 1 + random.below(largest));
    chunks.push(input.subarray(at, end));
    at = end;
  }
  return chunks;
}
