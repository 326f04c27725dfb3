/**
 * What a change does to requests. `tightens`: some request that passed before could now be denied. `loosens`: none
 * could, and some that was denied before could now pass. `changes`: neither, but answers, statistics or the like
 * differ.
 */
export type Effect = 'tightens' | 'loosens' | 'appears' | 'vanishes' | 'changes';

/** One difference between two policies. Holds no secret. */
export interface PolicyChange {
  readonly domain: string;
  /** As {@link Rule.path}; '' for what holds for the whole domain. */
  readonly path: string;
  /** What differs: a key of the policy file, or `domain`, `descriptor`, `order`, `place`. */
  readonly setting: string;
  readonly effect: Effect;
  /** Whether some request that passed before could now be denied; also of what appears or vanishes. */
  readonly tightens: boolean;
  /** As it was, and as it is: in words; absent where there was, or is, nothing. */
  readonly before?: string;
  readonly after?: string;
  /** The change as a sentence, without path and effect. */
  readonly text: string;
}

/** A change of which neither domain nor path is said yet. */
export type LocalChange = Omit<PolicyChange, 'domain' | 'path'>;

/** How many changes have which effect. */
export interface DiffSummary {
  readonly tighten: number;
  readonly loosen: number;
  readonly appear: number;
  readonly vanish: number;
  readonly change: number;
  /** Of those that appear or vanish, how many tighten. */
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

/** The effect of what neither appears nor vanishes; what does both counts as tightening. */
export function effectOf(tightens: boolean, loosens: boolean): Effect {
  if (tightens) return 'tightens';
  return loosens ? 'loosens' : 'changes';
}
