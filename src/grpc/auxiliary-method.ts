import { GrpcError, STATUS } from './grpc-error.js';

/** Header fields, name and value by turns; values of `…-bin` in base64 without padding. */
export type Fields = readonly string[];

/** A call of an {@link AuxiliaryMethod}: bytes in both directions. Its methods do nothing once it is over. */
export interface AuxiliaryCall {
  /** Header fields of the request. */
  readonly fields: Fields;
  /** How long the caller waits, from the beginning of the call; Infinity: for ever. */
  readonly timeoutMicros: number;
  /** Sends header fields of the response, which go with the first message otherwise. */
  sendHeaders(fields: Fields): void;
  /**
   * Sends a message. False: it waits for the caller, and {@link AuxiliaryHandler.onDrained} tells when the caller has
   * read it. Too many messages that wait end the call with RESOURCE_EXHAUSTED.
   */
  send(message: Uint8Array): boolean;
  /** Ends the call after the messages sent before, with OK where there is no `error`; only the first end counts. */
  end(error?: GrpcError, trailers?: Fields): void;
}

/**
 * What answers one call. A {@link GrpcError} that it throws ends the call; anything else that it throws ends the call
 * with INTERNAL and a fixed text on the wire.
 */
export interface AuxiliaryHandler {
  /** The next request message, which belongs to the handler. The one after it comes once all answers are read. */
  onMessage(message: Buffer): void;
  /** No other request message comes. */
  onRequestEnd?(): void;
  /** The caller has read all that was sent. */
  onDrained?(): void;
  /** The call is over, however it went. */
  onClosed?(): void;
}

/** A method that is asked rarely, such as those of health and reflection: a handler of bytes, on both stacks. */
export interface AuxiliaryMethod {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Where false, a call begins once its request is complete and holds one message. */
  readonly requestStream: boolean;
  /** Where true, a drain ends open calls with UNAVAILABLE. */
  readonly responseStream: boolean;
  begin(call: AuxiliaryCall): AuxiliaryHandler;
}

/** A method of one message in each direction, which is answered at once. */
export function unaryMethod<Request>(
  path: string,
  decode: (bytes: Buffer) => Request,
  answer: (request: Request) => Uint8Array,
): AuxiliaryMethod {
  return {
    path,
    requestStream: false,
    responseStream: false,
    begin: (call) => ({
      onMessage(bytes) {
        call.send(answer(decodeRequest(decode, bytes)));
        call.end();
      },
    }),
  };
}

/** What `decode` makes of a request message; throws the {@link GrpcError} for one that it refuses. */
export function decodeRequest<Request>(decode: (bytes: Buffer) => Request, bytes: Buffer): Request {
  try {
    return decode(bytes);
  } catch {
    throw new GrpcError(STATUS.INTERNAL, 'Error deserializing request');
  }
}

/** Open calls of methods that answer with streams, which a drain ends. */
export class OpenStreams {
  readonly #calls = new Set<AuxiliaryCall>();
  #ended = false;

  add(call: AuxiliaryCall): void {
    if (this.#ended) endForShutdown(call);
    else this.#calls.add(call);
  }

  delete(call: AuxiliaryCall): void {
    this.#calls.delete(call);
  }

  /** Ends every open call, and those that are still to come. */
  end(): void {
    this.#ended = true;
    for (const call of this.#calls) endForShutdown(call);
  }
}

function endForShutdown(call: AuxiliaryCall): void {
  call.end(new GrpcError(STATUS.UNAVAILABLE, 'the server is shutting down'));
}
