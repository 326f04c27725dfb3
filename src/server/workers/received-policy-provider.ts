import type { PolicyProvider } from '../../config/policy-provider.js';
import { shareSecretsInTurns } from '../../config/read/secret-keys.js';
import { MinorCollector } from '../../config/threads/minor-collector.js';
import { type PolicyItem, PolicyReceiver } from '../../config/threads/policy-transfer.js';
import { openSlice } from '../../config/threads/slices.js';
import { CALENDARS } from '../../limiter/calendar.js';
import { systemClock } from '../../limiter/clock.js';
import type { PolicySet } from '../../policy/policy-set.js';
import { Signal } from '../../runtime/signal.js';
import { runInTurns, runToCompletion } from '../../runtime/turns.js';
import type { SlicedPolicies } from './messages.js';

/** Policies that the primary process sends to a worker, slice by slice. */
export class ReceivedPolicyProvider implements PolicyProvider {
  #current: PolicySet | undefined;
  /** Last received policies, which may not be in effect yet. */
  #latest: PolicySet | undefined;
  /** Receiver of the running transfer. */
  #receiver: PolicyReceiver | undefined;
  readonly #garbage = new MinorCollector();
  readonly #loaded = new Signal<boolean>();
  readonly onReload = this.#loaded.add;
  /**
   * Puts received policies into effect, one set after the other, and adds the secret keys of each domain to all other
   * domains.
   */
  #installing = Promise.resolve();

  constructor(initial: SlicedPolicies | undefined) {
    if (initial === undefined) return;
    this.begin();
    for (const slice of initial.slices) this.add(slice);
    // No request waits yet.
    runToCompletion(CALENDARS.prepare(systemClock.wallMicros()));
    this.#current = this.#finish(initial.version);
    this.#installing = shareSecretsInTurns(this.#current);
  }

  current(): PolicySet | undefined {
    return this.#current;
  }

  begin(): void {
    this.#receiver = new PolicyReceiver(this.#latest);
  }

  add(slice: Uint8Array): void {
    if (this.#receiver === undefined) return;
    for (const item of openSlice<PolicyItem>(slice)) this.#receiver.add(item);
    this.#garbage.slice();
  }

  end(version: string): void {
    if (this.#receiver === undefined) return;
    const policySet = this.#finish(version);
    this.#installing = this.#installing.then(() => this.#install(policySet));
  }

  #finish(version: string): PolicySet {
    const policySet = (this.#receiver as PolicyReceiver).finish(version);
    this.#latest = policySet;
    this.#receiver = undefined;
    return policySet;
  }

  async #install(policySet: PolicySet): Promise<void> {
    await runInTurns(CALENDARS.prepare(systemClock.wallMicros()));
    this.#current = policySet;
    this.#loaded.emit(true);
    await shareSecretsInTurns(policySet);
  }
}
