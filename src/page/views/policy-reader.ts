import { serverNow } from '../dom/texts.js';
import { nextSwitchAt } from '../text/limit-words.js';
import type { PageState } from './page-state.js';

/** Interval in milliseconds at which the page checks whether it must read the policies again. */
const CHECK_MS = 1000;
/**
 * Delay after a phase change before the policies are read again, in seconds. The clocks of the page and of weir may
 * differ slightly.
 */
const SETTLED_SECONDS = 1;
/** Maximum age of the policies while rules are visible, in milliseconds. */
const MAX_AGE_MS = 60_000;

/**
 * Keeps the policies of the page up to date. Events contain only versions, and phases of domains. The phase of a single
 * rule is read again when its schedule changes it.
 */
export class PolicyReader {
  readonly #state: PageState;
  readonly #changed: () => void;
  readonly #isWatched: () => boolean;
  #askedAt = 0;
  #nextSwitch = Number.POSITIVE_INFINITY;

  /**
   * @param changed called after each answer
   * @param isWatched returns whether rules are visible now
   */
  constructor(state: PageState, changed: () => void, isWatched: () => boolean) {
    this.#state = state;
    this.#changed = changed;
    this.#isWatched = isWatched;
    setInterval(() => this.#check(), CHECK_MS);
  }

  /** Reads the policies immediately. */
  async read(): Promise<void> {
    this.#askedAt = Date.now();
    // The answer includes all phase changes until now, unless the clocks differ.
    const now = serverNow() - SETTLED_SECONDS;
    this.#nextSwitch = Number.POSITIVE_INFINITY;
    await this.#state.readPolicies();
    const { policies } = this.#state;
    if (policies !== undefined) this.#nextSwitch = nextSwitchAt(policies, now);
    this.#changed();
  }

  #check(): void {
    if (document.hidden || !this.#state.isConnected) return;
    const hasSwitched = serverNow() >= this.#nextSwitch + SETTLED_SECONDS;
    const isOld = this.#isWatched() && Date.now() - this.#askedAt >= MAX_AGE_MS;
    if (hasSwitched || isOld) void this.read();
  }
}
