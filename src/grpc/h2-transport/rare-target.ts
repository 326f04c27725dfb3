import { EventEmitter } from 'node:events';
import { Duplex, Readable, Writable } from 'node:stream';
import type { Metadata, MethodDefinition, UntypedHandleCall } from '@grpc/grpc-js';
import type { ServerStream } from '../../h2/request-handler.js';
import { GrpcError, STATUS } from '../grpc-server.js';
import type { CallContext } from './call-context.js';
import { type CallTarget, OVER } from './call-state.js';
import type { GrpcHead } from './grpc-head.js';
import { type CallStatus, StreamingCall } from './streaming-call.js';
import { sendError } from './responses.js';

type Method = MethodDefinition<unknown, unknown>;
/** Any of the four kinds of handler of @grpc/grpc-js. */
type Handler = (call: unknown, respond?: Respond) => void;
type Respond = (error: object | null, value?: unknown, trailer?: Metadata) => void;

/** Calls of one method and one head whose handler was written for @grpc/grpc-js. */
export class RareTarget implements CallTarget {
  readonly #method: Method;
  readonly #handler: Handler;
  readonly #head: GrpcHead;
  readonly #context: CallContext;

  constructor(method: Method, handler: UntypedHandleCall, head: GrpcHead, context: CallContext) {
    this.#method = method;
    this.#handler = handler as Handler;
    this.#head = head;
    this.#context = context;
  }

  begin(stream: ServerStream, requestEnded: boolean): void {
    if (!this.#context.auxiliaryCallBegins(stream)) {
      stream.state = OVER;
      const text = 'too many calls of this kind are open on this connection';
      sendError(stream, this.#head.responseHeaders, new GrpcError(STATUS.RESOURCE_EXHAUSTED, text));
      return;
    }
    const call = new StreamingCall(stream, this.#method, this.#head, this.#context, requestEnded);
    const { requestStream, responseStream } = this.#method;
    if (requestStream && responseStream) serveBidi(call, this.#handler);
    else if (requestStream) serveClientStream(call, this.#handler);
    else serveOneRequest(call, responseStream ? serveServerStream : serveUnary, this.#handler);
  }
}

/** What every call object of @grpc/grpc-js has. */
function dress<T extends EventEmitter>(emitter: T, call: StreamingCall): T & { cancelled: boolean } {
  // Made when it is asked for: see toMetadata.
  Object.defineProperty(emitter, 'metadata', {
    get: () => call.metadata,
    set: (value) => Object.defineProperty(emitter, 'metadata', { value, writable: true }),
    configurable: true,
    enumerable: true,
  });
  return Object.assign(emitter, {
    cancelled: false,
    getPeer: () => call.peer,
    sendMetadata: (metadata: Metadata) => call.sendMetadata(metadata),
    getDeadline: () => call.deadline,
    getPath: () => call.path,
    getHost: () => call.host,
    getAuthContext: () => ({}),
  });
}

/** @grpc/grpc-js says 'cancelled' whenever a call is over, also after a good end. */
function tellOver(surface: EventEmitter & { cancelled: boolean }): void {
  surface.cancelled = true;
  surface.emit('cancelled', 'cancelled');
  if (surface instanceof Readable || surface instanceof Writable) surface.destroy();
}

type Surface = EventEmitter & { cancelled: boolean };

/** Waits for the one message of a request, and only then calls the handler. */
function serveOneRequest(
  call: StreamingCall,
  serve: (call: StreamingCall, request: unknown, handler: Handler) => Surface,
  handler: Handler,
): void {
  let request: { readonly message: unknown } | undefined;
  let surface: Surface | undefined;
  call.start({
    onMessage(message) {
      if (request === undefined) {
        request = { message };
      } else {
        const details = `Received a second request message for method ${call.path}`;
        call.sendStatus({ code: STATUS.UNIMPLEMENTED, details });
      }
      return true;
    },
    onRequestEnd() {
      if (request === undefined) {
        const details = `Received no request message for method ${call.path}`;
        call.sendStatus({ code: STATUS.UNIMPLEMENTED, details });
      } else {
        call.stopReceiveTimeout();
        surface = serve(call, request.message, handler);
      }
    },
    onOver() {
      if (surface !== undefined) tellOver(surface);
    },
  });
}

function serveUnary(call: StreamingCall, request: unknown, handler: Handler): Surface {
  const surface = Object.assign(dress(new EventEmitter(), call), { request });
  handler(surface, responder(call));
  return surface;
}

function serveServerStream(call: StreamingCall, request: unknown, handler: Handler): Surface {
  const writable = new Writable({
    objectMode: true,
    write: (message, _encoding, sent) => call.sendMessage(message, sent),
    final: (done) => {
      done();
      call.sendStatus(ending.status());
    },
  });
  const ending = new Ending(writable, call);
  const surface = Object.assign(dress(writable, call), { request });
  handler(surface);
  return surface;
}

function serveClientStream(call: StreamingCall, handler: Handler): void {
  const readable = new Readable({ objectMode: true, highWaterMark: 1, read: () => call.readOn() });
  readable.on('error', (error: object) => call.sendStatus(toStatus(error)));
  startStream(call, readable, handler, responder(call));
}

function serveBidi(call: StreamingCall, handler: Handler): void {
  const duplex = new Duplex({
    objectMode: true,
    readableHighWaterMark: 1,
    // Answers may hold their questions.
    writableHighWaterMark: 1,
    read: () => call.readOn(),
    write: (message, _encoding, sent) => call.sendMessage(message, sent),
    final: (done) => {
      done();
      call.sendStatus(ending.status());
    },
  });
  const ending = new Ending(duplex, call);
  startStream(call, duplex, handler);
}

/** Lets the handler have the stream, then the messages as they come. */
function startStream(call: StreamingCall, stream: Readable, handler: Handler, respond?: Respond): void {
  const surface = dress(stream, call);
  handler(surface, respond);
  call.start({
    onMessage: (message) => stream.push(message),
    onRequestEnd: () => stream.push(null),
    onOver: () => tellOver(surface),
  });
}

/** How an answering stream ends: well, with the trailing metadata of `end(metadata)`, or as an 'error' event says. */
class Ending {
  #status: CallStatus = { code: STATUS.OK, details: 'OK' };
  #trailingMetadata: Metadata | undefined;

  constructor(stream: Writable | Duplex, call: StreamingCall) {
    const end = stream.end.bind(stream) as () => Writable;
    stream.end = ((metadata?: Metadata) => {
      this.#trailingMetadata = metadata ?? this.#trailingMetadata;
      return end();
    }) as Writable['end'];
    stream.on('error', (error: object) => {
      this.#status = toStatus(error);
      // A stream that Node has destroyed never comes to its end.
      if (stream.destroyed) call.sendStatus(this.status());
      else end();
    });
    stream.on('close', () => {
      call.sendStatus({ code: STATUS.CANCELLED, details: 'the stream was destroyed' });
    });
  }

  status(): CallStatus {
    return { ...this.#status, metadata: this.#status.metadata ?? this.#trailingMetadata };
  }
}

function responder(call: StreamingCall): Respond {
  return (error, value, trailer) => {
    if (error !== null && error !== undefined) {
      call.sendStatus(toStatus(error, trailer));
    } else {
      call.sendMessage(value, () => {});
      call.sendStatus({ code: STATUS.OK, details: 'OK', metadata: trailer });
    }
  };
}

/** The status in whatever a handler answers as error: an Error, or an object with code, details and metadata. */
function toStatus(error: object, trailer?: Metadata): CallStatus {
  const { code, details, message, metadata } = error as {
    code?: unknown;
    details?: unknown;
    message?: unknown;
    metadata?: Metadata;
  };
  const hasCode = typeof code === 'number' && Number.isInteger(code);
  const text = hasCode && typeof details === 'string' ? details : message;
  return {
    code: hasCode ? code : STATUS.UNKNOWN,
    details: typeof text === 'string' ? text : 'Unknown Error',
    metadata: trailer ?? metadata,
  };
}
