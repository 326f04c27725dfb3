import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { mapped } from '../../http/views/view-slices.js';
import { StorageError } from '../../limiter/bucket-store.js';
import {
  type ControlKind,
  type ControlResult,
  type LiveControl,
  MAX_CONTROLS,
} from '../../limiter/control.js';
import type { CompiledPolicy } from '../../policy/compiled-policy.js';
import { identityOf, identityText } from '../../policy/identity.js';
import { quantity } from '../../quantity.js';
import { MAX_KEY_SETS } from '../../service/controls/domain-controls.js';
import { countPossible } from './found-limits.js';
import type { BucketAction } from './messages.js';
import {
  answerTo,
  type CallerQuestion,
  failedChange,
  LOOK_CONTROLS,
  planSource,
  type QuestionContext,
  QuestionFailure,
  type QuestionResult,
} from './question-context.js';
import { parseDurationMicros, quotedText } from './read-question.js';
import { controlsFor } from './show-action.js';
import { listedControls, shownControl } from './shown-controls.js';

/** Maximum number of controls that `blocks` lists. Further ones are counted. */
export const MAX_CONTROLS_LISTED = 1000;
/** Milliseconds within which this process learns about a control that another process made. */
const PROPAGATION_MS = 1000;
const LOOK_AGAIN_MS = 50;
/** Maximum number of attempts to end a control that other processes keep replacing. */
const MAX_END_ATTEMPTS = 5;
const NOT_READ = 'Blocks and exemptions cannot currently be read from Redis';

const KINDS: Readonly<Partial<Record<BucketAction, ControlKind>>> = {
  block: 'block',
  unblock: 'block',
  allow: 'allow',
  disallow: 'allow',
};
const NAMES: Readonly<Record<ControlKind, string>> = { block: 'block', allow: 'exemption' };
const ENDED_BY: Readonly<Record<ControlKind, BucketAction>> = { block: 'unblock', allow: 'disallow' };

/** Runs `block` and `allow`: makes a control, which replaces a control with the same identity. */
export async function makeControl(asked: CallerQuestion, context: QuestionContext): Promise<QuestionResult> {
  const { question, policy, caller } = asked;
  const { store, clock, slices, controls } = context;
  const { entries = [], reason = '' } = question;
  const identity = identityOf(policy, entries);
  if (typeof identity === 'string') return new QuestionFailure(400, identity);
  const kind = KINDS[question.action] ?? 'block';
  const { domain } = policy;
  if (!context.index.hasRoomFor(domain, identity)) return new QuestionFailure(409, tooManyKeySets(domain));
  const earlier = await findEqual(asked, kind, context);
  const durationMicros = parseDurationMicros(question.for ?? '');
  const id = randomBytes(8).toString('hex');
  const control = { id, kind, domain, identity, reason, by: caller.by, durationMicros };
  const derived = policy.derived(entries);
  const known = typeof derived === 'symbol' ? [] : derived;
  const count = await slices.run(countPossible(planSource(context, policy), known));
  const beside = await controlsFor(domain, known, context);
  const isDry = question.dry_run === true;
  if (!isDry) {
    const failure = failureOf(await store.controls.put(control));
    if (failure !== undefined) return failure;
  }
  const now = clock.monotonicMicros();
  const made = shownControl(controls.get(id) ?? { expiresAtMicros: now + durationMicros, ...control }, now);
  const notes = [
    ...notesOnControl(kind, count, policy, context),
    ...(kind === 'allow' && beside.controls.some((other) => other.kind === 'block')
      ? ['A block also applies to some or all of these descriptors, and takes precedence.']
      : []),
  ];
  if (earlier !== undefined) {
    const left = quantity(Math.round((earlier.expiresAtMicros - now) / 1_000_000), 'second');
    notes.push(`This change replaces ${earlier.id}, which would have expired in ${left}.`);
  }
  // The answer to a dry run contains no ID, because the real control will have another one.
  return answerTo(asked, policy, store.name, known, {
    meets: count > 0 ? 'part' : 'nothing',
    controls: [isDry ? { ...made, id: '' } : made],
    notes,
  });
}

/** Runs `unblock` and `disallow`: ends a control before it expires. */
export async function endControl(
  asked: CallerQuestion<CompiledPolicy | undefined>,
  context: QuestionContext,
): Promise<QuestionResult> {
  const kind = KINDS[asked.question.action] ?? 'block';
  for (let attempt = 0; attempt < MAX_END_ATTEMPTS; attempt++) {
    const answered = await tryEnd(asked, kind, context);
    if (answered !== 'gone') return answered;
  }
  return new QuestionFailure(
    409,
    `other operators keep replacing this ${NAMES[kind]}; check the current state with weir bucket ` +
      'blocks, and try again',
  );
}

/** Ends the control once. Returns `gone` if it ended in the meantime and another control may have replaced it. */
async function tryEnd(
  asked: CallerQuestion<CompiledPolicy | undefined>,
  kind: ControlKind,
  context: QuestionContext,
): Promise<QuestionResult | 'gone'> {
  const { question, policy } = asked;
  const { store, clock } = context;
  const found = await retryUntilKnown(() => findToEnd(asked, kind, context), store.controls.isPersistent);
  if (found === undefined && !store.controls.isCurrent)
    return new QuestionFailure(503, `${NOT_READ}, so nothing was changed; try again`);
  if (found === undefined) return new QuestionFailure(404, notFound(asked, kind));
  if (typeof found === 'string') return new QuestionFailure(400, found);
  if (found.kind !== kind) {
    const what = `no ${NAMES[kind]} has the id ${quotedText(found.id)}`;
    return new QuestionFailure(404, `${what}; use ${ENDED_BY[found.kind]} for this id`);
  }
  const shown = shownControl(found, clock.monotonicMicros());
  if (question.dry_run !== true) {
    const result = await store.controls.end([found.id]);
    if (result === 'gone') return 'gone';
    const failure = failureOf(result);
    if (failure !== undefined) return failure;
  }
  const derived = policy?.derived(question.entries ?? []) ?? [];
  const entries = typeof derived === 'symbol' ? [] : derived;
  return answerTo(asked, policy, store.name, entries, { domain: found.domain, controls: [shown] });
}

/** Runs `blocks`: lists all current controls, or the controls of one domain. */
export async function listControls(
  asked: CallerQuestion<CompiledPolicy | undefined>,
  context: QuestionContext,
): Promise<QuestionResult> {
  const { domain } = asked.question;
  const { store, slices, controls, clock } = context;
  const found = await slices.run(
    controls.filter((control) => domain === undefined || control.domain === domain),
  );
  const now = clock.monotonicMicros();
  const listed = listedControls(found, MAX_CONTROLS_LISTED);
  return answerTo(asked, undefined, store.name, [], {
    controls: await slices.run(mapped(listed, (control) => shownControl(control, now))),
    more_controls: found.length - listed.length,
    notes: [
      ...(store.controls.isCurrent ? [] : [`${NOT_READ}, so this is the last known list.`]),
      ...(found.length > 0 ? memoryNotes(context) : []),
      ...(domain === undefined || asked.policy !== undefined || found.length > 0
        ? []
        : [`No policy in effect has the domain ${quotedText(domain)}.`]),
    ],
  });
}

function failureOf(result: Exclude<ControlResult, 'gone'>): QuestionFailure | undefined {
  if (result === 'done') return undefined;
  if (result instanceof StorageError) return failedChange(result, LOOK_CONTROLS);
  return new QuestionFailure(
    409,
    `the maximum of ${MAX_CONTROLS} blocks and exemptions is reached; end some blocks or exemptions ` +
      'with unblock or disallow (weir bucket blocks lists them)',
  );
}

function tooManyKeySets(domain: string): string {
  return (
    `the blocks and exemptions in ${quotedText(domain)} already use the maximum of ${MAX_KEY_SETS} ` +
    'different sets of keys. Use one of these sets, or end some blocks or exemptions with unblock or ' +
    'disallow (weir bucket blocks lists them)'
  );
}

function notesOnControl(
  kind: ControlKind,
  count: number,
  policy: CompiledPolicy,
  context: QuestionContext,
): readonly string[] {
  const sources = new Set(
    policy.steps.flatMap((step) => (step.kind === 'table' ? [step.source] : step.sources)),
  );
  const notes = [...memoryNotes(context)];
  if (count > 0) notes.push(`Affects ${quantity(count, 'limit')}.`);
  else if (kind === 'block')
    notes.push('No limit in the policy applies to these descriptors, but the block still denies them.');
  else
    notes.push(
      'No limit in the policy applies to these descriptors, so the exemption affects only overrides in requests.',
    );
  if (count === 0 && sources.size > 0) {
    notes.push(`Before matching, weir derives entries from ${[...sources].join(', ')}.`);
  }
  return notes;
}

function memoryNotes({ store }: QuestionContext): readonly string[] {
  if (store.controls.isPersistent) return [];
  return [
    'Buckets are in memory, so blocks and exemptions apply only to this process, and end when this process stops.',
  ];
}

function notFound({ question }: CallerQuestion<unknown>, kind: ControlKind): string {
  const which = question.id === undefined ? 'exactly these entries' : `the id ${quotedText(question.id)}`;
  return `no ${NAMES[kind]} has ${which}; run weir bucket blocks to list all blocks and exemptions`;
}

/** Returns the control to end, undefined if it is unknown, or the error of an invalid question. */
async function findToEnd(
  asked: CallerQuestion<CompiledPolicy | undefined>,
  kind: ControlKind,
  context: QuestionContext,
): Promise<LiveControl | string | undefined> {
  const { question, policy } = asked;
  const { id, domain } = question;
  if (id !== undefined) {
    const found = context.controls.get(id);
    return domain === undefined || found?.domain === domain ? found : undefined;
  }
  return policy === undefined ? undefined : findEqual({ question, policy }, kind, context);
}

/** Returns the control with the kind and exactly the identity of the question. */
async function findEqual(
  { question, policy }: Pick<CallerQuestion, 'question' | 'policy'>,
  kind: ControlKind,
  { slices, controls }: QuestionContext,
): Promise<LiveControl | undefined> {
  const identity = identityOf(policy, question.entries ?? []);
  if (typeof identity === 'string') return undefined;
  const text = identityText(identity);
  const [found] = await slices.run(
    controls.filter(
      (control) =>
        control.kind === kind && control.domain === policy.domain && identityText(control.identity) === text,
    ),
  );
  return found;
}

/** Returns the result of `find`. Retries for a short time, because another process may just have made the control. */
async function retryUntilKnown<Found>(
  find: () => Promise<Found | undefined>,
  waits: boolean,
): Promise<Found | undefined> {
  const until = performance.now() + PROPAGATION_MS;
  for (;;) {
    const found = await find();
    if (found !== undefined || !waits || performance.now() >= until) return found;
    await sleep(LOOK_AGAIN_MS);
  }
}
