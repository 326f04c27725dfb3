import type { RequestHandler, RequestHead, ServerStream } from '../../h2/request-handler.js';
import { GrpcError, STATUS } from '../grpc-server.js';
import type { CallContext } from './call-context.js';
import { type CallState, type CallTarget, OVER } from './call-state.js';
import type { Expiring } from './deadline-queue.js';
import { type GrpcHead, readGrpcHead } from './grpc-head.js';
import { isSupportedEncoding, UnsupportedEncoding } from './inflater.js';
import { sendError, sendNotGrpc } from './responses.js';

/** Makes the target of a method for one head. */
export type Method = (head: GrpcHead) => CallTarget;

/** Heads whose target is kept: connections whose callers repeat themselves, times a few. */
const RECENT_HEADS = 8;

/** Leads each request to its method, and what comes on a stream afterwards to its call. */
export class CallRouter implements RequestHandler {
  readonly #context: CallContext;
  readonly #methods = new Map<string, Method>();
  /** The heads seen last with what they lead to, in turn. Callers repeat their heads, and the engine hands out the same object then. */
  readonly #recentHeads: (RequestHead | undefined)[] = new Array(RECENT_HEADS).fill(undefined);
  readonly #recentTargets: (CallTarget | undefined)[] = new Array(RECENT_HEADS).fill(undefined);
  #latest = 0;

  constructor(context: CallContext) {
    this.#context = context;
  }

  /** Throws an Error when the path is taken. */
  add(path: string, method: Method): void {
    if (this.#methods.has(path)) throw new Error(`a handler for ${path} is registered already`);
    this.#methods.set(path, method);
  }

  onRequest(stream: ServerStream, endStream: boolean): void {
    if (this.#context.draining) {
      SHUTTING_DOWN.begin(stream, endStream);
      return;
    }
    const latest = this.#latest;
    const target =
      this.#recentHeads[latest] === stream.head
        ? (this.#recentTargets[latest] as CallTarget)
        : this.#find(stream.head);
    target.begin(stream, endStream);
  }

  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void {
    (stream.state as CallState).onData(stream, chunk, start, end, endStream);
  }

  onTrailers(stream: ServerStream): void {
    (stream.state as CallState).onTrailers(stream);
  }

  onDrained(stream: ServerStream): void {
    (stream.state as CallState).onDrained(stream);
  }

  onReset(stream: ServerStream): void {
    (stream.state as CallState).onReset(stream);
  }

  #find(head: RequestHead): CallTarget {
    let slot = this.#recentHeads.indexOf(head);
    if (slot < 0) {
      slot = (this.#latest + 1) % RECENT_HEADS;
      this.#recentHeads[slot] = head;
      this.#recentTargets[slot] = this.#targetOf(head);
    }
    this.#latest = slot;
    return this.#recentTargets[slot] as CallTarget;
  }

  #targetOf(head: RequestHead): CallTarget {
    const grpcHead = readGrpcHead(head);
    if (grpcHead.notGrpc !== undefined) return new NotGrpc(grpcHead.notGrpc, this.#context);
    const method = this.#methods.get(head.path);
    if (method === undefined) {
      const text = `The server does not implement the method ${head.path}`;
      return new Refusal(grpcHead, new GrpcError(STATUS.UNIMPLEMENTED, text));
    }
    if (Number.isNaN(grpcHead.timeoutMicros)) {
      const text = `Invalid grpc-timeout value "${grpcHead.timeoutText}"`;
      return new Refusal(grpcHead, new GrpcError(STATUS.INTERNAL, text));
    }
    if (!isSupportedEncoding(grpcHead.encoding)) {
      return new Refusal(grpcHead, new UnsupportedEncoding(grpcHead.encoding));
    }
    return method(grpcHead);
  }
}

/** Calls that are answered with an error whatever they hold. */
class Refusal implements CallTarget {
  readonly #head: GrpcHead;
  readonly #error: GrpcError;

  constructor(head: GrpcHead, error: GrpcError) {
    this.#head = head;
    this.#error = error;
  }

  begin(stream: ServerStream): void {
    stream.state = OVER;
    sendError(stream, this.#head.responseHeaders, this.#error);
  }
}

/**
 * Requests that are not gRPC. They are answered when they have ended, so that the engine checks all of them, or when they take longer than a
 * request may.
 */
class NotGrpc implements CallTarget {
  readonly #kind: 'content type' | 'method';
  readonly #context: CallContext;

  constructor(kind: 'content type' | 'method', context: CallContext) {
    this.#kind = kind;
    this.#context = context;
  }

  begin(stream: ServerStream, requestEnded: boolean): void {
    const request = new NotGrpcRequest(stream, this.#kind, this.#context);
    if (requestEnded) request.expire();
    else request.awaitEnd();
  }
}

class NotGrpcRequest implements CallState, Expiring {
  expiresMs = 0;
  queueIndex = -1;
  readonly #stream: ServerStream;
  readonly #kind: 'content type' | 'method';
  readonly #context: CallContext;

  constructor(stream: ServerStream, kind: 'content type' | 'method', context: CallContext) {
    this.#stream = stream;
    this.#kind = kind;
    this.#context = context;
  }

  awaitEnd(): void {
    this.#stream.state = this;
    this.#context.deadlines.add(this, this.#context.receiveTimeoutMs);
  }

  onData(stream: ServerStream, _chunk: Buffer, start: number, end: number, endStream: boolean): void {
    stream.consumed(end - start);
    if (endStream) this.expire();
  }

  onTrailers(): void {
    this.expire();
  }

  onDrained(): void {}

  onReset(): void {
    this.#context.deadlines.remove(this);
  }

  expire(): void {
    this.#context.deadlines.remove(this);
    this.#stream.state = OVER;
    sendNotGrpc(this.#stream, this.#kind);
  }
}

/** New calls while the server drains; gRPC clients try another server. */
const SHUTTING_DOWN: CallTarget = {
  begin(stream) {
    stream.state = OVER;
    const head = readGrpcHead(stream.head);
    if (head.notGrpc !== undefined) {
      sendNotGrpc(stream, head.notGrpc);
      return;
    }
    const error = new GrpcError(STATUS.UNAVAILABLE, 'the server is shutting down');
    sendError(stream, head.responseHeaders, error);
  },
};
