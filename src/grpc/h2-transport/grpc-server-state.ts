import type { ServerConnection, ServerStream } from '../../h2/request-handler.js';
import { checkInvariant } from '../../runtime/invariant.js';
import type { ResetListener } from '../../runtime/signal.js';
import type { TimerSource } from '../../runtime/timers.js';
import { type NextTurn, TurnScheduler } from '../../runtime/turns.js';
import { OpenStreams } from '../generic-method.js';
import { GrpcError, type GrpcServerOptions, STATUS, toGrpcError } from '../grpc-server.js';
import { FinishedCall } from './bound-method.js';
import { DeadlineQueue } from './deadline-queue.js';
import { Inflater } from './inflater.js';
import { type MessageReader, type ReadResult, ReceiveBudget } from './message-reader.js';

const MIB = 1024 * 1024;
/** Minimum of the receive budget of one connection, in bytes. The budget otherwise allows two messages. */
const MIN_RECEIVE_BUDGET = 8 * MIB;
export const DEFAULT_RECEIVE_TIMEOUT_MS = 60_000;
/** Maximum number of open calls of auxiliary methods on one connection. */
export const MAX_AUXILIARY_CALLS = 100;
/** Memory of such a call with its handler, in bytes. */
const AUXILIARY_CALL_BYTES = 8192;

/** State that the calls of one server share. */
export class GrpcServerState {
  readonly options: GrpcServerOptions;
  readonly deadlines: DeadlineQueue;
  readonly inflater: Inflater;
  readonly genericScheduler = new GenericCallScheduler();
  readonly openStreams = new OpenStreams();
  readonly maxMessageBytes: number;
  /** See {@link GrpcServerOptions.keptMessageBytes}. */
  readonly keptMessageBytes: number;
  /** Maximum length of a message of an auxiliary call, in bytes. Of a longer one, only a part may be kept. */
  readonly maxGenericBytes: number;
  /** Maximum time for a unary request to arrive, in milliseconds. */
  readonly receiveTimeoutMs: number;
  /** Called when the last unary call of {@link started} has ended. */
  onIdle: (() => void) | undefined;
  readonly #budgets = new WeakMap<ServerConnection, ReceiveBudget>();
  readonly #genericCalls = new WeakMap<ServerConnection, number>();
  /** Only of connections that had a call with {@link ServerCall.resetListener}. */
  readonly #answeredCalls = new WeakMap<ServerConnection, AnsweredCalls>();
  #running = 0;

  constructor(options: GrpcServerOptions, timers: TimerSource) {
    this.options = options;
    this.deadlines = new DeadlineQueue(timers);
    this.inflater = new Inflater(options.keptMessageBytes);
    this.maxMessageBytes = options.maxReceiveMessageBytes;
    this.keptMessageBytes = options.keptMessageBytes;
    this.maxGenericBytes = Math.min(this.maxMessageBytes, this.keptMessageBytes - 1);
    this.receiveTimeoutMs = options.receiveTimeoutMs ?? DEFAULT_RECEIVE_TIMEOUT_MS;
  }

  /** Number of unary calls whose handler has not answered yet. */
  get running(): number {
    return this.#running;
  }

  started(): void {
    this.#running++;
  }

  ended(): void {
    this.#running--;
    checkInvariant(this.#running >= 0, 'a call ends only once');
    if (this.#running === 0) this.onIdle?.();
  }

  budgetOf(stream: ServerStream): ReceiveBudget {
    let budget = this.#budgets.get(stream.connection);
    if (budget === undefined) {
      const { connection } = stream;
      budget = new ReceiveBudget(Math.max(2 * this.keptMessageBytes, MIN_RECEIVE_BUDGET), (bytes) =>
        connection.addHeldBytes(bytes),
      );
      this.#budgets.set(connection, budget);
    }
    return budget;
  }

  /** Remembers the call of `stream`, whose response is sent next. */
  rememberAnswered(stream: ServerStream, listener: ResetListener): AnsweredCall {
    const { connection, id } = stream;
    let answered = this.#answeredCalls.get(connection);
    if (answered === undefined) {
      answered = new AnsweredCalls();
      this.#answeredCalls.set(connection, answered);
    }
    const call = answered.add(id, listener);
    stream.state = call;
    return call;
  }

  /** The caller has reset a call whose response was sent. */
  resetAnswered(connection: ServerConnection, streamId: number): void {
    this.#answeredCalls.get(connection)?.reset(streamId);
  }

  /** Counts a new call of an auxiliary method. Returns false if its connection has too many open calls. */
  tryBeginGenericCall({ connection }: ServerStream): boolean {
    const open = this.#genericCalls.get(connection) ?? 0;
    if (open >= MAX_AUXILIARY_CALLS) return false;
    this.#genericCalls.set(connection, open + 1);
    connection.addHeldBytes(AUXILIARY_CALL_BYTES);
    return true;
  }

  genericCallEnded({ connection }: ServerStream): void {
    const open = (this.#genericCalls.get(connection) ?? 0) - 1;
    checkInvariant(open >= 0, 'an auxiliary call ends only once');
    this.#genericCalls.set(connection, open);
    connection.addHeldBytes(-AUXILIARY_CALL_BYTES);
  }

  readError(reader: MessageReader, result: ReadResult): GrpcError {
    switch (result) {
      case 'too large':
        return new GrpcError(
          STATUS.RESOURCE_EXHAUSTED,
          `Received message larger than max (${reader.announcedBytes} vs ${reader.maxMessageBytes})`,
        );
      case 'no room':
        return new GrpcError(
          STATUS.RESOURCE_EXHAUSTED,
          'incomplete messages on this connection use too much memory',
        );
      default:
        return new GrpcError(STATUS.INTERNAL, 'Received a message whose compressed flag is neither 0 nor 1');
    }
  }

  /** See {@link toGrpcError}. */
  toGrpcError(error: unknown): GrpcError {
    return toGrpcError(error, this.options.onError);
  }
}

/**
 * Number of answered calls that a connection remembers. Only resets that cross the response in transit matter: callers
 * do not reset a call whose response they have read.
 */
export const MAX_ANSWERED_CALLS = 256;

/** A call with a listener whose response was passed to its stream, which may still wait for flow control windows. */
class AnsweredCall extends FinishedCall {
  readonly streamId: number;
  /** Whether the response waits for flow control windows, so that the caller may still reset the stream itself. */
  isBlocked = false;
  #listener: ResetListener | undefined;

  constructor(streamId: number, listener: ResetListener) {
    super();
    this.streamId = streamId;
    this.#listener = listener;
  }

  override onStreamReset(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.onReset();
  }

  /** Called when the connection no longer finds the call by its stream id. */
  forget(): void {
    if (this.isBlocked) return;
    this.#listener?.onForgotten();
    this.#listener = undefined;
  }
}

/** The latest calls of a connection that have a listener and were answered. The oldest are forgotten first. */
class AnsweredCalls {
  /** A ring. */
  readonly #calls: AnsweredCall[] = [];
  #next = 0;

  add(streamId: number, listener: ResetListener): AnsweredCall {
    const call = new AnsweredCall(streamId, listener);
    this.#calls[this.#next]?.forget();
    this.#calls[this.#next] = call;
    this.#next = (this.#next + 1) % MAX_ANSWERED_CALLS;
    return call;
  }

  /** The caller has reset a stream that is closed. */
  reset(streamId: number): void {
    for (const call of this.#calls) if (call.streamId === streamId) call.onStreamReset();
  }
}

/**
 * Maximum number of messages of all connections that are handled in one turn of the event loop. Each takes at most a
 * few hundred microseconds.
 */
const MESSAGES_PER_TURN = 8;

/**
 * Schedules messages of rarely called services (health, reflection). Their handlers take much longer than a decision,
 * and a few kilobytes may contain thousands of queries. In one turn of the event loop, one message of a connection is
 * handled, and a few of all connections.
 */
export class GenericCallScheduler {
  readonly #turns: TurnScheduler<object>;
  /** Waiting calls, by connection. */
  readonly #calls = new Map<object, (() => void)[]>();
  /** Connections with a message that was handled in this turn. */
  readonly #served = new Set<object>();

  constructor(nextTurn?: NextTurn) {
    this.#turns = new TurnScheduler({
      budget: MESSAGES_PER_TURN,
      onTurn: () => this.#served.clear(),
      serve: (connection) => this.#serve(connection),
      nextTurn,
    });
  }

  /** Returns whether a message of `connection` may be handled now. If not, call {@link wait}. */
  tryStart(connection: object): boolean {
    if (this.#turns.remaining <= 0 || this.#served.has(connection)) return false;
    this.#served.add(connection);
    this.#turns.spend(1);
    return true;
  }

  /** Calls `resume` when it is the connection's turn. */
  wait(connection: object, resume: () => void): void {
    const others = this.#calls.get(connection);
    if (others === undefined) this.#calls.set(connection, [resume]);
    else others.push(resume);
    this.#turns.wait(connection);
  }

  #serve(connection: object): void {
    const calls = this.#calls.get(connection) ?? [];
    this.#calls.delete(connection);
    // Calls that have ended meanwhile do nothing.
    while (calls.length > 0 && !this.#served.has(connection)) (calls.shift() as () => void)();
    if (calls.length === 0) return;
    this.#calls.set(connection, [...calls, ...(this.#calls.get(connection) ?? [])]);
    this.#turns.wait(connection);
  }
}
