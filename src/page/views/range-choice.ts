import { el } from '../dom/element.js';
import { CHART_RANGES } from '../text/chart-range.js';
import type { PageState } from './page-state.js';

/** Lets its user choose what the time axis of charts shows; the same on every view. `name`: of its radio buttons. */
export function rangeChoice(state: PageState, name: string): HTMLElement {
  const inputs = CHART_RANGES.map((range) =>
    el('input', { type: 'radio', name, value: range.name, onchange: () => state.chooseRange(range) }),
  );
  const show = (): void => {
    for (const input of inputs) input.checked = input.value === state.range.name;
  };
  state.onRange(show);
  show();
  return el(
    'fieldset',
    { class: 'choice range' },
    el('legend', {}, 'Time of charts'),
    ...CHART_RANGES.map(({ words }, at) => el('label', {}, inputs[at], ` ${words}`)),
  );
}
