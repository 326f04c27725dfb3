import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { StorageError } from '../../../src/limiter/bucket-store.js';
import type { Control, ControlResult } from '../../../src/limiter/control.js';
import { turn } from '../../../src/runtime/turns.js';
import type {
  ScriptReply,
  ScriptRequest,
} from '../../../src/storage/redis/script-requests/script-request.js';
import { runs } from '../../support/assert/runs.js';
import { ProcessBook } from '../../support/controls/books.js';
import { control } from '../../support/controls/controls.js';
import { RedisBench } from '../../support/limiter/test-stores.js';
import type { SingleRedisStore } from '../../support/redis/single-stores.js';

// Starting Redis may be slow on a busy machine.
jest.setTimeout(60_000);

const SECOND = 1_000_000;
const MAX_CONTROLS = 3;
const KEY = 'weir:1:{controls}';
const NEVER_MS = 2_000_000_000;

/** Result of a call: executed and answered, executed with a lost reply, or lost before execution. */
type Fate = 'answered' | 'unanswered' | 'lost';

const fates = fc.array(
  fc.oneof(
    { arbitrary: fc.constant<Fate>('answered'), weight: 6 },
    { arbitrary: fc.constantFrom<Fate>('unanswered', 'lost'), weight: 1 },
  ),
  { maxLength: 3 },
);
type Who = 0 | 1;

/** A step of the scenario. */
type Step =
  | { do: 'put'; who: Who; fates: Fate[]; tenant: string; lasts: number }
  | { do: 'end'; who: Who; fates: Fate[]; which: number }
  | { do: 'touch' | 'look'; who: Who; fates: Fate[] }
  | { do: 'away' | 'back'; who: Who }
  | { do: 'wait'; micros: number }
  // Redis is flushed, or a replica without the latest changes is promoted.
  | { do: 'flush' | 'replicate' | 'promote' };

const who = fc.constantFrom<Who>(0, 1);
const put = fc.record({
  ...{ do: fc.constant('put' as const), who, fates },
  tenant: fc.constantFrom('a', 'b', 'c', 'd'),
  lasts: fc.constantFrom(SECOND, 15 * SECOND, 3600 * SECOND),
});
const end = fc.record({ do: fc.constant('end' as const), who, fates, which: fc.nat(3) });
const ask = (what: 'touch' | 'look') => fc.record({ do: fc.constant(what), who, fates });
const leave = fc.record({ do: fc.constantFrom('away' as const, 'back' as const), who });
const wait = fc.record({
  do: fc.constant('wait' as const),
  micros: fc.constantFrom(SECOND, 10 * SECOND, 30 * SECOND),
});
const forget = fc.record({ do: fc.constantFrom('flush' as const, 'replicate' as const, 'promote' as const) });
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: put as fc.Arbitrary<Step>, weight: 6 },
  { arbitrary: end, weight: 4 },
  { arbitrary: ask('touch'), weight: 1 },
  { arbitrary: ask('look'), weight: 3 },
  { arbitrary: leave, weight: 2 },
  { arbitrary: wait, weight: 3 },
  { arbitrary: forget, weight: 2 },
);

/** The controls that Redis should contain, by tenant, and their ends. */
type Kept = Map<string, { readonly control: Control; readonly expiresAtMicros: number }>;

/** Two processes, one Redis, and its expected contents. */
class World {
  readonly books: readonly ProcessBook[];
  readonly #bench: RedisBench;
  readonly #redis: SingleRedisStore;
  #kept: Kept = new Map();
  #replica: { readonly dump: Buffer | null; readonly kept: Kept } | undefined;
  #fates: Fate[] = [];
  #underWay = 0;
  #touches = 0;
  /**
   * For each process: the buckets that the other process refilled, and the number of notices that it had received
   * before.
   */
  readonly #owed: { readonly key: string; readonly unknown: number }[][] = [[], []];

  constructor(bench: RedisBench, redis: SingleRedisStore) {
    this.#bench = bench;
    this.#redis = redis;
    const books: ProcessBook[] = [];
    for (const i of [0, 1]) {
      const ask = (question: ScriptRequest) => this.#ask(books[i]?.isUp ?? true, question);
      const options = { pollMs: NEVER_MS, maxControls: MAX_CONTROLS };
      books.push(new ProcessBook({ connected: true, runScript: ask }, bench.clock, options));
    }
    this.books = books;
  }

  async run(one: Step): Promise<void> {
    switch (one.do) {
      case 'wait':
        this.#bench.clock.advance(one.micros);
        return;
      case 'away':
      case 'back':
        (this.books[one.who] as ProcessBook).isUp = one.do === 'back';
        return;
      case 'flush':
        await this.#bench.redis.flushall();
        this.#kept = new Map();
        this.#oweNothing();
        return;
      case 'replicate':
        this.#replica = { dump: await this.#bench.redis.dumpBuffer(KEY), kept: new Map(this.#kept) };
        return;
      case 'promote':
        await this.#promote();
        return;
      default: {
        this.#fates = [...one.fates];
        const book = this.books[one.who] as ProcessBook;
        if (one.do === 'put')
          await this.#put(book, control(one.tenant, { durationMicros: one.lasts }), one.tenant);
        else if (one.do === 'end') await this.#end(book, one.which);
        else if (one.do === 'touch') await this.#touch(one.who);
        else if (book.isUp) book.comeUp();
        await this.#idle();
        this.#fates = [];
      }
    }
  }

  /** Expects that every process that can reach Redis knows its contents, and which buckets were refilled. */
  async compare(): Promise<void> {
    const now = this.#bench.clock.monotonicMicros();
    const shown = (kept: Iterable<readonly [string, number]>): string[] =>
      [...kept]
        .filter(([, ends]) => ends > now)
        .map(([id, ends]) => `${id} ${ends - now}`)
        .sort();
    const truth = shown(
      [...this.#kept.values()].map(({ control: { id }, expiresAtMicros }) => [id, expiresAtMicros]),
    );
    for (const [i, book] of this.books.entries()) {
      if (!book.isUp) continue;
      book.comeUp();
      await this.#idle();
      expect(
        shown([...book.heard.controls.values()].map(({ id, expiresAtMicros }) => [id, expiresAtMicros])),
      ).toEqual(truth);
      for (const { key, unknown } of this.#owed[i] as { key: string; unknown: number }[]) {
        expect(book.touchedUnknown > unknown || book.heard.touched.includes(key)).toBe(true);
      }
      (this.#owed[i] as unknown[]).length = 0;
    }
  }

  async #promote(): Promise<void> {
    if (this.#replica === undefined) return;
    const { dump, kept } = this.#replica;
    await this.#bench.redis.del(KEY);
    if (dump !== null) await this.#bench.redis.restore(KEY, 0, dump);
    this.#kept = new Map(kept);
    this.#oweNothing();
  }

  /** Forgets the refilled buckets, because their notices are lost together with them. */
  #oweNothing(): void {
    for (const owed of this.#owed) owed.length = 0;
  }

  async #put(book: ProcessBook, made: Control, tenant: string): Promise<void> {
    const isDone = this.#isDone(book);
    const expiresAtMicros = this.#bench.clock.monotonicMicros() + made.durationMicros;
    if (isDone) this.#dropEnded();
    const isFull = !this.#kept.has(tenant) && this.#kept.size >= MAX_CONTROLS;
    const result = await book.book.put(made);
    if (isDone && !isFull) this.#kept.set(tenant, { control: made, expiresAtMicros });
    this.#expectResult(book, result, isFull ? 'full' : 'done');
  }

  async #end(book: ProcessBook, which: number): Promise<void> {
    const id = book.heard.ids[which];
    if (id === undefined) return;
    const isDone = this.#isDone(book);
    const result = await book.book.end([id]);
    for (const [tenant, kept] of this.#kept) if (isDone && kept.control.id === id) this.#kept.delete(tenant);
    if (result === 'done') expect(book.heard.ids).not.toContain(id);
  }

  async #touch(from: number): Promise<void> {
    const [book, other] = [this.books[from], this.books[1 - from]] as [ProcessBook, ProcessBook];
    const key = `k${++this.#touches}`;
    if (this.#isDone(book)) this.#owed[1 - from]?.push({ key, unknown: other.touchedUnknown });
    await book.book.announceGrants([key]);
    expect(book.heard.touched).toContain(key);
  }

  #expectResult(book: ProcessBook, result: ControlResult, expected: ControlResult): void {
    if (result instanceof StorageError) expect(result.reason).toBe(book.isUp ? 'timeout' : 'disconnected');
    else expect(result).toBe(expected);
  }

  /** Returns whether Redis executes the next call. */
  #isDone(book: ProcessBook): boolean {
    return book.isUp && this.#fates[0] !== 'lost';
  }

  #dropEnded(): void {
    const now = this.#bench.clock.monotonicMicros();
    for (const [tenant, { expiresAtMicros }] of this.#kept)
      if (expiresAtMicros <= now) this.#kept.delete(tenant);
  }

  async #ask(isUp: boolean, question: ScriptRequest): Promise<ScriptReply> {
    if (!isUp) return new StorageError('disconnected', 'away');
    const fate = this.#fates.shift() ?? 'answered';
    if (fate === 'lost') return new StorageError('timeout', 'lost');
    this.#underWay++;
    const answer = await this.#redis.runScript(question);
    this.#underWay--;
    if (answer instanceof StorageError) throw answer;
    return fate === 'unanswered' ? new StorageError('timeout', 'not answered') : answer;
  }

  async #idle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet++) {
      await turn();
      if (this.#underWay > 0) quiet = 0;
    }
  }
}

describe('two processes that share a Redis', () => {
  const bench = new RedisBench('redis-server');
  beforeAll(() => bench.start());
  afterAll(() => bench.stop());

  test('know its contents, even if calls or data are lost', async () => {
    const redis = await bench.open();
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        await bench.redis.flushall();
        const world = new World(bench, redis);
        for (const [i, one] of steps.entries()) {
          await world.run(one);
          if (i % 4 === 3) await world.compare();
        }
        for (const book of world.books) book.isUp = true;
        await world.compare();
        await Promise.all(world.books.map(({ book }) => book.close()));
      }),
      runs(100),
    );
  });
});
