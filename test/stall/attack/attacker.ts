import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { repositoryRoot } from '../../support/process/tools.js';
import type { AttackOrder, AttackResult } from './attack.js';

type Said = 'stopped' | { readonly result: AttackResult };

/**
 * An attacker in a separate thread, so that the attacker and the measurement do not delay each other. Close it after
 * use.
 */
export class Attacker {
  readonly #thread = new Worker(join(repositoryRoot, 'build/test/stall/attack/attacker-thread.js'));
  #heard: (said: Said) => void = () => {};
  #failed: (error: Error) => void = () => {};

  constructor() {
    this.#thread.on('message', (said: Said) => this.#heard(said));
    this.#thread.on('error', (error) => this.#failed(error as Error));
  }

  /**
   * Attacks as ordered; resolves when nothing is under way any more, or that takes too long. Its connections stay open.
   */
  async attack(order: AttackOrder): Promise<void> {
    await this.#ask(order);
  }

  /** Ends the connections; resolves with what the attack came to. */
  async letGo(): Promise<AttackResult> {
    const said = await this.#ask('let go');
    if (said === 'stopped') throw new Error('the attacker stopped twice');
    return said.result;
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  #ask(order: AttackOrder | 'let go'): Promise<Said> {
    return new Promise((resolve, reject) => {
      this.#heard = resolve;
      this.#failed = reject;
      this.#thread.postMessage(order);
    });
  }
}
