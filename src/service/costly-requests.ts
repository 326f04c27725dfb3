import type { RateLimitRequest, ServiceCodec } from '../codec/messages.js';
import type { RequestTrace } from './record/request-trace.js';
import type { Waiter } from './turn-queue.js';

/** Who asks, as far as a decision depends on it. */
export interface Caller {
  /** When the caller stops waiting, monotonic clock; Infinity if it never does. */
  readonly deadlineMicros: number;
  /** True once nobody waits for the answer any more. */
  cancelled(): boolean;
  /** Stands for the connection that the request came by. */
  readonly connection: unknown;
  /** How the log names the request; absent where no decisions are logged. */
  readonly requestName?: string;
  /** The trace that the request belongs to; absent where nobody asks for it. */
  readonly trace?: RequestTrace;
}

/** Waits as long as it takes, for nobody in particular. */
export const ANYBODY: Caller = {
  deadlineMicros: Number.POSITIVE_INFINITY,
  cancelled: () => false,
  connection: undefined,
};

/** The part of the time a caller has left that a request may work, and may wait for its turns. */
export const SHARE = 0.25;
/** The most that it may work, CPU microseconds. */
export const MAX_WORK_MICROS = 5000;
/** Steps (MatchWork) of a microsecond. */
export const STEPS_PER_MICRO = 200;
/**
 * The least that it waits, if the caller has so long: with less, a busy turn of the event loop would deny what is only
 * a little costly.
 */
export const LEAST_WAIT_MICROS = 5000;
const LEAST_WAIT_SHARE = 0.6;
/** How long requests wait whose callers wait for ever. */
export const WAIT_WITHOUT_DEADLINE_MICROS = 1_000_000;

/** Steps that matching a request may take whose caller waits for another `leftMicros`. */
export function stepsFor(leftMicros: number): number {
  return Math.max(0, Math.min(MAX_WORK_MICROS, leftMicros * SHARE)) * STEPS_PER_MICRO;
}

function waitFor(leftMicros: number): number {
  if (leftMicros === Number.POSITIVE_INFINITY) return WAIT_WITHOUT_DEADLINE_MICROS;
  return Math.max(leftMicros * SHARE, Math.min(LEAST_WAIT_MICROS, leftMicros * LEAST_WAIT_SHARE));
}

/** What a decoded entry takes in memory beside its texts, about; and a descriptor. */
const ENTRY_BYTES = 100;
const DESCRIPTOR_BYTES = 200;

/** What a decoded request takes in memory, about. */
export function bytesOf({ descriptors }: RateLimitRequest): number {
  let bytes = 0;
  for (let i = 0; i < descriptors.length; i++) {
    const entries = descriptors[i]?.entries ?? [];
    bytes += DESCRIPTOR_BYTES + entries.length * ENTRY_BYTES;
    for (let at = 0; at < entries.length; at++) {
      bytes += (entries[at]?.key.length ?? 0) + (entries[at]?.value.length ?? 0);
    }
  }
  return bytes;
}

/** How `caller` waits in the queue from `nowMicros` on, with so many bytes. */
export function waiterOf(caller: Caller, nowMicros: number, bytes: number): Waiter {
  return {
    connection: caller.connection,
    cancelled: () => caller.cancelled(),
    giveUpMicros: nowMicros + waitFor(caller.deadlineMicros - nowMicros),
    bytes,
  };
}

/** Whether a descriptor of a request has a limit override. */
export function hasOverride({ descriptors }: RateLimitRequest): boolean {
  return descriptors.some(({ limit }) => limit !== undefined);
}

/** A large message that waits: what is known of it at any time. */
export class LargeMessage {
  request: RateLimitRequest | undefined;
  private message: Uint8Array | undefined;
  private readonly codec: ServiceCodec;

  /** Copies `message`, which its owner writes to again. */
  constructor(message: Uint8Array, codec: ServiceCodec) {
    this.message = new Uint8Array(message);
    this.codec = codec;
  }

  /** Decodes it; throws DecodeError. */
  *decode(): Generator<void, RateLimitRequest> {
    const { codec, message } = this;
    if (message === undefined) throw new Error('a message is decoded once');
    const request = yield* codec.decodeSteps(message);
    this.request = request;
    this.message = undefined;
    return request;
  }

  /** Whether it may hold a limit override, as far as that is known without decoding it. */
  mayOverride(): boolean {
    if (this.request !== undefined) return hasOverride(this.request);
    return this.message === undefined || this.codec.mayOverride(this.message);
  }

  /** Undefined when it cannot be read. */
  domain(): string | undefined {
    if (this.request !== undefined) return this.request.domain;
    return this.message === undefined ? undefined : this.codec.domainOf(this.message);
  }
}
