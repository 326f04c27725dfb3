import { HeaderField } from '../../h2/hpack/header-field.js';
import type { ServerStream } from '../../h2/request-handler.js';
import type { CallContext } from './call-context.js';
import { type CallState, type CallTarget, OVER } from './call-state.js';
import type { Expiring } from './deadline-queue.js';

/** Why a request is not gRPC: its content type, or another method than POST. */
export type NotGrpcReason = 'content type' | 'method';

const PLAIN_TEXT = new HeaderField('content-type', 'text/plain; charset=utf-8');
const UNSUPPORTED_MEDIA_TYPE = [new HeaderField(':status', '415'), PLAIN_TEXT];
const METHOD_NOT_ALLOWED = [new HeaderField(':status', '405'), PLAIN_TEXT, new HeaderField('allow', 'POST')];
const TEXT = Buffer.from('This port speaks gRPC: POST with content-type application/grpc.\n');

/** Requests that are no gRPC calls: 415 or 405, with a line of text. */
export class NotGrpc implements CallTarget {
  readonly #reason: NotGrpcReason;
  readonly #context: CallContext;

  constructor(reason: NotGrpcReason, context: CallContext) {
    this.#reason = reason;
    this.#context = context;
  }

  begin(stream: ServerStream, requestEnded: boolean): void {
    if (requestEnded) sendNotGrpc(stream, this.#reason);
    else stream.state = new DiscardedRequest(stream, this.#reason, this.#context);
  }
}

/**
 * A request whose body nobody wants. It is answered at its end, so that a breach of HTTP/2 on the way there is answered
 * as that; but not later than a call would be, nor after more bytes than a call may have.
 */
class DiscardedRequest implements CallState, Expiring {
  dueAt = 0;
  heapIndex = -1;
  readonly #stream: ServerStream;
  readonly #reason: NotGrpcReason;
  readonly #context: CallContext;
  #bytesLeft: number;

  constructor(stream: ServerStream, reason: NotGrpcReason, context: CallContext) {
    this.#stream = stream;
    this.#reason = reason;
    this.#context = context;
    this.#bytesLeft = context.maxMessageBytes;
    if (context.receiveTimeoutMs !== Number.POSITIVE_INFINITY) {
      context.deadlines.add(this, context.receiveTimeoutMs);
    }
  }

  onData(stream: ServerStream, _chunk: Buffer, start: number, end: number, endStream: boolean): void {
    stream.consumed(end - start);
    this.#bytesLeft -= end - start;
    if (endStream || this.#bytesLeft < 0) this.#answer();
  }

  onTrailers(): void {
    this.#answer();
  }

  onDrained(): void {}

  onReset(): void {
    this.#context.deadlines.remove(this);
  }

  expire(): void {
    this.#answer();
  }

  #answer(): void {
    this.#context.deadlines.remove(this);
    sendNotGrpc(this.#stream, this.#reason);
  }
}

function sendNotGrpc(stream: ServerStream, reason: NotGrpcReason): void {
  stream.state = OVER;
  // RFC 9110 section 9.3.2: no content in an answer to HEAD.
  const bodiless = stream.head.method === 'HEAD';
  stream.sendHeaders(reason === 'method' ? METHOD_NOT_ALLOWED : UNSUPPORTED_MEDIA_TYPE, bodiless);
  if (!bodiless) stream.sendData(TEXT, true);
}
