import { beforeEach, describe, expect, test } from '@jest/globals';
import { ReaderState, ReadScheduler } from '../../../src/h2/serving/read-scheduler.js';

let nowMs: number;
let ends: (() => void)[];
let turns: ReadScheduler;
/** Names of the readers, in the order of their reads. */
let log: string[];

/** A connection with pending work, in milliseconds. */
class Reader {
  readonly state = new ReaderState(() => this.#resumeReading());
  leftMs = 0;
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** Receives a chunk that takes `ms` to read. Returns true if part of it was read immediately. */
  comes(ms: number): boolean {
    this.leftMs += ms;
    const reads = turns.tryStart(this.state);
    if (reads) this.#read();
    if (this.leftMs > 0) turns.wait(this.state);
    return reads;
  }

  /** Reads in steps of a tenth of a millisecond, with a check of the clock after each. */
  #read(): void {
    log.push(this.#name);
    while (this.leftMs > 0) {
      nowMs += 0.1;
      this.leftMs = Math.round(10 * this.leftMs - 1) / 10;
      if (turns.readQuantum.isOver()) break;
    }
    turns.finish(this.state, 100);
  }

  #resumeReading(): boolean {
    this.#read();
    return this.leftMs > 0;
  }
}

beforeEach(() => {
  nowMs = 1000;
  ends = [];
  log = [];
  turns = new ReadScheduler(
    () => nowMs,
    (callback) => ends.push(callback),
  );
});

/** Runs one turn of the event loop. Returns who read, and the total time. */
function turn(): { readonly readers: string[]; readonly tookMs: number } {
  const beganMs = nowMs;
  log = [];
  for (const end of ends.splice(0)) end();
  return { readers: log, tookMs: nowMs - beganMs };
}

describe('ReadScheduler', () => {
  test('one connection reads one unit in a turn, however much data has arrived', () => {
    const flood = new Reader('flood');
    flood.comes(5);
    expect(nowMs - 1000).toBeCloseTo(1);
    for (let round = 0; round < 4; round++) expect(turn().tookMs).toBeCloseTo(1);
    expect(flood.leftMs).toBe(0);
    turn();
    expect([turns.waiting, ends.length]).toEqual([0, 0]);
  });

  test('sixteen connections at full speed take turns, a few in each turn', () => {
    const floods = Array.from({ length: 16 }, (_, index) => new Reader(`flood ${index}`));
    for (const flood of floods) flood.comes(10);
    for (let round = 0; round < 32; round++) {
      const { readers, tookMs } = turn();
      expect(tookMs).toBeLessThan(4);
      expect(new Set(readers).size).toBe(readers.length);
    }
    const left = floods.map(({ leftMs }) => leftMs);
    expect(Math.max(...left)).toBeLessThan(5);
    expect(Math.max(...left) - Math.min(...left)).toBeLessThan(1.1);
  });

  test('an ordinary caller is served immediately, or first in the next turn', () => {
    const floods = Array.from({ length: 16 }, (_, index) => new Reader(`flood ${index}`));
    for (const flood of floods) flood.comes(100);
    const caller = new Reader('caller');
    for (let round = 0; round < 20; round++) {
      turn();
      let waited = 0;
      if (!caller.comes(0.1)) for (waited = 1; !turn().readers.includes('caller'); waited++);
      // At first, no connection is known to be heavy.
      expect(waited).toBeLessThanOrEqual(round < 3 ? 3 : 1);
    }
  });

  test('a caller that uses less than the others is served before them', () => {
    const floods = Array.from({ length: 16 }, (_, index) => new Reader(`flood ${index}`));
    for (const flood of floods) flood.comes(1000);
    for (let round = 0; round < 20; round++) turn();
    const caller = new Reader('caller');
    for (let round = 0; round < 20; round++) {
      caller.comes(0.6);
      // The first part is read immediately, or in the next turn.
      let turnsTaken = 0;
      while (caller.leftMs > 0) {
        turn();
        turnsTaken++;
      }
      expect(turnsTaken).toBeLessThanOrEqual(3);
      while (turnsTaken++ < 8) turn();
    }
  });

  test('a flood in pieces of one unit has no advantage', () => {
    const floods = Array.from({ length: 8 }, (_, index) => new Reader(`flood ${index}`));
    const caller = new Reader('caller');
    for (let round = 0; round < 20; round++) {
      for (const flood of floods) if (flood.leftMs === 0) flood.comes(0.9);
      const atOnce = caller.comes(0.1);
      // In the first round, no connection is known to be heavy.
      const { readers } = turn();
      if (!atOnce && round > 0) expect(readers[0]).toBe('caller');
    }
  });

  test('bytes count, too: a connection that has read much waits for the next turn', () => {
    const reader = new Reader('reader');
    expect(turns.tryStart(reader.state)).toBe(true);
    expect(turns.finish(reader.state, 65_535)).toBe(false);
    expect(turns.tryStart(reader.state)).toBe(true);
    expect(turns.finish(reader.state, 1)).toBe(true);
    expect(turns.tryStart(reader.state)).toBe(false);
    turn();
    expect(turns.tryStart(reader.state)).toBe(true);
  });

  test('a unit ends by its byte count if the clock does not advance', () => {
    const reader = new Reader('reader');
    turns.tryStart(reader.state);
    let looks = 1;
    while (!turns.readQuantum.isOver()) looks++;
    expect(looks).toBeLessThan(1000);
  });

  test('a closed connection is not called again', () => {
    const [first, second] = [new Reader('first'), new Reader('second')];
    first.comes(9);
    second.comes(9);
    turns.remove(first.state);
    expect(turn().readers).toEqual(['second']);
  });
});
