import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { BucketAnswer, BucketQuestion } from '../../admin/buckets/messages.js';
import { type AnswerOrFailure, ask } from '../ask/client.js';
import { Button, domainOptions, SelectField, TextField } from '../parts/controls.js';
import { Entries, Name, Sentence } from '../parts/texts.js';
import { connections, domainsInEffect, noChangeReason, now } from '../state.js';
import type { NamedEntry } from '../text/entry-lines.js';
import { countOf } from '../text/numbers.js';
import { briefText } from '../text/shown-text.js';
import { clockText } from '../text/times.js';
import { Limits } from './bucket-limits.js';
import { ChangeDialog, startChange } from './change-dialog.js';
import { EntriesField, enteredEntries, fillEntries } from './entries-form.js';

type Target = Pick<BucketQuestion, 'domain' | 'entries' | 'limit'>;

interface Result {
  /** The caller. Actions apply to this caller, even if the form has changed. */
  readonly target: Target;
  readonly answer: AnswerOrFailure<BucketAnswer>;
  readonly at: number;
}

/* The form keeps its content while another view is shown. */
const domain = signal('');
const limit = signal('');
const wrong = signal('');
const result = signal<Result | undefined>(undefined);
/** The last caller that the page asked about. */
let asked: Target | undefined;

/** Shows the buckets of a caller. `override`: the limit in its requests, such as `100/minute`. */
export function openBucket(ofDomain: string, entries: readonly NamedEntry[], override = ''): void {
  domain.value = ofDomain;
  limit.value = override;
  fillEntries(entries);
  location.hash = '#bucket';
  void submit();
}

async function submit(): Promise<void> {
  const entries = enteredEntries();
  wrong.value = typeof entries === 'string' ? entries : '';
  if (typeof entries === 'string') return;
  const chosen = domain.value || domainsInEffect.value[0];
  const override = limit.value.trim();
  await show({
    entries,
    ...(chosen !== undefined && { domain: chosen }),
    ...(override !== '' && { limit: override }),
  });
  document.getElementById('bucket-result-title')?.focus();
}

async function show(target: Target): Promise<void> {
  asked = target;
  const answer = await ask<BucketAnswer>('buckets', { action: 'show', ...target });
  if (target === asked) result.value = { target, answer, at: now.value };
}

/** Repeats the last question, even if its answer has not arrived. */
async function refresh(): Promise<void> {
  if (asked !== undefined) await show({ ...asked });
}

/** The limits of one caller, and the actions for the caller. */
export function Bucket() {
  const { value: session } = connections;
  useEffect(() => {
    if (result.value?.answer.ok === false) void refresh();
  }, [session]);
  return (
    <div class={result.value === undefined ? '' : 'bucket-columns'}>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p class="note">
          Enter the entries of a descriptor, either as Envoy sends them or as they are after{' '}
          <code>derive</code>. If you leave out some entries, weir shows the limits of every descriptor that
          contains the entries you entered.
        </p>
        <SelectField
          id="bucket-domain"
          label="Domain"
          chosen={domain}
          options={domainOptions(domain.value)}
        />
        <EntriesField domain={domain.value} />
        <TextField
          id="bucket-limit"
          label="Limit override in the request, if any (rare)"
          text={limit}
          placeholder="100/minute"
        />
        <button type="submit" class="primary">
          Show limits
        </button>
        <p class="problem-line" role="alert">
          {wrong}
        </p>
      </form>
      {result.value !== undefined && <Answer {...result.value} />}
      <ChangeDialog />
    </div>
  );
}

function Answer({ target, answer, at }: Result) {
  const release = (hold: string) =>
    startChange('Release the hold', { action: 'release', ...ofEntries(target), hold }, refresh);
  return (
    <div>
      <section class="card" aria-labelledby="bucket-result-title">
        <div class="card-head">
          <h3 id="bucket-result-title" tabIndex={-1}>
            Remaining
          </h3>
          <Button onClick={() => void refresh()}>Refresh</Button>
        </div>
        <div id="bucket-panel">
          {answer.ok ? (
            <>
              <p>
                Domain <Name text={answer.body.domain} />, entries <Entries entries={answer.body.entries} />,
                in <Name text={answer.body.store} />, at {clockText(at)}.
              </p>
              <Limits answer={answer.body} release={release} />
            </>
          ) : (
            <div class="problem">
              <Sentence text={answer.error} />
            </div>
          )}
        </div>
      </section>
      {answer.ok && answer.body.meets !== 'nothing' && (
        <Actions key={JSON.stringify(target)} target={target} answer={answer.body} />
      )}
    </div>
  );
}

/** Releases apply to entries, regardless of overrides. */
function ofEntries({ limit: _override, ...rest }: Target): Target {
  return rest;
}

interface ActionsProps {
  readonly target: Target;
  readonly answer: BucketAnswer;
}

function Actions({ target, answer: { buckets } }: ActionsProps) {
  const rule = useSignal('');
  const tokens = useRef<HTMLInputElement>(null);
  const rules = [...new Set(buckets.map((one) => one.rule))];
  const isEmpty = buckets.length === 0;
  const isHeld = buckets.some(({ holds }) => holds !== undefined);
  const start = (title: string, question: Omit<BucketQuestion, 'entries'>, about = target) =>
    void startChange(
      title,
      { ...about, ...question, ...(rule.value !== '' && { rule: rule.value }) },
      refresh,
    );
  const grant = (count: number) =>
    start(`Grant ${countOf(count, 'token')}`, { action: 'grant', tokens: count });
  return (
    <section id="bucket-actions" class="card" aria-labelledby="title-actions">
      <h3 id="title-actions">Actions for this caller</h3>
      <p class="note">
        weir shows the effect of an action before it makes the change. Nothing changes until you confirm.
      </p>
      <p class="problem-line">{noChangeReason}</p>
      <fieldset disabled={noChangeReason.value !== undefined}>
        <legend class="spoken">Actions</legend>
        <SelectField
          id="action-rule"
          label="Limits"
          chosen={rule}
          options={[['', 'all listed limits'], ...rules.map((one) => [one, briefText(one, 60)] as const)]}
        />
        <div class="row">
          <Button disabled={isEmpty} onClick={() => start('Fill up the buckets', { action: 'reset' })}>
            Fill up…
          </Button>
          <span>Fills the buckets and clears their debt.</span>
        </div>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            grant(tokens.current?.valueAsNumber ?? 0);
          }}
        >
          <button type="submit" id="grant-button" disabled={isEmpty}>
            Grant…
          </button>
          <label for="grant-tokens">Tokens</label>
          <input id="grant-tokens" ref={tokens} type="number" min="1" step="1" required defaultValue="10" />
          <span>Adds tokens up to the capacity.</span>
        </form>
        <div class="row">
          <Button
            disabled={!isHeld}
            onClick={() => start('Release all holds', { action: 'release', all: true }, ofEntries(target))}
          >
            Release…
          </Button>
          <span>Ends all holds: frees the slots of requests, and gives back what they reserved.</span>
        </div>
      </fieldset>
    </section>
  );
}
