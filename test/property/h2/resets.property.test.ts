import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import { expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { GrpcPeer } from '../../support/grpc/grpc-peer.js';

const CALLS = 6;

type Step = {
  readonly kind: 'call now' | 'call later' | 'answer' | 'answer without' | 'reset' | 'open window' | 'end';
  readonly call: number;
};

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    ...(['call now', 'call later', 'answer', 'answer without', 'reset', 'open window'] as const),
    ...(['call now', 'call later', 'answer', 'reset', 'end'] as const),
  ),
  call: fc.nat({ max: CALLS - 1 }),
});

/** A call, as the model knows it. */
interface ModelCall {
  readonly id: number;
  state: 'waits' | 'reset while it waits' | 'blocked' | 'sent' | 'over';
  setsOnReset: boolean;
}

/** A connection, and a model of the calls of `onReset` that it must make. */
class World {
  readonly #peer: GrpcPeer;
  readonly #isBlocked: boolean;
  readonly #calls: ModelCall[] = [];
  readonly #expected: number[] = [];
  #ended = false;

  /** @param isBlocked whether answers wait for the flow control window */
  constructor(isBlocked: boolean) {
    this.#isBlocked = isBlocked;
    this.#peer = new GrpcPeer(isBlocked ? 0 : 65_535);
  }

  async play({ kind, call: index }: Step): Promise<void> {
    const call = this.#calls.at(-1 - index);
    if (kind === 'call now' || kind === 'call later') this.#call(kind);
    else if (kind === 'end') this.#end();
    else if (call !== undefined) {
      if (kind === 'reset') this.#reset(call);
      else if (kind === 'open window') this.#openWindow(call);
      else await this.#answer(call, kind === 'answer');
    }
    expectSame(String(this.#peer.resets), String(this.#expected));
  }

  #call(kind: 'call now' | 'call later'): void {
    if (this.#ended) return;
    const id = 2 * this.#calls.length + 1;
    const isNow = kind === 'call now';
    const answered = this.#isBlocked ? 'blocked' : 'sent';
    this.#calls.push({ id, state: isNow ? answered : 'waits', setsOnReset: isNow });
    this.#peer.call(id, isNow ? 'now' : 'later');
  }

  #end(): void {
    this.#ended = true;
    for (const call of this.#calls) {
      if (call.state !== 'sent') this.#resetInModel(call);
    }
    this.#peer.connection.resetStreams();
  }

  #reset(call: ModelCall): void {
    if (this.#ended) return;
    this.#resetInModel(call);
    this.#peer.reset(call.id);
  }

  #resetInModel(call: ModelCall): void {
    if (call.state === 'waits') call.state = 'reset while it waits';
    if (call.state !== 'blocked' && call.state !== 'sent') return;
    call.state = 'over';
    if (call.setsOnReset) this.#expected.push(call.id);
  }

  #openWindow(call: ModelCall): void {
    if (this.#ended || call.state === 'waits') return;
    if (call.state === 'blocked') call.state = 'sent';
    this.#peer.openWindow(call.id);
  }

  async #answer(call: ModelCall, setsOnReset: boolean): Promise<void> {
    if (call.state === 'waits') {
      call.state = this.#isBlocked ? 'blocked' : 'sent';
      call.setsOnReset = setsOnReset;
    } else if (call.state === 'reset while it waits') {
      call.state = 'over';
      if (setsOnReset) this.#expected.push(call.id);
    }
    await this.#peer.answer(call.id, setsOnReset);
  }
}

describe('calls that are answered and reset in any order', () => {
  test('have onReset called once if they are reset and have set it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(step, { maxLength: 60 }), async (isBlocked, steps) => {
        const world = new World(isBlocked);
        for (const each of steps) await world.play(each);
      }),
      runs(1000),
    );
  });
});
