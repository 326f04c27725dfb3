import { identityOf, type Mutation } from './mutations.js';
import { roomOf } from './sample.js';

export type Outcome = 'killed' | 'survived' | 'timed out' | 'not run';

export interface MutationResult extends Omit<Mutation, 'start' | 'end' | 'replacement'> {
  readonly outcome: Outcome;
  /** The test that failed; undefined unless killed. */
  readonly killedBy: string | undefined;
  readonly seconds: number;
}

export interface MutationResults {
  readonly seed: number;
  readonly minutes: number;
  /** Test files that fail without a mutation, and so ran for none. */
  readonly failing: readonly string[];
  /** Test files that were left out of at least one run because the tests before them took the time. */
  readonly slow: readonly string[];
  readonly mutations: readonly MutationResult[];
}

/** Says in one line what became of a mutation. */
export function describeResult(number: number, one: MutationResult): string {
  const by = one.killedBy === undefined ? '' : ` by ${one.killedBy}`;
  return `${number} ${one.path}:${one.line}: ${one.change} in "${one.text}": ${one.outcome}${by}`;
}

/** Returns the table of outcomes by room. Timed out counts as killed in the last column. */
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

/** Returns the mutations that survive in `after` and that a test killed, or that timed out, in `before`. */
export function onlyAfterwards(
  before: readonly MutationResult[],
  after: readonly MutationResult[],
): MutationResult[] {
  const noticed = before.filter(({ outcome }) => outcome === 'killed' || outcome === 'timed out');
  const identities = new Set(noticed.map(identityOf));
  return after.filter((one) => one.outcome === 'survived' && identities.has(identityOf(one)));
}
