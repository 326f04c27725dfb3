import type { IncomingMessage, ServerResponse } from 'node:http';
import { IdleWait } from '../runtime/idle-wait.js';
import { BodyBuffer } from './body-buffer.js';

/** Why the body of a request could not be read. */
export type BodyReadFailure = 'draining' | 'busy' | 'too large' | 'gone';

/** Limits of all requests with bodies on one port. Further requests are refused. */
export interface BodyLimits {
  readonly maxCalls: number;
  /** Maximum bytes of bodies held together. A single body may be longer. */
  readonly maxHeldBytes: number;
}

export const BODY_LIMITS: BodyLimits = { maxCalls: 1024, maxHeldBytes: 16 * 1024 * 1024 };

/** Reads request bodies within limits, and tracks the requests that are not answered yet. */
export class RequestBodies {
  readonly #limits: BodyLimits;
  #running = 0;
  #heldBytes = 0;
  #draining = false;
  readonly #idle = new IdleWait(() => this.#running === 0);

  constructor(limits: BodyLimits = BODY_LIMITS) {
    this.#limits = limits;
  }

  /** Reads the body of `request` in pieces. The request counts as running until `response` is sent or lost. */
  async read(
    request: IncomingMessage,
    response: ServerResponse,
    maxBytes: number,
  ): Promise<readonly Buffer[] | BodyReadFailure> {
    if (this.#draining) return 'draining';
    if (this.#running >= this.#limits.maxCalls) return 'busy';
    // Node.js enforces the length of the body, unless it is chunked.
    const length = Number(request.headers['content-length'] ?? 0);
    if (length > maxBytes) return 'too large';
    this.#running++;
    let pieces = new BodyBuffer();
    let size = 0;
    response.once('close', () => {
      this.#running--;
      this.#heldBytes -= size;
      this.#idle.check();
    });
    return new Promise((resolve) => {
      const onData = (chunk: Buffer): void => {
        const ofOthers = this.#heldBytes - size;
        const held = this.#heldBytes + chunk.length;
        if (size + chunk.length > maxBytes) stop('too large');
        else if (ofOthers > 0 && held > this.#limits.maxHeldBytes) stop('busy');
        else {
          size += chunk.length;
          this.#heldBytes = held;
          pieces.add(chunk);
        }
      };
      const stop = (reason: BodyReadFailure): void => {
        request.off('data', onData);
        pieces = new BodyBuffer();
        resolve(reason);
      };
      request.on('data', onData);
      request.once('end', () => resolve(pieces.end()));
      request.once('error', () => stop('gone'));
      request.once('close', () => stop('gone'));
    });
  }

  /** Refuses further requests. Resolves when no request is running, at most after `graceMs`. */
  drain(graceMs: number): Promise<void> {
    this.#draining = true;
    return this.#idle.wait(graceMs);
  }
}
