import { nodeFaultOf, nodeFaultText } from '../node/faults.js';
import type { RedisSettingNames } from './connection-options.js';

/** Describes why a Redis is unavailable, and which variable to change. The description contains no password. */
export class Outage {
  readonly #prefix: string;
  /** Faults of this outage that were logged. */
  readonly #logged = new Set<string>();
  /** Whether a connection has worked. */
  hasWorked = false;

  constructor(names: RedisSettingNames | undefined) {
    this.#prefix = names?.prefix ?? 'REDIS';
  }

  /** Logs why Redis `name` cannot be used, once for each fault of an outage. Returns whether it was logged. */
  logOnce(reason: string, name: string, log: (level: 'error', sentence: string) => void): boolean {
    const { label } = nodeFaultOf(reason);
    if (this.#logged.has(label)) return false;
    this.#logged.add(label);
    log('error', `Redis ${name} cannot be used, and weir keeps retrying: ${this.#why(reason)}`);
    return true;
  }

  /** Ends this outage. Later failures belong to a new one. */
  end(): void {
    this.#logged.clear();
  }

  /** Returns the sentence for a caller that does not retry. */
  lastSentence(reason: string, name: string): string {
    return `Redis ${name} cannot be used: ${this.#why(reason)}`;
  }

  /** Returns the line for a new login that Redis `name` refused with `reason` on a connection that stays open. */
  renewalSentence(reason: string, name: string): string {
    return `Redis ${name} refuses the new login, and the connection keeps the previous login: ${this.#why(reason)}`;
  }

  #why(reason: string): string {
    return nodeFaultText(reason, this.#prefix);
  }
}
