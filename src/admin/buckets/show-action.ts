import type { Control, IdentityPart } from '../../limiter/control.js';
import type { Entry } from '../../limiter/entry.js';
import { sha256Hex } from '../../policy/names/sha256.js';
import { findLimits } from './found-limits.js';
import type { BucketAnswer } from './messages.js';
import {
  answerTo,
  type CallerQuestion,
  planSource,
  type QuestionContext,
  QuestionFailure,
  type QuestionResult,
} from './question-context.js';
import { notAsked, showBuckets } from './shown-buckets.js';
import { listedControls, shownControl } from './shown-controls.js';

/** Maximum number of controls in an answer about buckets. */
const MAX_CONTROLS_SHOWN = 100;

/**
 * Runs `show`: returns the limits that apply or could apply to a descriptor, the levels of their buckets, and its
 * controls.
 */
export async function answerShow(asked: CallerQuestion, context: QuestionContext): Promise<QuestionResult> {
  const { question, policy } = asked;
  const { slices, store } = context;
  const found = await slices.run(findLimits(planSource(context, policy), question));
  if (typeof found === 'string') return new QuestionFailure(400, found);
  const { meets, entries, limits, more, notes } = found;
  const { buckets, failure } = await showBuckets(limits, context);
  if (failure !== undefined) return new QuestionFailure(503, notAsked(failure));
  const controls = await controlsFor(policy.domain, entries, context);
  return answerTo(asked, policy, store.name, entries, { meets, buckets, more, notes, ...controls });
}

/** Returns the controls whose identity contains all of the entries, or is contained in them. */
export async function controlsFor(
  domain: string,
  entries: readonly Entry[],
  { slices, clock, controls }: QuestionContext,
): Promise<Pick<BucketAnswer, 'controls' | 'more_controls'>> {
  const isConcerned = concerns(entries);
  const found = await slices.run(
    controls.filter((control) => control.domain === domain && isConcerned(control)),
  );
  const now = clock.monotonicMicros();
  const listed = listedControls(found, MAX_CONTROLS_SHOWN);
  return {
    controls: listed.map((control) => shownControl(control, now)),
    more_controls: found.length - listed.length,
  };
}

/** Returns a test whether a control's identity contains all entries or is contained in them. */
function concerns(entries: readonly Entry[]): (control: Control) => boolean {
  const there = entries.map(({ key, value }) => ({ key, value, digest: sha256Hex(value) }));
  return ({ identity }) => {
    const isThere = (part: IdentityPart): boolean =>
      there.some(
        ({ key, value, digest }) => part.key === key && part.value === (part.secret ? digest : value),
      );
    const named = identity.filter(isThere).length;
    return named === identity.length || named === there.length;
  };
}
