import { describe, expect, test } from '@jest/globals';
import {
  type AbandonReason,
  TurnQueue,
  type TurnQueueOptions,
  type Waiter,
} from '../../../src/service/turn-queue.js';
import { seededRandom } from '../../support/limiter/seeded-random.js';

/** A queue with a manual clock and manual turns. */
class Turns {
  micros = 0;
  readonly queue: TurnQueue;
  readonly log: string[] = [];
  #next: (() => void) | undefined;

  constructor(options: Partial<TurnQueueOptions> = {}) {
    this.queue = new TurnQueue({
      monotonicMicros: () => this.micros,
      nextTurn: (callback) => {
        if (this.#next !== undefined) throw new Error('a turn is waited for already');
        this.#next = callback;
      },
      ...options,
    });
  }

  /** Whether the queue has requested a turn. */
  get isBusy(): boolean {
    return this.#next !== undefined;
  }

  async turn(): Promise<void> {
    const next = this.#next;
    this.#next = undefined;
    next?.();
    await new Promise((resolve) => setImmediate(resolve));
  }

  async all(): Promise<void> {
    while (this.isBusy) await this.turn();
  }

  /** Work of `count` steps, each of which is logged. */
  *work(name: string, steps: number): Generator<void, string> {
    try {
      for (let i = 1; i <= steps; i++) {
        this.log.push(`${name}${i}`);
        if (i < steps) yield;
      }
      return name;
    } finally {
      this.log.push(`${name} over`);
    }
  }

  run(name: string, steps: number, waiter: Partial<Waiter> = {}): Promise<string | AbandonReason> {
    return this.queue.run(this.work(name, steps), {
      connection: name[0],
      cancelled: () => false,
      deadlineMicros: Number.POSITIVE_INFINITY,
      ...waiter,
    });
  }
}

describe('turns', () => {
  test("a turn is one step of one connection after another, and each connection's work is in order", async () => {
    const turns = new Turns();
    const done = Promise.all([turns.run('a', 3), turns.run('aa', 1), turns.run('b', 2)]);
    await turns.turn();
    expect(turns.log).toEqual(['a1']);
    await turns.all();
    expect(turns.log).toEqual(['a1', 'b1', 'a2', 'b2', 'b over', 'a3', 'a over', 'aa1', 'aa over']);
    expect(await done).toEqual(['a', 'aa', 'b']);
    expect(turns.queue.size).toBe(0);
  });

  test('500 costly requests of a connection delay another connection by one step only', async () => {
    const turns = new Turns();
    for (let i = 0; i < 500; i++) void turns.run(`costly ${i} `, 25);
    await turns.turn();
    const innocent = turns.run('innocent', 1);
    await turns.turn();
    await turns.turn();
    expect(turns.log.slice(-2)).toEqual(['innocent1', 'innocent over']);
    expect(await innocent).toBe('innocent');
    expect(turns.queue.size).toBe(500);
  });

  test('the work of few connections is in progress at a time, and all get their turns', async () => {
    const turns = new Turns();
    const names = Array.from({ length: 200 }, (_, i) => String.fromCharCode(0x4e00 + i));
    const done = Promise.all(names.flatMap((name) => [turns.run(name, 3), turns.run(`${name}x`, 3)]));
    let most = 0;
    while (turns.isBusy) {
      await turns.turn();
      const begun = turns.log.filter((line) => line.endsWith('1')).length;
      const over = turns.log.filter((line) => line.endsWith(' over')).length;
      most = Math.max(most, begun - over);
    }
    expect(most).toBeLessThanOrEqual(32);
    expect(await done).toHaveLength(400);
    const lastFirst = turns.log.indexOf(`${names.at(-1)}1`);
    const firstSecond = turns.log.indexOf(`${names[0]}x1`);
    expect(lastFirst).toBeLessThan(firstSecond);
  });

  test('work that fails rejects, and the next work runs', async () => {
    const turns = new Turns();
    const failing = turns.queue.run(
      // biome-ignore lint/correctness/useYield: it fails before it could.
      (function* (): Generator<void, string> {
        throw new Error('broken');
      })(),
      { connection: 'a', cancelled: () => false, deadlineMicros: Number.POSITIVE_INFINITY },
    );
    const next = turns.run('a', 1);
    const told = expect(failing).rejects.toThrow('broken');
    await turns.all();
    await told;
    expect(await next).toBe('a');
  });
});

describe('work that is given up', () => {
  test('ends at its deadline, whether it has begun or not, and not earlier', async () => {
    const turns = new Turns();
    const begun = turns.run('a', 100, { deadlineMicros: 1000 });
    const waiting = turns.run('aa', 100, { deadlineMicros: 2000 });
    const patient = turns.run('ab', 2, { deadlineMicros: 5000 });
    await turns.turn();
    turns.micros = 1000;
    await turns.turn();
    expect(await begun).toBe('late');
    expect(turns.log.slice(0, 3)).toEqual(['a1', 'a over', 'aa1']);
    turns.micros = 2000;
    await turns.all();
    expect(await waiting).toBe('late');
    expect(await patient).toBe('ab');
  });

  test('ends at its deadline with any number of waiting requests, and few end in each turn', async () => {
    const turns = new Turns();
    let late = 0;
    for (let i = 0; i < 1000; i++) {
      // The numbers are not in the order of the deadlines.
      const giveUpMicros = 1000 + ((i * 7919) % 1000);
      void turns.run(`a${i}`, 1000, { deadlineMicros: giveUpMicros }).then((result) => {
        expect(result).toBe('late');
        expect(turns.micros).toBeGreaterThanOrEqual(giveUpMicros);
        late++;
      });
    }
    let before = 0;
    for (let turn = 0; turn < 100; turn++) {
      turns.micros += 100;
      await turns.turn();
      expect(late - before).toBeLessThanOrEqual(50);
      before = late;
    }
    expect(late).toBe(1000);
    expect(turns.queue.size).toBe(0);
    expect(turns.isBusy).toBe(false);
  });

  test('costs nothing once no caller waits for it', async () => {
    const turns = new Turns();
    let gone = false;
    const begun = turns.run('a', 100, { cancelled: () => gone });
    const others = Array.from({ length: 300 }, (_, i) => turns.run(`a${i}`, 100, { cancelled: () => gone }));
    const last = turns.run('az', 1);
    await turns.turn();
    gone = true;
    await turns.all();
    expect(turns.log).toEqual(['a1', 'a over', 'az1', 'az over']);
    expect(new Set(await Promise.all([begun, ...others]))).toEqual(new Set(['cancelled']));
    expect(await last).toBe('az');
  });
});

describe('a full queue', () => {
  test('accepts no more requests than its maximum', async () => {
    const turns = new Turns({ maxJobs: 2 });
    const first = turns.run('a', 1);
    void turns.run('b', 1);
    expect(await turns.run('c', 1)).toBe('full');
    await turns.turn();
    expect(await first).toBe('a');
    const fits = turns.run('c', 1);
    await turns.all();
    expect(await fits).toBe('c');
  });

  test('accepts no more bytes than its maximum, and has space again after requests end', async () => {
    const turns = new Turns({ maxBytes: 1000 });
    void turns.run('a', 1, { bytes: 600 });
    const late = turns.run('b', 1, { bytes: 400, deadlineMicros: 10 });
    expect(turns.queue.hasRoomFor(1, 'c')).toBe(false);
    expect(await turns.run('c', 1, { bytes: 1 })).toBe('full');
    turns.micros = 10;
    await turns.turn();
    expect(await late).toBe('late');
    expect(turns.queue.hasRoomFor(1000, 'c')).toBe(true);
  });
});

test('connections that use all they can leave space for a connection that needs little', async () => {
  const turns = new Turns({ maxJobs: 100, maxBytes: 10_000 });
  const flood = async (name: string, bytes: number): Promise<number> => {
    for (let taken = 0; ; taken++) {
      const end = await Promise.race([turns.run(name, 1, { bytes }), Promise.resolve('waits')]);
      if (end === 'full') return taken;
    }
  };
  expect([await flood('a', 1), await flood('b', 1)]).toEqual([50, 25]);
  expect(turns.queue.hasRoomFor(1, 'c')).toBe(true);
  await turns.all();
  expect([await flood('a', 1000), await flood('b', 1000)]).toEqual([5, 3]);
  expect(turns.queue.hasRoomFor(1000, 'c')).toBe(true);
});

test.each([1, 2, 3])(
  'leaves no state behind after a mixed flood, and ends each request once: seed %d',
  async (seed) => {
    const random = seededRandom(seed);
    const maxBytes = 60_000;
    const turns = new Turns({ maxJobs: 150, maxBytes });
    const connections = Array.from({ length: 60 }, () => ({}));
    const ends = new Map<string, number>();
    let open = 0;
    function* work(steps: number, throws: boolean): Generator<void, string> {
      open++;
      try {
        for (let i = 1; i < steps; i++) yield;
        if (throws) throw new Error('a piece that throws');
        return 'done';
      } finally {
        open--;
      }
    }
    const pieces: Promise<void>[] = [];
    let asked = 0;
    while (asked < 2000) {
      for (let i = 0; i < 10; i++) {
        asked++;
        let isGone = false;
        const abandonMicros = random() < 0.3 ? turns.micros + 50 * random() : Number.POSITIVE_INFINITY;
        const run = turns.queue.run(work(1 + Math.floor(6 * random()), random() < 0.1), {
          connection: connections[Math.floor(random() ** 2 * connections.length)],
          cancelled: () => {
            isGone ||= turns.micros >= abandonMicros;
            return isGone;
          },
          deadlineMicros: random() < 0.5 ? turns.micros + 200 * random() : Number.POSITIVE_INFINITY,
          bytes: Math.floor(1000 * random()),
        });
        const note = (end: string): void => void ends.set(end, (ends.get(end) ?? 0) + 1);
        pieces.push(run.then(note, () => note('thrown')));
      }
      for (let i = 0; i < 3; i++) {
        turns.micros += 5;
        await turns.turn();
      }
    }
    await turns.all();
    await Promise.all(pieces);
    expect([...ends.keys()].sort()).toEqual(['cancelled', 'done', 'full', 'late', 'thrown']);
    expect([...ends.values()].reduce((sum, count) => sum + count, 0)).toBe(asked);
    expect([turns.queue.size, open]).toEqual([0, 0]);
    expect([maxBytes, maxBytes + 1].map((bytes) => turns.queue.hasRoomFor(bytes, {}))).toEqual([true, false]);
  },
);
