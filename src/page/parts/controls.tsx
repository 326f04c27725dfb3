import type { Signal } from '@preact/signals';
import type { ButtonHTMLAttributes, InputHTMLAttributes, JSX, RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { chooseRange, domainsInEffect, range } from '../state.js';
import { CHART_RANGES } from '../text/chart-range.js';
import { countText } from '../text/numbers.js';
import { briefText } from '../text/shown-text.js';

/** A button that submits no form. */
export function Button(props: ButtonHTMLAttributes) {
  return <button type="button" {...props} />;
}

interface PortionsProps<T> {
  readonly items: readonly T[];
  /** Class of the list. */
  readonly kind?: string;
  readonly item: (item: T) => JSX.Element;
}

/** Number of items that are shown at a time. */
const PORTION = 100;

/** A list: the first items immediately, and more when the user clicks a button, which moves the focus to them. */
export function Portions<T>({ items, kind = '', item }: PortionsProps<T>) {
  const [shown, setShown] = useState(PORTION);
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    if (shown === PORTION) return;
    const next = list.current?.children[shown - PORTION];
    next?.querySelector<HTMLElement>('summary, button, a')?.focus();
  }, [shown]);
  const left = items.length - shown;
  return (
    <>
      <ul class={kind} ref={list}>
        {items.slice(0, shown).map(item)}
      </ul>
      {left > 0 && (
        <Button onClick={() => setShown(shown + PORTION)}>
          Show {countText(Math.min(PORTION, left))} of {countText(left)} more
        </Button>
      )}
    </>
  );
}

interface SelectFieldProps {
  readonly id: string;
  readonly label: string;
  /** The chosen value. '': the first option. */
  readonly chosen: Signal<string>;
  /** Values and texts. */
  readonly options: readonly (readonly [value: string, text: string])[];
}

export function SelectField({ id, label, chosen, options }: SelectFieldProps) {
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={chosen.value || options[0]?.[0]}
        onChange={({ currentTarget }) => {
          chosen.value = currentTarget.value;
        }}
      >
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </p>
  );
}

/** Returns options for the domains. A chosen domain that is no longer in effect is marked. */
export function domainOptions(chosen: string): SelectFieldProps['options'] {
  const { value: domains } = domainsInEffect;
  const options = domains.map((domain) => [domain, briefText(domain, 60)] as const);
  if (chosen === '' || domains.includes(chosen)) return options;
  return [...options, [chosen, `${briefText(chosen, 60)} (not in effect)`]];
}

type TextFieldProps = InputHTMLAttributes & {
  readonly id: string;
  readonly label: string;
  readonly text: Signal<string>;
};

export function TextField({ id, label, text, ...more }: TextFieldProps) {
  return (
    <p class="field grow">
      <label for={id}>{label}</label>
      <input
        id={id}
        autocomplete="off"
        spellcheck={false}
        {...more}
        value={text}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
        }}
      />
    </p>
  );
}

/** Chooses the range of all charts. */
export function RangeChoice() {
  return (
    <fieldset class="choice">
      <legend>Chart range</legend>
      {CHART_RANGES.map((one) => (
        <label key={one.name}>
          <input
            type="radio"
            name="range"
            checked={one.name === range.value.name}
            onChange={() => chooseRange(one)}
          />
          {one.words}
        </label>
      ))}
    </fieldset>
  );
}

/** Opens and closes a modal dialog. The browser moves the focus back to where it was. */
export function useModal(isOpen: boolean): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (!isOpen) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  }, [isOpen]);
  return dialog;
}
