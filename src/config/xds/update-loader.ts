import { type InForce, inForceOf, type LoadedPolicies, type LoadOptions } from '../files/load-policies.js';
import { LoadThread } from '../threads/load-thread.js';

/** What the thread is asked to load, as plain data. */
export interface UpdateRequest extends InForce {
  /** A DiscoveryResponse. */
  readonly bytes: Uint8Array;
  /** Digest of the one that was rejected last. */
  readonly rejected: string | undefined;
  readonly options: LoadOptions;
}

/** What stands before a message of gRPC. */
const PREFIX_BYTES = 5;

/** Loads updates while this thread goes on; see {@link LoadThread} and readUpdate. */
export class UpdateLoader {
  readonly #options: LoadOptions;
  readonly #thread = new LoadThread('src/config/xds/update-thread.js');

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /**
   * Loads a DiscoveryResponse once, whose bytes are gone then: the thread has them. One with the digest `rejected` is
   * not loaded, see readResponse; `previous` is what the last good update gave, whose policies stay for domains that
   * did not change. Rejects when it could not be tried; errors in the resources are in what it resolves with. One load
   * at a time.
   */
  load(bytes: Uint8Array, previous: LoadedPolicies | undefined, rejected?: string): Promise<LoadedPolicies> {
    const own = ownBuffer(bytes);
    const request: UpdateRequest = { bytes: own, rejected, options: this.#options, ...inForceOf(previous) };
    return this.#thread.load(request, previous, [own.buffer]);
  }

  /** Ends what is running, which then rejects. */
  close(): void {
    this.#thread.close();
  }
}

/** Bytes that share their memory with nobody. Large messages do not: gRPC puts each together in memory of its own. */
function ownBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes;
  const own = buffer instanceof ArrayBuffer && buffer.byteLength <= bytes.byteLength + PREFIX_BYTES;
  return own ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}
