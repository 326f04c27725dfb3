import { HeaderField } from '../../src/h2/hpack/header-field.js';
import type { RequestHandler, ServerStream } from '../../src/h2/request-handler.js';
import { bytesBody } from '../support/h2/bytes-body.js';

const OK = [new HeaderField(':status', '200'), new HeaderField('content-type', 'application/grpc', true)];
const OK_TRAILERS = [new HeaderField('grpc-status', '0', true)];
const REFUSED = [
  new HeaderField(':status', '200'),
  new HeaderField('content-type', 'application/grpc', true),
  new HeaderField('grpc-status', '3'),
  new HeaderField('grpc-message', 'no '.repeat(20)),
];
const HUGE_TRAILERS = [new HeaderField('grpc-status', '0'), new HeaderField('x-huge', 'h'.repeat(40_000))];
const PREFIX = Buffer.from([0, 0, 0, 0, 4]);
const NONE = Buffer.alloc(0);
const BODY = Buffer.from('body');
const LARGE_BODY = Buffer.alloc(100_000, 'x');
const MEDIUM_BODY = Buffer.alloc(1500, 'm');
const CANCEL = 8;

/** The handler's behaviour for a stream. */
type Behaviour =
  | 'unary'
  | 'bare'
  | 'empty'
  | 'medium'
  | 'large'
  | 'refuse'
  | 'reset'
  | 'echo'
  | 'never'
  | 'keep'
  | 'later';
const BEHAVIOURS: readonly Behaviour[] = [
  'unary',
  'bare',
  'empty',
  'medium',
  'large',
  'refuse',
  'reset',
  'echo',
  'never',
  'keep',
];

class StreamState {
  requestEnded = false;
  reset = false;
  readonly behaviour: Behaviour;

  constructor(behaviour: Behaviour) {
    this.behaviour = behaviour;
  }
}

/**
 * Answers each stream in one of several ways, depending on the stream's number and a seed. Checks that the engine keeps
 * the contract of {@link RequestHandler}.
 */
export class FuzzHandler implements RequestHandler {
  /** The engine's calls, to compare runs: numbers of streams and lengths of bodies. */
  readonly log: string[] = [];
  readonly streams: ServerStream[] = [];
  private readonly later: ServerStream[] = [];
  private readonly seed: number;
  private readonly answersLater: boolean;
  private bodyBytes = 0;

  /** `answersLater`: some streams are only answered by {@link answerLater}. */
  constructor(seed: number, answersLater: boolean) {
    this.seed = seed;
    this.answersLater = answersLater;
  }

  /** Number of bytes that wait for windows, over all streams. */
  get queuedBytes(): number {
    return this.streams.reduce((sum, stream) => sum + stream.queuedBytes, 0);
  }

  onRequest(stream: ServerStream, endStream: boolean): void {
    if (stream.state !== undefined) throw new Error(`onRequest came twice for stream ${stream.id}`);
    const { method, fields } = stream.head;
    if (method === '' || fields.length % 2 !== 0) throw new Error('a head that is none');
    const state = new StreamState(this.behaviourOf(stream.id));
    state.requestEnded = endStream;
    stream.state = state;
    this.streams.push(stream);
    this.log.push(`request ${stream.id} ${endStream} ${fields.length}`);
    switch (state.behaviour) {
      case 'refuse':
        stream.sendHeaders(REFUSED, true);
        stream.sendData(BODY, false); // too late, must do nothing
        return;
      case 'reset':
        stream.reset(CANCEL);
        return;
      case 'echo':
        stream.sendHeaders(OK, false);
        break;
      case 'later':
        this.later.push(stream);
    }
    if (endStream) this.onRequestEnd(stream, state);
  }

  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void {
    const state = this.stateOf(stream, 'onData');
    if (start < 0 || start > end || end > chunk.length) throw new Error(`a body from ${start} to ${end}`);
    state.requestEnded = endStream;
    this.bodyBytes += end - start;
    if (end > start && this.log.at(-1) !== `data ${stream.id}`) this.log.push(`data ${stream.id}`);
    if (state.behaviour === 'echo') stream.sendData(chunk.subarray(start, end), false);
    if (state.behaviour !== 'keep') stream.consumed(end - start);
    if (endStream) this.onRequestEnd(stream, state);
  }

  onTrailers(stream: ServerStream): void {
    const state = this.stateOf(stream, 'onTrailers');
    state.requestEnded = true;
    this.log.push(`trailers ${stream.id}`);
    this.onRequestEnd(stream, state);
  }

  onDrained(stream: ServerStream): void {
    if ((stream.state as StreamState).reset) throw new Error(`onDrained after onReset on ${stream.id}`);
    if (stream.queuedBytes !== 0) throw new Error(`onDrained with ${stream.queuedBytes} bytes queued`);
    this.log.push(`drained ${stream.id}`);
  }

  onReset(stream: ServerStream, errorCode: number): void {
    const state = stream.state as StreamState;
    if (state.reset) throw new Error(`onReset came twice for stream ${stream.id}`);
    state.reset = true;
    this.log.push(`reset ${stream.id} ${errorCode}`);
    // All of these calls must have no effect.
    stream.sendHeaders(OK, false);
    stream.sendData(BODY, true);
    stream.consumed(1);
    stream.reset(CANCEL);
  }

  /** Answers, outside of any call by the engine, the streams that wait for it. */
  answerLater(): void {
    for (const stream of this.later.splice(0)) stream.sendResponse(OK, bytesBody(PREFIX, BODY), OK_TRAILERS);
  }

  /** Returns the log and the size of the bodies. */
  summary(): string {
    return `${this.log.join('\n')}\n${this.bodyBytes} bytes`;
  }

  private onRequestEnd(stream: ServerStream, state: StreamState): void {
    this.log.push(`end ${stream.id}`);
    switch (state.behaviour) {
      case 'unary':
      case 'keep':
        stream.sendResponse(OK, bytesBody(PREFIX, BODY), OK_TRAILERS);
        return;
      case 'large':
        stream.sendResponse(OK, bytesBody(PREFIX, LARGE_BODY), HUGE_TRAILERS);
        return;
      case 'bare':
        stream.sendResponse(OK, bytesBody(PREFIX, BODY), []);
        return;
      case 'empty':
        stream.sendHeaders(OK, false);
        stream.sendData(NONE, true);
        return;
      case 'medium':
        stream.sendHeaders(OK, false);
        stream.sendData(MEDIUM_BODY, false);
        stream.sendData(BODY, true);
        return;
      case 'echo':
        stream.sendTrailers(OK_TRAILERS);
    }
  }

  private stateOf(stream: ServerStream, method: string): StreamState {
    const state = stream.state as StreamState | undefined;
    if (state === undefined) throw new Error(`${method} before onRequest on stream ${stream.id}`);
    if (state.reset) throw new Error(`${method} after onReset on stream ${stream.id}`);
    if (state.requestEnded) throw new Error(`${method} after the request's end on stream ${stream.id}`);
    return state;
  }

  private behaviourOf(id: number): Behaviour {
    const mixed = Math.imul(id + this.seed, 0x9e37_79b1) >>> 16;
    if (this.answersLater && mixed % 3 === 0) return 'later';
    return BEHAVIOURS[mixed % BEHAVIOURS.length] as Behaviour;
  }
}
