import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { closeLater } from '../../support/process/close-later.js';
import { repositoryRoot } from '../../support/process/tools.js';
import type { AttackOrder, AttackResult } from './attack.js';

type Reply = 'stopped' | { readonly result: AttackResult };

/** An attacker in a separate thread, so that the attacker and the measurement do not delay each other. */
export class Attacker {
  readonly #thread = new Worker(join(repositoryRoot, 'build/test/attack/attacker/attacker-thread.js'));
  #onReply: (reply: Reply) => void = () => {};
  #onError: (error: Error) => void = () => {};

  constructor() {
    closeLater(this.#thread, (thread) => thread.terminate());
    this.#thread.on('message', (reply: Reply) => this.#onReply(reply));
    this.#thread.on('error', (error) => this.#onError(error as Error));
  }

  /**
   * Runs an attack. Resolves when all started data is sent and answered, or after a timeout. The connections stay open.
   */
  async attack(order: AttackOrder): Promise<void> {
    await this.#send(order);
  }

  /** Closes the connections. Resolves with the result of the attack. */
  async finish(): Promise<AttackResult> {
    const reply = await this.#send('finish');
    if (reply === 'stopped') throw new Error('the attacker stopped twice');
    return reply.result;
  }

  #send(order: AttackOrder | 'finish'): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#onReply = resolve;
      this.#onError = reject;
      this.#thread.postMessage(order);
    });
  }
}
