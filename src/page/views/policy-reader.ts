import { serverNow } from '../dom/texts.js';
import { nextSwitchAt } from '../text/limit-words.js';
import type { PageState } from './page-state.js';

/** How often it is looked whether the policies are to be asked for, ms. */
const LOOK_MS = 1000;
/** So long after a switch its rules are asked for, seconds: the clocks of the page and of weir differ a little. */
const SETTLED_SECONDS = 1;
/** The policies are asked for anew after so long while rules are seen, ms. */
const OLD_MS = 60_000;

/**
 * Keeps the policies of the page true. What weir tells by itself names versions and phases of domains only, so that
 * the phase of a single rule is asked for when its schedule switches.
 */
export class PolicyReader {
  readonly #state: PageState;
  readonly #changed: () => void;
  readonly #isWatched: () => boolean;
  #askedAt = 0;
  #nextSwitch = Number.POSITIVE_INFINITY;

  /**
   * @param changed told after each answer
   * @param isWatched whether rules are seen now
   */
  constructor(state: PageState, changed: () => void, isWatched: () => boolean) {
    this.#state = state;
    this.#changed = changed;
    this.#isWatched = isWatched;
    setInterval(() => this.#look(), LOOK_MS);
  }

  /** Asks at once. */
  async read(): Promise<void> {
    this.#askedAt = Date.now();
    // A switch up to now is in the answer, unless the clocks differ.
    const now = serverNow() - SETTLED_SECONDS;
    this.#nextSwitch = Number.POSITIVE_INFINITY;
    await this.#state.readPolicies();
    const { policies } = this.#state;
    if (policies !== undefined) this.#nextSwitch = nextSwitchAt(policies, now);
    this.#changed();
  }

  #look(): void {
    if (document.hidden || !this.#state.isHeard) return;
    const hasSwitched = serverNow() >= this.#nextSwitch + SETTLED_SECONDS;
    const isOld = this.#isWatched() && Date.now() - this.#askedAt >= OLD_MS;
    if (hasSwitched || isOld) void this.read();
  }
}
