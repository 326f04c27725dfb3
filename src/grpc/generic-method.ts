import { GrpcError, STATUS } from './grpc-error.js';

/** Header fields, alternating names and values. Values of `…-bin` fields are base64 without padding. */
export type Fields = readonly string[];

/**
 * A call of an {@link GenericMethod}, with messages as bytes in both directions. The methods do nothing once the call
 * has ended.
 */
export interface GenericCall {
  /** Header fields of the request. */
  readonly fields: Fields;
  /** Timeout of the caller, counted from the start of the call, in microseconds. Infinity: no timeout. */
  readonly timeoutMicros: number;
  /** Sends header fields of the response. Without this call, they are sent with the first message. */
  sendHeaders(fields: Fields): void;
  /**
   * Sends a message. Returns false if the message waits for the caller; {@link GenericHandler.onDrained} is called
   * once the caller has read it. Too many waiting messages end the call with RESOURCE_EXHAUSTED.
   */
  send(message: Uint8Array): boolean;
  /** Ends the call after all messages are sent, with OK if there is no `error`. Only the first call has an effect. */
  end(error?: GrpcError, trailers?: Fields): void;
}

/**
 * Handles one call. If it throws a {@link GrpcError}, the call ends with that error. Any other error ends the call with
 * INTERNAL and a fixed message.
 */
export interface GenericHandler {
  /**
   * Handles the next request message, which the handler may keep. The following message is delivered only after the
   * caller has read all responses.
   */
  onMessage(message: Buffer): void;
  /** Called when no further request message follows. */
  onRequestEnd?(): void;
  /** Called when the caller has read all sent messages. */
  onDrained?(): void;
  /** Called when the call has ended, with or without an error. */
  onClosed?(): void;
}

/** A rarely called method, for example of health or reflection. Its handler works on bytes, on both stacks. */
export interface GenericMethod {
  /** `/package.Service/Method`. */
  readonly path: string;
  /** If false, a call starts only when its request is complete and contains one message. */
  readonly requestStream: boolean;
  /** If true, a drain ends open calls with UNAVAILABLE. */
  readonly responseStream: boolean;
  begin(call: GenericCall): GenericHandler;
}

/** Creates a method with one message in each direction and an immediate response. */
export function unaryMethod<Request>(
  path: string,
  decode: (bytes: Buffer) => Request,
  answer: (request: Request) => Uint8Array,
): GenericMethod {
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

/** Maximum length of a request message of a generic method, in bytes. */
export const MAX_AUXILIARY_BYTES = 65_536;

/** Decodes a request message with `decode`. Throws a {@link GrpcError} if it is too long or invalid. */
export function decodeRequest<Request>(decode: (bytes: Buffer) => Request, bytes: Buffer): Request {
  if (bytes.length > MAX_AUXILIARY_BYTES) {
    const text = `Received message larger than max (${bytes.length} vs ${MAX_AUXILIARY_BYTES})`;
    throw new GrpcError(STATUS.RESOURCE_EXHAUSTED, text);
  }
  try {
    return decode(bytes);
  } catch {
    throw new GrpcError(STATUS.INTERNAL, 'Error deserializing request');
  }
}

/** Open calls of methods with response streams, which a drain ends. */
export class OpenStreams {
  readonly #calls = new Set<GenericCall>();
  #ended = false;

  add(call: GenericCall): void {
    if (this.#ended) endForShutdown(call);
    else this.#calls.add(call);
  }

  delete(call: GenericCall): void {
    this.#calls.delete(call);
  }

  /** Ends every open call, and all calls that start later. */
  end(): void {
    this.#ended = true;
    for (const call of this.#calls) endForShutdown(call);
  }
}

function endForShutdown(call: GenericCall): void {
  call.end(new GrpcError(STATUS.UNAVAILABLE, 'the server is shutting down'));
}
