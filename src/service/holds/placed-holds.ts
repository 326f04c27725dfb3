import type { TokenHold } from './hold-token.js';
import { bytesOfName } from './late-ends.js';

/**
 * Maximum memory of the holds of answered requests that a reset would release, in bytes: 20,000 to 30,000 holds.
 */
export const MAX_PLACED_BYTES = 8 * 1024 * 1024;
/** Memory of a request, also of one that is forgotten, and of a hold without the name of its bucket. */
const REQUEST_BYTES = 160;
const HOLD_BYTES = 288;

/** The holds of an answered request. */
export interface PlacedRequest {
  readonly domain: string;
  readonly placedMicros: number;
  /** Empty after the request is forgotten. */
  holds: readonly TokenHold[];
}

/**
 * The latest requests with holds, of all connections together. The oldest are forgotten first. Callers choose the
 * number of their connections, and of the holds of a request, so bounds for each connection would not limit the memory.
 */
export class PlacedHolds {
  /** In the order of their arrival, from `#first`. */
  #requests: PlacedRequest[] = [];
  #first = 0;
  #bytes = 0;

  add(request: PlacedRequest): PlacedRequest {
    this.#requests.push(request);
    this.#bytes += REQUEST_BYTES + bytesOf(request);
    while (this.#bytes > MAX_PLACED_BYTES) {
      this.forget(this.#requests[this.#first++] as PlacedRequest);
      this.#bytes -= REQUEST_BYTES;
    }
    if (2 * this.#first > this.#requests.length) {
      this.#requests = this.#requests.slice(this.#first);
      this.#first = 0;
    }
    return request;
  }

  /** Forgets the holds of a request, and returns them. */
  forget(request: PlacedRequest): readonly TokenHold[] {
    const { holds } = request;
    this.#bytes -= bytesOf(request);
    request.holds = [];
    return holds;
  }
}

function bytesOf({ holds }: PlacedRequest): number {
  let bytes = 0;
  for (const { key } of holds) bytes += HOLD_BYTES + bytesOfName(key);
  return bytes;
}
