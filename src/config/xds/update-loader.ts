import { type InEffect, inEffectOf, type LoadedPolicies, type LoadOptions } from '../files/load-policies.js';
import { LoadThread } from '../threads/load-thread.js';

/** Input of the thread, as plain data. */
export interface UpdateRequest extends InEffect {
  /** A DiscoveryResponse. */
  readonly bytes: Uint8Array;
  /** Digest of the last rejected response. */
  readonly rejected: string | undefined;
  readonly options: LoadOptions;
}

/** Length of the prefix of a gRPC message, in bytes. */
const PREFIX_BYTES = 5;

/** Loads updates in a worker thread while this thread continues; see {@link LoadThread} and readUpdate. */
export class UpdateLoader {
  readonly #options: LoadOptions;
  readonly #thread = new LoadThread('src/config/xds/update-thread.js');

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /**
   * Loads a DiscoveryResponse once. The bytes are transferred to the thread and are unusable here afterwards. A
   * response with the digest `rejected` is not loaded, see readResponse. `previous` is the result of the last valid
   * update, whose policies stay for unchanged domains. Rejects if the load could not run. Errors in the resources are
   * part of the result. Only one load may run at a time.
   */
  load(bytes: Uint8Array, previous: LoadedPolicies | undefined, rejected?: string): Promise<LoadedPolicies> {
    const own = ownBuffer(bytes);
    const request: UpdateRequest = { bytes: own, rejected, options: this.#options, ...inEffectOf(previous) };
    return this.#thread.load(request, previous, [own.buffer]);
  }

  /** Cancels the running load, which then rejects. */
  close(): void {
    this.#thread.close();
  }
}

/**
 * Returns bytes with their own memory, which can be transferred. Large messages have it already, because gRPC assembles
 * each of them in its own memory.
 */
function ownBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes;
  const own = buffer instanceof ArrayBuffer && buffer.byteLength <= bytes.byteLength + PREFIX_BYTES;
  return own ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}
