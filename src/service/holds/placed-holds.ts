import { type Linked, LinkedList } from '../../runtime/linked-list.js';
import type { ResetListener } from '../../runtime/signal.js';
import type { TokenHold } from './hold-token.js';
import { bytesOfName } from './settlement-queue.js';

/**
 * Maximum memory of the holds that weir remembers so that a reset can release them, in bytes: 20,000 to 30,000 holds.
 */
export const MAX_PLACED_BYTES = 8 * 1024 * 1024;
/** Memory of a request, and memory of a hold without the name of its bucket. */
const REQUEST_BYTES = 160;
const HOLD_BYTES = 288;

const NO_HOLDS: readonly TokenHold[] = [];

/** The holds of a request that its caller may still reset. */
export class PlacedRequest implements ResetListener, Linked<PlacedRequest> {
  readonly domain: string;
  readonly connection: unknown;
  /** Monotonic time of the answer. */
  readonly placedMicros: number;
  readonly bytes: number;
  /** Empty once the request has been forgotten. */
  holds: readonly TokenHold[];
  list: LinkedList<PlacedRequest> | undefined = undefined;
  before: PlacedRequest | undefined = undefined;
  after: PlacedRequest | undefined = undefined;
  readonly #placed: PlacedHolds;

  constructor(
    placed: PlacedHolds,
    domain: string,
    connection: unknown,
    placedMicros: number,
    holds: readonly TokenHold[],
  ) {
    this.#placed = placed;
    this.domain = domain;
    this.connection = connection;
    this.placedMicros = placedMicros;
    this.holds = holds;
    this.bytes = bytesOf(holds);
  }

  onReset(): void {
    this.#placed.onReset(this);
  }

  onForgotten(): void {
    this.#placed.forget(this);
  }
}

/**
 * The latest requests with holds, over all connections. The oldest requests are forgotten first. A request is also
 * forgotten when its connection no longer remembers it. Callers choose how many connections they open and how many
 * holds a request has, so a bound for each connection would not limit the memory.
 */
export class PlacedHolds {
  /** Releases the holds of a request. */
  readonly onReset: (request: PlacedRequest) => void;
  readonly #requests = new LinkedList<PlacedRequest>();
  #bytes = 0;

  constructor(onReset: (request: PlacedRequest) => void) {
    this.onReset = onReset;
  }

  /** Adds the holds of a request that was answered at `placedMicros`. */
  add(domain: string, connection: unknown, placedMicros: number, holds: readonly TokenHold[]): PlacedRequest {
    const request = new PlacedRequest(this, domain, connection, placedMicros, holds);
    this.#requests.add(request);
    this.#bytes += request.bytes;
    while (this.#bytes > MAX_PLACED_BYTES) this.forget(this.#requests.first as PlacedRequest);
    return request;
  }

  /** Forgets the holds of a request, and returns them. */
  forget(request: PlacedRequest): readonly TokenHold[] {
    if (!this.#requests.delete(request)) return NO_HOLDS;
    const { holds } = request;
    this.#bytes -= request.bytes;
    request.holds = NO_HOLDS;
    return holds;
  }
}

function bytesOf(holds: readonly TokenHold[]): number {
  let bytes = REQUEST_BYTES;
  for (const { key } of holds) bytes += HOLD_BYTES + bytesOfName(key);
  return bytes;
}
