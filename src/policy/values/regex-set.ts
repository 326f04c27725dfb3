import { RE2Set } from 're2js';
import { EXCEEDED, type MatchWork } from '../match-work.js';

/**
 * What the states of an automaton may take for each of its patterns, in bytes; without room for more all of them are
 * dropped, and built anew as needed.
 */
const MEMORY_PER_PATTERN = 8192;
const LEAST_MEMORY = 65_536;

/** Steps (MatchWork) that it takes to build a state, at most (bench: matchers). */
const STATE_STEPS = 80;
/** And for each instruction that the state, or the one before it, is at. */
const INSTRUCTION_STEPS = 24;
/** What it takes to ask a set at all. */
const BEGIN_STEPS = 8;
/** A character beyond U+00FF takes so many more: its class is looked for. */
const WIDE_STEPS = 3;
/** The class of no character: the end of the text. */
const END_OF_TEXT = -1;
/** So many transitions between looks at what is left. */
const TRANSITIONS_PER_CHECK = 1024;

/** A state of re2js's automaton. */
interface State {
  readonly nfaStates: readonly number[];
  /** By class of characters; null where it is not built yet. */
  readonly nextAnchored: readonly (State | null)[] | null;
  /** The patterns that match what was read, in order; those of the state after the end count. */
  readonly matchIDs: readonly number[];
}

/** The parts of re2js's automaton that {@link RegexSet} works with; its own loop counts nothing and cannot be left. */
interface Automaton {
  readonly numClasses: number;
  /** Classes of the characters up to U+00FF. */
  readonly latin1Class: Int32Array;
  readonly failed: boolean;
  runeClass(rune: number): number;
  start(input: { context(at: number): number }, at: number): State | null;
  /** The state after `rune`, which is of class `cls`; null when there is no room for it. */
  step(state: State, cls: number, rune: number, anchor: number): State | null;
  /** Drops every state; returns `state` built anew. */
  resetCache(state: State): State | null;
}

/** A place at the beginning of a text: all of re2js's conditions hold there, and it asks for no more than the first. */
const BEGINNING = { context: (): number => 0xff };

/** How far one value has been read by one set. */
export interface ReadProgress {
  /** UTF-16 units read. */
  at: number;
  state: object | undefined;
}

/**
 * Patterns that are matched in one pass over a value, by one automaton whose states are built when values first need
 * them. Every state built and every character read is counted.
 */
export class RegexSet {
  private readonly automaton: Automaton;
  /** Until states are dropped for the first time, building them is an investment. */
  private hasDroppedStates = false;

  /** Throws what re2js throws for patterns that are wrong. Takes a millisecond or two. */
  constructor(patterns: readonly string[]) {
    const memory = Math.max(LEAST_MEMORY, patterns.length * MEMORY_PER_PATTERN);
    const set = new RE2Set(RE2Set.ANCHOR_BOTH, 0, memory);
    for (const pattern of patterns) set.add(pattern);
    set.compile();
    this.automaton = set.dfa as unknown as Automaton;
    if (this.automaton.failed) throw new Error('re2js has no automaton for these patterns');
  }

  /**
   * The place of the first pattern that matches the whole value, undefined when none does. {@link EXCEEDED} when `work`
   * does not last: `reading`, which begins as `{ at: 0, state: undefined }`, says then how far it has come, and a call
   * with more work goes on there.
   */
  first(value: string, work: MatchWork, reading: ReadProgress): number | undefined | typeof EXCEEDED {
    let state = (reading.state as State | undefined) ?? this.beginning(work);
    let at = reading.at;
    const length = value.length;
    while (at < length) {
      if (work.remaining <= 0) return pause(reading, at, state);
      const end = Math.min(length, at + Math.min(TRANSITIONS_PER_CHECK, work.remaining));
      const from = at;
      state = this.read(value, at, end, state, reading, work);
      at = reading.at;
      work.remaining -= at - from;
      if (state.nfaStates.length === 0) return undefined;
      if (at >= end) continue;
      // A transition that nobody has taken yet.
      if (work.remaining <= 0) return pause(reading, at, state);
      const rune = value.codePointAt(at) as number;
      state = this.build(state, this.automaton.runeClass(rune), rune, work);
      at += rune > 0xffff ? 2 : 1;
      if (state.nfaStates.length === 0) return undefined;
    }
    if (work.remaining <= 0) return pause(reading, at, state);
    const last = state.nextAnchored?.[this.automaton.numClasses] ?? null;
    const end = last ?? this.build(state, this.automaton.numClasses, END_OF_TEXT, work);
    return end.matchIDs[0];
  }

  /** Follows transitions that are there, up to `end` or a unit beyond it; leaves in `reading.at` where it stopped. */
  private read(
    value: string,
    from: number,
    end: number,
    first: State,
    reading: ReadProgress,
    work: MatchWork,
  ): State {
    const { latin1Class } = this.automaton;
    let state = first;
    let at = from;
    let wide = 0;
    while (at < end) {
      const unit = value.charCodeAt(at);
      const isLatin1 = unit <= 0xff;
      const rune = isLatin1 ? unit : (value.codePointAt(at) as number);
      const cls = isLatin1 ? (latin1Class[unit] as number) : this.automaton.runeClass(rune);
      if (!isLatin1) wide++;
      const table = state.nextAnchored;
      if (table === null) break;
      const next = table[cls] as State | null;
      if (next === null) break;
      state = next;
      at += rune > 0xffff ? 2 : 1;
      if (state.nfaStates.length === 0) break;
    }
    reading.at = at;
    work.remaining -= wide * WIDE_STEPS;
    return state;
  }

  private beginning(work: MatchWork): State {
    work.remaining -= BEGIN_STEPS;
    const state = this.automaton.start(BEGINNING, 0);
    if (state === null) throw new Error('no room for the first state of an automaton');
    return state;
  }

  /**
   * Builds the transition and, if need be, the state it leads to. Takes its steps afterwards: `work.left` may be below
   * 0 then, by one state.
   */
  private build(state: State, cls: number, rune: number, work: MatchWork): State {
    const { automaton } = this;
    const table = state.nextAnchored === null ? automaton.numClasses : 0;
    let next = automaton.step(state, cls, rune, RE2Set.ANCHOR_BOTH);
    if (next === null) {
      this.hasDroppedStates = true;
      const restored = automaton.resetCache(state);
      next = restored === null ? null : automaton.step(restored, cls, rune, RE2Set.ANCHOR_BOTH);
      if (next === null) throw new Error('no room for two states of an automaton');
    }
    const steps = STATE_STEPS + table + INSTRUCTION_STEPS * (state.nfaStates.length + next.nfaStates.length);
    if (this.hasDroppedStates) work.remaining -= steps;
    else work.spendOnce(steps);
    return next;
  }
}

function pause(reading: ReadProgress, at: number, state: State): typeof EXCEEDED {
  reading.at = at;
  reading.state = state;
  return EXCEEDED;
}
