import type { ServerConnection, ServerStream } from '../../h2/request-handler.js';
import { expectState } from '../../invariant.js';
import type { ResetListener } from '../../runtime/reset-listener.js';
import type { TimerSource } from '../../runtime/timer-source.js';
import { OpenStreams } from '../auxiliary-method.js';
import { GrpcError, type GrpcServerOptions, STATUS, toGrpcError } from '../grpc-server.js';
import { type AnsweredCall, AnsweredCalls } from './answered-calls.js';
import { AuxiliaryCallScheduler } from './auxiliary-call-scheduler.js';
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
export class CallContext {
  readonly options: GrpcServerOptions;
  readonly deadlines: DeadlineQueue;
  readonly inflater: Inflater;
  readonly auxiliaryScheduler = new AuxiliaryCallScheduler();
  readonly openStreams = new OpenStreams();
  readonly maxMessageBytes: number;
  /** See {@link GrpcServerOptions.keptMessageBytes}. */
  readonly keptMessageBytes: number;
  /** Maximum length of a message of an auxiliary call, in bytes. Of a longer one, only a part may be kept. */
  readonly maxAuxiliaryBytes: number;
  /** Maximum time for a unary request to arrive, in milliseconds. */
  readonly receiveTimeoutMs: number;
  /** Called when the last unary call of {@link started} has ended. */
  onIdle: (() => void) | undefined;
  readonly #budgets = new WeakMap<ServerConnection, ReceiveBudget>();
  readonly #auxiliaryCalls = new WeakMap<ServerConnection, number>();
  /** Only of connections that had a call with {@link CallInfo.resetListener}. */
  readonly #answeredCalls = new WeakMap<ServerConnection, AnsweredCalls>();
  #running = 0;

  constructor(options: GrpcServerOptions, timers: TimerSource) {
    this.options = options;
    this.deadlines = new DeadlineQueue(timers);
    this.inflater = new Inflater(options.keptMessageBytes);
    this.maxMessageBytes = options.maxReceiveMessageBytes;
    this.keptMessageBytes = options.keptMessageBytes;
    this.maxAuxiliaryBytes = Math.min(this.maxMessageBytes, this.keptMessageBytes - 1);
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
    expectState(this.#running >= 0, 'a call ends only once');
    if (this.#running === 0) this.onIdle?.();
  }

  /** Returns the budget for incomplete messages on the connection of `stream`. */
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
  tryBeginAuxiliaryCall({ connection }: ServerStream): boolean {
    const open = this.#auxiliaryCalls.get(connection) ?? 0;
    if (open >= MAX_AUXILIARY_CALLS) return false;
    this.#auxiliaryCalls.set(connection, open + 1);
    connection.addHeldBytes(AUXILIARY_CALL_BYTES);
    return true;
  }

  auxiliaryCallEnded({ connection }: ServerStream): void {
    const open = (this.#auxiliaryCalls.get(connection) ?? 0) - 1;
    expectState(open >= 0, 'an auxiliary call ends only once');
    this.#auxiliaryCalls.set(connection, open);
    connection.addHeldBytes(-AUXILIARY_CALL_BYTES);
  }

  /** Returns the error for a message that `reader` rejected. */
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
