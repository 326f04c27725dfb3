import { RE2Set } from 're2js';
import { EXCEEDED, type MatchWork } from '../match-work.js';

/**
 * Maximum memory for the states of an automaton, in bytes for each of its patterns. When this memory is used up, all
 * states are removed, and are rebuilt on demand.
 */
const MEMORY_PER_PATTERN = 8192;
const LEAST_MEMORY = 65_536;

/** Maximum steps (MatchWork) for building a state (bench: matchers). */
const STATE_STEPS = 80;
/** Steps for each instruction of the state, or of the previous one. */
const INSTRUCTION_STEPS = 24;
/** Steps for starting a set. */
const BEGIN_STEPS = 8;
/** Additional steps for a character beyond U+00FF, whose class requires a search. */
const WIDE_STEPS = 3;
/** The class of the end of the text. */
const END_OF_TEXT = -1;
/** Number of transitions between checks of the work budget. */
const TRANSITIONS_PER_CHECK = 1024;

/** A state of re2js's automaton. */
interface State {
  readonly nfaStates: readonly number[];
  /** By character class; null if not built yet. */
  readonly nextAnchored: readonly (State | null)[] | null;
  /** The patterns that match the text read so far, in order; those of the state after the end count. */
  readonly matchIDs: readonly number[];
}

/** The parts of re2js's automaton that {@link RegexSet} uses; its own loop can be neither counted nor interrupted. */
interface Automaton {
  readonly numClasses: number;
  /** Classes of the characters up to U+00FF. */
  readonly latin1Class: Int32Array;
  readonly failed: boolean;
  runeClass(rune: number): number;
  start(input: { context(at: number): number }, at: number): State | null;
  /** Returns the state after `rune`, which has the class `cls`; null if the memory is used up. */
  step(state: State, cls: number, rune: number, anchor: number): State | null;
  /** Removes all states; returns `state`, rebuilt. */
  resetCache(state: State): State | null;
}

/** The start of a string: all of re2js's conditions hold there, and it reads only the first one. */
const BEGINNING = { context: (): number => 0xff };

/** The progress of one set in one value. */
export interface ReadProgress {
  /** Number of UTF-16 units read. */
  at: number;
  state: object | undefined;
}

/**
 * Patterns that one automaton matches in one pass over a value; its states are built when values first need them. Every
 * built state and every read character is counted.
 */
export class RegexSet {
  private readonly automaton: Automaton;
  /** Before the first removal of states, building them is exempt from the work budget. */
  private hasDroppedStates = false;

  /** Throws re2js's error for invalid patterns. Takes 1 or 2 ms. */
  constructor(patterns: readonly string[]) {
    const memory = Math.max(LEAST_MEMORY, patterns.length * MEMORY_PER_PATTERN);
    const set = new RE2Set(RE2Set.ANCHOR_BOTH, 0, memory);
    for (const pattern of patterns) set.add(pattern);
    set.compile();
    this.automaton = set.dfa as unknown as Automaton;
    if (this.automaton.failed) throw new Error('re2js cannot build an automaton for these patterns');
  }

  /**
   * Returns the position of the first pattern that matches the whole value; undefined if none does. Returns
   * {@link EXCEEDED} if `work` is exhausted: `reading`, initially `{ at: 0, state: undefined }`, then contains the
   * progress, and a call with more work continues.
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
      // A transition that is not built yet.
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

  /** Follows existing transitions, up to `end` or one unit beyond it; stores the position in `reading.at`. */
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
    if (state === null) throw new Error("the automaton's memory budget is too small for its first state");
    return state;
  }

  /**
   * Builds the transition and, if needed, its target state. Takes its steps afterwards, so `work.remaining` may become
   * negative by one state.
   */
  private build(state: State, cls: number, rune: number, work: MatchWork): State {
    const { automaton } = this;
    const table = state.nextAnchored === null ? automaton.numClasses : 0;
    let next = automaton.step(state, cls, rune, RE2Set.ANCHOR_BOTH);
    if (next === null) {
      this.hasDroppedStates = true;
      const restored = automaton.resetCache(state);
      next = restored === null ? null : automaton.step(restored, cls, rune, RE2Set.ANCHOR_BOTH);
      if (next === null) throw new Error("the automaton's memory budget is too small for two states");
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
