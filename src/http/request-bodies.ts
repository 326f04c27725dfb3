import type { IncomingMessage, ServerResponse } from 'node:http';
import { IdleWait } from '../runtime/idle-wait.js';

/** Why the body of a request could not be read. */
export type BodyReadFailure = 'draining' | 'busy' | 'too large' | 'gone';

/** Maximum bytes of bodies that one port holds together. Further requests are refused. */
export const MAX_HELD_BODY_BYTES = 16 * 1024 * 1024;
const FIRST_BUFFER_BYTES = 1024;

/** Reads request bodies within limits, and tracks the requests that are not answered yet. */
export class RequestBodies {
  readonly #maxHeldBytes: number;
  #running = 0;
  #heldBytes = 0;
  #draining = false;
  readonly #idle = new IdleWait(() => this.#running === 0);

  constructor(maxHeldBytes = MAX_HELD_BODY_BYTES) {
    this.#maxHeldBytes = maxHeldBytes;
  }

  /** Reads the body of `request`. The request counts as running until `response` is sent or lost. */
  async read(
    request: IncomingMessage,
    response: ServerResponse,
    maxBytes: number,
  ): Promise<Buffer | BodyReadFailure> {
    if (this.#draining) return 'draining';
    // Node.js enforces the length of the body, unless it is chunked.
    const length = Number(request.headers['content-length'] ?? 0);
    if (length > maxBytes) return 'too large';
    this.#running++;
    const body = new GrowingBuffer();
    response.once('close', () => {
      this.#running--;
      this.#heldBytes -= body.length;
      this.#idle.check();
    });
    return new Promise((resolve) => {
      const onData = (chunk: Buffer): void => {
        if (body.length + chunk.length > maxBytes) stop('too large');
        else if (this.#heldBytes + chunk.length > this.#maxHeldBytes) stop('busy');
        else {
          this.#heldBytes += chunk.length;
          body.add(chunk);
        }
      };
      const stop = (reason: BodyReadFailure): void => {
        request.off('data', onData);
        resolve(reason);
      };
      request.on('data', onData);
      request.once('end', () => resolve(body.bytes()));
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

/** Joins chunks. A list of Buffers would take a hundred times the memory of their content if each is one byte long. */
class GrowingBuffer {
  length = 0;
  #buffer = Buffer.allocUnsafe(0);

  add(chunk: Buffer): void {
    const end = this.length + chunk.length;
    if (end > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#buffer.length, end, FIRST_BUFFER_BYTES));
      this.#buffer.copy(larger, 0, 0, this.length);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.length);
    this.length = end;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }
}
