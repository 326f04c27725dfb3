import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { now } from '../state.js';
import type { DumpedPhase } from '../text/dumped-policy.js';
import type { NamedEntry } from '../text/entry-lines.js';
import { countText } from '../text/numbers.js';
import { futureSwitches, phaseWord, switchWords } from '../text/phases.js';
import { cutText, MAX_SHOWN_TEXT, visibleText } from '../text/shown-text.js';
import { relativeText, utcText } from '../text/times.js';
import type { TrafficLabel } from '../text/traffic-label.js';

/** Text that only screen readers read. */
export function Spoken({ children }: { readonly children: ComponentChildren }) {
  return <span class="spoken">{children}</span>;
}

/** A name or value from outside, isolated from the surrounding text direction, and shortened to `most` characters. */
export function Name({ text, most = MAX_SHOWN_TEXT }: { readonly text: string; readonly most?: number }) {
  return <bdi class="name">{text === '' ? '""' : visibleText(cutText(text, most))}</bdi>;
}

/** A name with a button that shows the rest of a long name. Buttons must not contain such a name. */
export function LongName({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const name = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (isWhole) name.current?.focus();
  }, [isWhole]);
  if (text.length <= MAX_SHOWN_TEXT) return <Name text={text} />;
  return (
    <span>
      <bdi class="name" ref={name} tabIndex={isWhole ? -1 : undefined}>
        {visibleText(isWhole ? text : cutText(text))}
      </bdi>{' '}
      {!isWhole && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          show all {countText(text.length)} characters
        </button>
      )}
    </span>
  );
}

/** Entries as `key=value`. */
export function Entries({ entries }: { readonly entries: readonly NamedEntry[] }) {
  return (
    <span class="entries">
      {entries.map(({ key, value }, at) => [
        at > 0 && ' ',
        <span key={`${at} ${key}`} class="entry">
          <Name text={key} />=<LongName text={value} />
        </span>,
      ])}
    </span>
  );
}

/** A time as its distance from now, such as `3 minutes ago`, with UTC in its title. */
export function Relative({ at }: { readonly at: number }) {
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={utcText(at)}>
      {relativeText(at, now.value)}
    </time>
  );
}

const SIGNS = { good: '●', bad: '▲', watch: '◆', none: '○' } as const;

/** A state as a sign, words and a color. The words alone are sufficient. */
export function State({ kind, text }: { readonly kind: keyof typeof SIGNS; readonly text: string }) {
  return (
    <span class={`state ${kind}`}>
      <Sign sign={SIGNS[kind]} />
      {text}
    </span>
  );
}

/** A sign that repeats what the text next to it says. */
export function Sign({ sign }: { readonly sign: string }) {
  return (
    <span class="sign" aria-hidden="true">
      {sign}
    </span>
  );
}

/** A state that is good or bad. */
export function Health({ isGood, good, bad }: { isGood: boolean; good: string; bad: string }) {
  return <State kind={isGood ? 'good' : 'bad'} text={isGood ? good : bad} />;
}

export function Phase({ phase }: { readonly phase: string }) {
  return <State kind={phase === 'active' ? 'good' : 'watch'} text={phaseWord(phase)} />;
}

/** The future changes of a schedule: their times, and the time until then. */
export function Switches({ phase }: { readonly phase: DumpedPhase }) {
  return (
    <>
      {futureSwitches(phase, now.value).map((change) => (
        <span key={change.to} class="mark">
          {switchWords(change)}, <Relative at={change.at} />
        </span>
      ))}
    </>
  );
}

/** A message from outside in full, with its line breaks. */
export function Sentence({ text }: { readonly text: string }) {
  return (
    <p class="sentence" dir="auto">
      {text.split('\n').map(visibleText).join('\n')}
    </p>
  );
}

/** The path of a rule, or a description of other requests in the history. */
export function Traffic({ path, special }: TrafficLabel) {
  return (
    <>
      {path !== undefined && <Name text={path} />}{' '}
      {special !== undefined && <em>{path === undefined ? special : `(${special})`}</em>}
    </>
  );
}

/** A term and its description, for a description list. */
export function Fact({ term, children }: { readonly term: string; readonly children: ComponentChildren }) {
  return (
    <>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </>
  );
}
