/**
 * The effect of a change on requests. `tightens`: a request that was allowed before could now be denied, or weir cannot
 * compare the two. `loosens`: no such request exists, and a request that was denied before could now be allowed.
 * `changes`: neither; only answers, statistics or logs differ.
 */
export type Effect = 'tightens' | 'loosens' | 'appears' | 'vanishes' | 'changes';

/** A difference between two policies. Never contains a secret. */
export interface PolicyChange {
  readonly domain: string;
  /** Path as in {@link Rule.path}; '' if the change applies to the whole domain. */
  readonly path: string;
  /** The setting that differs: a key of the policy file, or `domain`, `descriptor`, `order` or `place`. */
  readonly setting: string;
  readonly effect: Effect;
  /** Whether a request that was allowed before could now be denied; also set for `appears` and `vanishes`. */
  readonly tightens: boolean;
  /** The old and the new value as text; absent if the setting did not exist before, or no longer exists. */
  readonly before?: string;
  readonly after?: string;
  /** The change as a sentence, without its path and effect. */
  readonly text: string;
}

/** A change to which the caller adds the domain and the path. */
export type LocalChange = Omit<PolicyChange, 'domain' | 'path'>;

/** Number of changes per effect. */
export interface DiffSummary {
  readonly tighten: number;
  readonly loosen: number;
  readonly appear: number;
  readonly vanish: number;
  readonly change: number;
  /** Number of `appears` and of `vanishes` changes that also tighten. */
  readonly tightenByAppearing: number;
  readonly tightenByVanishing: number;
}

/** Counts changes by effect. */
export function summaryOf(changes: readonly PolicyChange[]): DiffSummary {
  const count = (effect: Effect, tightening = false): number =>
    changes.filter((change) => change.effect === effect && (change.tightens || !tightening)).length;
  return {
    tighten: count('tightens'),
    loosen: count('loosens'),
    appear: count('appears'),
    vanish: count('vanishes'),
    change: count('changes'),
    tightenByAppearing: count('appears', true),
    tightenByVanishing: count('vanishes', true),
  };
}

/** Describes a change from one shown value to another. */
export function shift(
  setting: string,
  effect: Effect,
  before: string,
  after: string,
  reason = '',
): LocalChange {
  const because = reason === '' ? '' : `; ${reason}`;
  const text = `${setting === 'limit' ? '' : `${setting}: `}${before} becomes ${after}${because}`;
  return { setting, effect, tightens: effect === 'tightens', before, after, text };
}

/** Tells whether two values have the same JSON, in any order of keys. */
export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one, sortedKeys) === JSON.stringify(other, sortedKeys);
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
