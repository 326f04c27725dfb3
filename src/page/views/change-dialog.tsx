import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { BucketAnswer, BucketQuestion } from '../../admin/buckets/messages.js';
import { type AnswerOrFailure, ask } from '../ask/client.js';
import { Button, useModal } from '../parts/controls.js';
import { Entries, Name, Sentence } from '../parts/texts.js';
import { announcement } from '../state.js';
import { Limits } from './bucket-limits.js';

/** A change that the dialog shows: first its effect, and after confirmation its result. */
interface Change {
  /** Title of the change: `Grant 5 tokens`. */
  readonly title: string;
  readonly question: BucketQuestion;
  /** Called after the change was made, or may have been made. */
  readonly done: () => Promise<void>;
  readonly phase: 'planned' | 'busy' | 'done';
  /** The effect or the result; absent until it is known. */
  readonly answer?: AnswerOrFailure<BucketAnswer>;
}

const change = signal<Change | undefined>(undefined);

/** Closes the dialog, for example because another dialog opens. */
export function closeChange(): void {
  change.value = undefined;
}

/** Shows the effect of a change, and carries the change out after confirmation. */
export async function startChange(
  title: string,
  question: BucketQuestion,
  done: Change['done'],
): Promise<void> {
  const planned: Change = { title, question, done, phase: 'planned' };
  change.value = planned;
  const answer = await ask<BucketAnswer>('buckets', { ...question, dry_run: true });
  // The user may have closed the dialog.
  if (change.value === planned) change.value = { ...planned, answer };
}

async function carryOut(planned: Change): Promise<void> {
  const busy: Change = { ...planned, phase: 'busy' };
  change.value = busy;
  const answer = await ask<BucketAnswer>('buckets', busy.question);
  const done: Change = { ...busy, phase: 'done', answer };
  if (change.value === busy) {
    change.value = done;
    return;
  }
  // The dialog was closed, and may show another change by now.
  announcement.value = `${titleOf(done)}.`;
  await done.done();
}

function titleOf({ title, phase, answer }: Change): string {
  if (answer === undefined) return `${title}: checking the effect…`;
  if (phase !== 'done') return answer.ok ? `${title}?` : `${title}: not possible`;
  if (answer.ok) return `Done: ${title.slice(0, 1).toLowerCase()}${title.slice(1)}`;
  return answer.isMaybeDone ? `${title}: outcome unknown` : `${title}: not done`;
}

/** The dialog of the current change. */
export function ChangeDialog() {
  const { value: shown } = change;
  const dialog = useModal(shown !== undefined);
  const heading = useRef<HTMLHeadingElement>(null);
  const title = shown === undefined ? '' : titleOf(shown);
  useEffect(() => {
    // The title is read first, and Tab continues from there.
    if (title !== '') heading.current?.focus();
  }, [title]);
  const close = async () => {
    const { value: last } = change;
    change.value = undefined;
    if (last?.phase === 'done') await last.done();
    // If the button that opened the dialog is gone, the heading of the view gets the focus.
    if (document.activeElement === document.body) document.getElementById('title-bucket')?.focus();
  };
  const isConfirmable = shown?.answer?.ok === true && shown.phase !== 'done';
  const isBusy = shown?.phase === 'busy';
  return (
    <dialog
      id="change"
      ref={dialog}
      aria-labelledby="change-title"
      onClose={() => void close()}
      onCancel={(event) => {
        // The result must be shown. Some browsers close a dialog anyway if Escape is pressed twice.
        if (isBusy) event.preventDefault();
      }}
    >
      <h2 id="change-title" tabIndex={-1} ref={heading}>
        {title}
      </h2>
      <div id="change-body">{shown !== undefined && <Body {...shown} />}</div>
      <p class="row">
        <Button disabled={isBusy} onClick={() => dialog.current?.close()}>
          {isConfirmable || shown?.answer === undefined ? 'Cancel' : 'Close'}
        </Button>
        {isConfirmable && (
          <Button class="primary" disabled={isBusy} onClick={() => void carryOut(shown)}>
            Confirm
          </Button>
        )}
      </p>
    </dialog>
  );
}

function Body({ phase, answer }: Change) {
  if (answer === undefined) return null;
  if (!answer.ok) {
    const look = ' Check whether the action took effect before you try again.';
    return <Sentence text={`${answer.error}${phase === 'done' && answer.isMaybeDone ? look : ''}`} />;
  }
  return (
    <>
      {phase !== 'done' && (
        <p>
          <strong>Nothing has changed yet.</strong> The action would have this effect:
        </p>
      )}
      <p>
        Domain <Name text={answer.body.domain} />, entries <Entries entries={answer.body.entries} />
      </p>
      <Limits answer={answer.body} />
    </>
  );
}
