import type { EventEmitter } from 'node:events';
import type {
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
  sendUnaryData,
  UntypedHandleCall,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { STATUS, type StatusCode } from './grpc-server.js';

/** Answers that may wait for a caller that does not read; more end the stream. */
const MAX_UNREAD_MESSAGES = 1000;

type AnsweringStream = ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>;

/**
 * Guards services that are asked rarely (health, reflection): their streams can be ended from outside, do not pile
 * up answers for a caller that does not read, and what their handlers or the listeners of these throw stays inside.
 */
export class RareServices {
  readonly #open = new Set<AnsweringStream>();
  readonly #onError: (error: unknown) => void;
  #ended = false;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** The same service with every handler guarded. */
  guard(
    definition: ServiceDefinition,
    implementation: UntypedServiceImplementation,
  ): UntypedServiceImplementation {
    const guarded: UntypedServiceImplementation = {};
    for (const [name, method] of Object.entries(definition)) {
      const handler = (implementation[name] ?? implementation[method.originalName ?? name])?.bind(
        implementation,
      );
      if (handler === undefined) continue;
      guarded[name] = method.responseStream ? this.#guardStream(handler) : this.#guardUnary(handler);
    }
    return guarded;
  }

  /** Ends every open stream with UNAVAILABLE, and those that are still to come. */
  endStreams(): void {
    this.#ended = true;
    for (const stream of this.#open) end(stream, STATUS.UNAVAILABLE, 'the server is shutting down');
  }

  #guardUnary(handler: UntypedHandleCall): UntypedHandleCall {
    const run = handler as (
      call: ServerUnaryCall<unknown, unknown>,
      callback: sendUnaryData<unknown>,
    ) => void;
    return (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>) => {
      const fail = (error: unknown): void => {
        this.#onError(error);
        callback({ code: STATUS.INTERNAL, details: 'internal error' });
      };
      guardListeners(call, fail);
      try {
        run(call, callback);
      } catch (error) {
        fail(error);
      }
    };
  }

  #guardStream(handler: UntypedHandleCall): UntypedHandleCall {
    const run = handler as (call: AnsweringStream) => void;
    return (call: AnsweringStream) => {
      if (this.#ended) {
        end(call, STATUS.UNAVAILABLE, 'the server is shutting down');
        return;
      }
      this.#open.add(call);
      // grpc-js says so whenever a call is over, also after a good end.
      call.once('cancelled', () => this.#open.delete(call));
      boundUnread(call);
      const fail = (error: unknown): void => {
        this.#onError(error);
        end(call, STATUS.INTERNAL, 'internal error');
      };
      guardListeners(call, fail);
      try {
        run(call);
      } catch (error) {
        fail(error);
      }
    };
  }
}

function end(call: AnsweringStream, code: StatusCode, details: string): void {
  call.emit('error', { code, details });
}

/**
 * Events come from the reading of a connection or from Node's own turns: there an exception would cost the connection,
 * or end the process.
 */
function guardListeners(call: EventEmitter, fail: (error: unknown) => void): void {
  const emit = call.emit.bind(call);
  let failed = false;
  call.emit = (name: string | symbol, ...args: unknown[]): boolean => {
    try {
      return emit(name, ...args);
    } catch (error) {
      // Failing says 'error', whose listeners might throw again.
      if (!failed) {
        failed = true;
        fail(error);
      }
      return true;
    }
  };
}

/** Reads no further question while answers wait, and ends a stream whose answers nobody reads. */
function boundUnread(call: AnsweringStream): void {
  const write = call.write.bind(call) as (message: unknown) => boolean;
  call.write = (message: unknown): boolean => {
    if (call.writableEnded) return false;
    if (call.writableLength >= MAX_UNREAD_MESSAGES) {
      end(call, STATUS.RESOURCE_EXHAUSTED, 'answers are not being read');
      return false;
    }
    const more = write(message);
    if (!more && 'read' in call && !call.isPaused()) {
      call.pause();
      call.once('drain', () => call.resume());
    }
    return more;
  };
}
