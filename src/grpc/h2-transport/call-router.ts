import type {
  RequestHandler,
  RequestHead,
  ServerConnection,
  ServerStream,
} from '../../h2/request-handler.js';
import { GrpcError, STATUS } from '../grpc-server.js';
import { type BoundMethod, FINISHED_CALL, type StreamHandler } from './bound-method.js';
import { type GrpcHead, readGrpcHead } from './grpc-head.js';
import type { GrpcServerState } from './grpc-server-state.js';
import { NotGrpc, sendError } from './responses.js';

/** Creates the target of a method for a request head. */
export type Method = (head: GrpcHead) => BoundMethod;

/**
 * Number of heads whose targets are cached: a few times the number of connections whose callers repeat their heads.
 */
const RECENT_HEADS = 8;

/** Routes each request to its method, and later events of a stream to its call. */
export class CallRouter implements RequestHandler {
  readonly #context: GrpcServerState;
  readonly #methods = new Map<string, Method>();
  /**
   * The latest heads and their targets, in a ring. Callers repeat their heads, and the engine then returns the same
   * object.
   */
  readonly #recentHeads: (RequestHead | undefined)[] = new Array(RECENT_HEADS).fill(undefined);
  readonly #recentTargets: (BoundMethod | undefined)[] = new Array(RECENT_HEADS).fill(undefined);
  #latest = 0;

  constructor(context: GrpcServerState) {
    this.#context = context;
  }

  /** Throws an Error if the path is already registered. */
  add(path: string, method: Method): void {
    if (this.#methods.has(path)) throw new Error(`a handler for ${path} is already registered`);
    this.#methods.set(path, method);
  }

  onRequest(stream: ServerStream, endStream: boolean): void {
    const latest = this.#latest;
    const target =
      this.#recentHeads[latest] === stream.head
        ? (this.#recentTargets[latest] as BoundMethod)
        : this.#find(stream.head);
    target.begin(stream, endStream);
  }

  onData(stream: ServerStream, chunk: Buffer, start: number, end: number, endStream: boolean): void {
    (stream.state as StreamHandler).onData(stream, chunk, start, end, endStream);
  }

  onTrailers(stream: ServerStream): void {
    (stream.state as StreamHandler).onTrailers(stream);
  }

  onDrained(stream: ServerStream): void {
    (stream.state as StreamHandler).onDrained(stream);
  }

  onReset(stream: ServerStream): void {
    (stream.state as StreamHandler).onStreamReset(stream);
  }

  onLateReset(connection: ServerConnection, streamId: number): void {
    this.#context.resetAnswered(connection, streamId);
  }

  #find(head: RequestHead): BoundMethod {
    let slot = this.#recentHeads.indexOf(head);
    if (slot < 0) {
      slot = (this.#latest + 1) % RECENT_HEADS;
      this.#recentHeads[slot] = head;
      this.#recentTargets[slot] = this.#targetOf(head);
    }
    this.#latest = slot;
    return this.#recentTargets[slot] as BoundMethod;
  }

  #targetOf(head: RequestHead): BoundMethod {
    const grpcHead = readGrpcHead(head);
    if (grpcHead.notGrpc !== undefined) return new NotGrpc(grpcHead.notGrpc, this.#context);
    const method = this.#methods.get(head.path);
    if (method === undefined) {
      const text = `The server does not implement the method ${head.path}`;
      return new RejectedCall(grpcHead, new GrpcError(STATUS.UNIMPLEMENTED, text));
    }
    if (Number.isNaN(grpcHead.timeoutMicros)) {
      const text = `Invalid grpc-timeout value "${grpcHead.timeoutText}"`;
      return new RejectedCall(grpcHead, new GrpcError(STATUS.INTERNAL, text));
    }
    const { encoding } = grpcHead;
    if (encoding !== 'identity' && encoding !== 'gzip') {
      const text = `Received message compressed with unsupported encoding "${encoding}"`;
      return new RejectedCall(grpcHead, new GrpcError(STATUS.UNIMPLEMENTED, text));
    }
    return method(grpcHead);
  }
}

/** Calls that fail with an error before the request is read. */
class RejectedCall implements BoundMethod {
  readonly #head: GrpcHead;
  readonly #error: GrpcError;

  constructor(head: GrpcHead, error: GrpcError) {
    this.#head = head;
    this.#error = error;
  }

  begin(stream: ServerStream): void {
    stream.state = FINISHED_CALL;
    sendError(stream, this.#head.responseHeaders, this.#error);
  }
}
