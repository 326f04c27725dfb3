import { identityOf, type Mutation } from './mutations.js';
import { roomOf } from './sample.js';

export type Outcome = 'killed' | 'survived' | 'timed out' | 'not run';

export interface MutationResult extends Omit<Mutation, 'start' | 'end' | 'replacement'> {
  readonly outcome: Outcome;
  /** Path and name of the failed test; undefined if the mutation was not killed. */
  readonly killedBy: string | undefined;
  readonly seconds: number;
}

export interface MutationResults {
  readonly seed: number;
  readonly minutes: number;
  /** Test files that fail without a mutation, and were therefore not used. */
  readonly failing: readonly string[];
  /** Test files that did not fit in the time limit of at least one mutation. */
  readonly slow: readonly string[];
  readonly mutations: readonly MutationResult[];
}

/** Describes a result in one line. */
export function describeResult(number: number, result: MutationResult): string {
  const { path, line, change, text, outcome, killedBy } = result;
  const by = killedBy === undefined ? '' : ` by ${killedBy}`;
  return `${number} ${path}:${line}: ${change} in "${text}": ${outcome}${by}`;
}

/** Returns a table of the outcomes of each room. The last column counts "timed out" as killed. */
export function tableOf(results: readonly MutationResult[]): string {
  const rooms = [...new Set(results.map(({ path }) => roomOf(path)))].sort();
  const row = (name: string, of: readonly MutationResult[]) => {
    const count = (outcome: Outcome) => of.filter((one) => one.outcome === outcome).length;
    const [killed, timedOut, survived] = [count('killed'), count('timed out'), count('survived')];
    const ran = killed + timedOut + survived;
    const share = ran === 0 ? '-' : `${Math.round((100 * (killed + timedOut)) / ran)} %`;
    return [name, of.length, killed, timedOut, survived, count('not run'), share];
  };
  const rows = [
    ['room', 'mutations', 'killed', 'timed out', 'survived', 'not run', 'share killed'],
    ...rooms.map((room) =>
      row(
        room,
        results.filter(({ path }) => roomOf(path) === room),
      ),
    ),
    row('all', results),
  ];
  return rows.map(([name, ...cells]) => `${`${name}`.padEnd(10)}${pad(cells)}\n`).join('');
}

const pad = (cells: readonly unknown[]) => cells.map((cell) => `${cell}`.padStart(14)).join('');

/** Returns the mutations that survive in `current`, and that were killed or timed out in `earlier`. */
export function newSurvivors(
  earlier: readonly MutationResult[],
  current: readonly MutationResult[],
): MutationResult[] {
  const detected = earlier.filter(({ outcome }) => outcome === 'killed' || outcome === 'timed out');
  const identities = new Set(detected.map(identityOf));
  return current.filter((result) => result.outcome === 'survived' && identities.has(identityOf(result)));
}
