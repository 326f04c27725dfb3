import type { RuleSums } from '../../admin/page/messages.js';
import { button, byId, type Child, el } from '../dom/element.js';
import { tableOf } from '../dom/table.js';
import { nameOf, sentence } from '../dom/texts.js';
import type { DumpedDomain } from '../text/dumped-policy.js';
import { countOf, countText } from '../text/numbers.js';
import { filteredRules, ruleKey } from '../text/rule-tree.js';
import type { PageState, View } from './page-state.js';
import { rangeChoice } from './range-choice.js';
import { RuleSections } from './rule-sections.js';
import { noDomain, phaseState } from './system-parts.js';
import { trafficElement } from './traffic-element.js';

/** Delay between the last key press and filtering, in milliseconds. */
const TYPING_MS = 150;
/** Maximum number of rules found by a filter whose branches are opened. */
const OPEN_MATCHES = 100;
/** Number of busiest rules that are shown first. */
const BUSIEST = 50;

/** The view of all rules, as the tree of the policy or the busiest first. */
export class RulesView implements View {
  readonly #state: PageState;
  readonly #place = byId('rules-place');
  readonly #count = byId('rules-count');
  readonly #filter = byId('rules-filter') as HTMLInputElement;
  readonly #asTree = byId('rules-tree') as HTMLInputElement;
  readonly #sections: RuleSections;
  /** The button is not rendered again with the table, so it keeps the focus. */
  readonly #busiest = busiestParts(() => this.#showAll());
  #made: string | undefined;
  #isOpen = false;
  /** Whether the user chose to see all of the busiest rules. */
  #showsAll = false;

  constructor(state: PageState) {
    this.#state = state;
    this.#sections = new RuleSections(state, this.#place);
    byId('rules-range').append(rangeChoice(state, 'rules-range'));
    let timer: ReturnType<typeof setTimeout> | undefined;
    this.#filter.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.update(), TYPING_MS);
    });
    byId('rules-sort').addEventListener('change', () => this.update());
  }

  open(): void {
    this.#isOpen = true;
    this.update();
  }

  close(): void {
    this.#isOpen = false;
  }

  update(): void {
    if (!this.#isOpen) return;
    const { policies, policiesError, policiesRevision } = this.#state;
    if (policies === undefined) {
      this.#place.replaceChildren(sentence(policiesError ?? 'Loading the policies…'));
      return;
    }
    const parts = [policiesRevision, this.#filter.value, this.#asTree.checked];
    const wanted = JSON.stringify(
      this.#asTree.checked ? parts : [...parts, this.#state.missingRatesNote(), this.#state.sums],
    );
    if (wanted === this.#made) return;
    this.#made = wanted;
    if (policies.domains.length === 0 || !this.#asTree.checked) this.#sections.clear();
    if (policies.domains.length === 0) this.#place.replaceChildren(noDomain());
    else if (this.#asTree.checked) this.#showTree(policies.domains);
    else this.#showBusiest();
  }

  point(): void {
    if (!this.#isOpen) return;
    if (this.#asTree.checked) this.#sections.refresh();
    else this.update();
    this.#sections.point();
  }

  #showTree(domains: readonly DumpedDomain[]): void {
    const filter = this.#filter.value.trim();
    const sections = domains.map((dumped) => {
      const all = dumped.policy?.rules ?? [];
      return { dumped, rules: matchesDomain(dumped, filter) ? all : filteredRules(all, filter) };
    });
    const shown = sections.filter(({ rules, dumped }) => rules.length > 0 || matchesDomain(dumped, filter));
    const found = sections.reduce((sum, { rules }) => sum + rules.length, 0);
    const isFiltered = filter !== '';
    const counted = isFiltered && found === 0 ? countOf(shown.length, 'domain') : countOf(found, 'rule');
    this.#count.textContent = `${counted}${isFiltered ? ' found' : ''}`;
    if (shown.length > 0) {
      this.#sections.show(shown, filter, isFiltered && found <= OPEN_MATCHES, legend());
      return;
    }
    this.#sections.clear();
    const none = 'No domain name, rule path or rule name contains this text.';
    this.#place.replaceChildren(el('p', { class: 'empty' }, none));
  }

  #showBusiest(): void {
    const filter = this.#filter.value.trim().toLowerCase();
    const all = this.#state.sums ?? [];
    const found = all.filter(({ domain, rule }) => `${domain}\n${rule}`.toLowerCase().includes(filter));
    const missingNote = this.#state.missingRatesNote();
    const which = missingNote === undefined ? 'with traffic' : 'with recorded rates';
    this.#count.textContent = `${countOf(found.length, 'rule')} ${which} in the last hour`;
    if (found.length === 0) {
      const nothing = missingNote ?? 'No matching rule had requests in the last hour.';
      this.#place.replaceChildren(el('p', { class: 'empty' }, nothing));
      return;
    }
    const shown = this.#showsAll ? found : found.slice(0, BUSIEST);
    const { card, table, rest, note } = this.#busiest;
    table.replaceChildren(this.#busiestTable(shown));
    rest.textContent = `Show all ${countText(found.length)}`;
    rest.hidden = shown.length === found.length;
    note.textContent = missingNote ?? '';
    if (card.parentElement !== this.#place) this.#place.replaceChildren(card);
  }

  #showAll(): void {
    this.#showsAll = true;
    this.#showBusiest();
    // The button is now hidden, and the new rows are in the table.
    this.#busiest.table.focus({ preventScroll: true });
  }

  #busiestTable(sums: readonly RuleSums[]): HTMLElement {
    const { policies } = this.#state;
    const phases = new Map(
      (policies?.domains ?? []).flatMap(({ domain, policy }) =>
        (policy?.rules ?? []).map(({ path, phase }) => [ruleKey(domain, path), phase.now]),
      ),
    );
    const number = (heading: string, value: (sums: RuleSums) => number) => ({
      heading,
      figures: true,
      cell: (row: RuleSums) => countText(value(row)),
    });
    return tableOf<RuleSums>(
      {
        caption: 'Rules by number of denials in the last hour',
        captionShown: true,
        columns: [
          { heading: 'Rule', cell: (row) => trafficElement(this.#state.labelOf(row)) },
          { heading: 'Domain', cell: ({ domain }) => nameOf(domain) },
          { heading: 'Phase', cell: ({ domain, rule }) => phaseCell(phases.get(ruleKey(domain, rule))) },
          number('Denied, last minute', ({ minute }) => minute.denied),
          number('Denied, last hour', ({ hour }) => hour.denied),
          number('Would be denied, last hour', ({ hour }) => hour.would),
          number('Allowed, last hour', ({ hour }) => hour.ok),
        ],
      },
      sums,
    );
  }
}

function phaseCell(phase: string | undefined): Child {
  return phase === undefined ? '–' : phaseState(phase);
}

function matchesDomain({ domain }: DumpedDomain, filter: string): boolean {
  return domain.toLowerCase().includes(filter.toLowerCase());
}

function busiestParts(showAll: () => void) {
  const table = el('div', { tabindex: -1 });
  const rest = button('', showAll);
  const note = el('p', { class: 'note' });
  return { card: el('div', { class: 'card' }, table, rest, note), table, rest, note };
}

/** Explains the counts of a row to people who can see the signs. */
function legend(): HTMLElement {
  const of = (kind: string, sign: string, name: string) =>
    el('span', { class: `figure ${kind}` }, el('span', { class: 'sign', 'aria-hidden': 'true' }, sign), name);
  return el(
    'p',
    { class: 'legend' },
    'Requests in the last minute / last hour: ',
    of('denied', '▲', 'denied'),
    of('would', '◆', 'would be denied'),
    of('ok', '●', 'allowed'),
    '. Open a row to see its charts.',
  );
}
