import { el } from '../dom/element.js';
import { CHART_RANGES } from '../text/chart-range.js';
import type { PageState } from './page-state.js';

/**
 * Creates the buttons that choose the range of charts. All views share the range. `name`: name of the radio buttons.
 */
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
    el('legend', {}, 'Chart range'),
    ...CHART_RANGES.map(({ words }, at) => el('label', {}, inputs[at], ` ${words}`)),
  );
}
