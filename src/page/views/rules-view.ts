import type { RuleSums } from '../../server/page/messages.js';
import { button, byId, type Child, el } from '../dom/element.js';
import { inPortions } from '../dom/portions.js';
import { tableOf } from '../dom/table.js';
import { joined, nameOf, sentence, serverNow, stateOf, wholeName } from '../dom/texts.js';
import type { DumpedDomain } from '../text/dumped-policy.js';
import { phaseMeaning, switchesToCome } from '../text/limit-words.js';
import { countOf, countText } from '../text/numbers.js';
import { filteredRules, ruleKey, ruleTree } from '../text/rule-tree.js';
import type { PageState, View } from './page-state.js';
import { RuleCharts } from './rule-charts.js';
import { RuleRows } from './rule-rows.js';
import { noDomain, phaseState, switchShown } from './system-parts.js';
import { trafficShown } from './traffic-words.js';

/** So long nothing is typed before rules are filtered, ms. */
const TYPING_MS = 150;
/** A filter that leaves at most so many rules opens the branches above them. */
const OPEN_MATCHES = 100;
/** Rows of the busiest rules at first. */
const BUSIEST = 50;

/** All rules: as the tree of the policy, or the busiest ones first. */
export class RulesView implements View {
  readonly #state: PageState;
  readonly #place = byId('rules-place');
  readonly #count = byId('rules-count');
  readonly #filter = byId('rules-filter') as HTMLInputElement;
  readonly #asTree = byId('rules-tree') as HTMLInputElement;
  readonly #charts: RuleCharts;
  readonly #rows: RuleRows;
  #made: string | undefined;
  #isOpen = false;
  /** Whether somebody wanted all of the busiest rules. */
  #isWhole = false;

  constructor(state: PageState) {
    this.#state = state;
    this.#charts = new RuleCharts(state);
    this.#rows = new RuleRows(state, this.#charts);
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
      this.#place.replaceChildren(sentence(policiesError ?? 'Asking for the policies…'));
      return;
    }
    const parts = [policiesRevision, this.#filter.value, this.#asTree.checked];
    const wanted = JSON.stringify(
      this.#asTree.checked ? parts : [...parts, this.#state.whyNotAllKept(), this.#state.sums],
    );
    if (wanted === this.#made) return;
    this.#made = wanted;
    this.#rows.clear();
    if (policies.domains.length === 0) this.#place.replaceChildren(noDomain());
    else if (this.#asTree.checked) this.#showTree(policies.domains);
    else this.#showBusiest();
  }

  point(): void {
    if (!this.#isOpen) return;
    if (this.#asTree.checked) this.#rows.refresh();
    else this.update();
    this.#charts.point();
  }

  #showTree(domains: readonly DumpedDomain[]): void {
    const filter = this.#filter.value;
    const isFiltered = filter.trim() !== '';
    const sections = domains.map((dumped) => {
      const rules = filteredRules(dumped.policy?.rules ?? [], filter);
      return { dumped, rules };
    });
    const shown = sections.filter(
      ({ rules, dumped }) => !isFiltered || rules.length > 0 || named(dumped, filter),
    );
    const found = sections.reduce((sum, { rules }) => sum + rules.length, 0);
    this.#count.textContent = `${countOf(found, 'rule')}${isFiltered ? ' found' : ''}`;
    const list = el('div');
    const after = el('div');
    inPortions(list, after, shown, ({ dumped, rules }) =>
      el(
        'section',
        { class: 'card' },
        el('h3', {}, nameOf(dumped.domain)),
        ...domainHead(dumped),
        ...this.#rows.tree(dumped.domain, ruleTree(rules), isFiltered && found <= OPEN_MATCHES),
      ),
    );
    const none = el('p', { class: 'empty' }, 'No rule has this text in its place or name.');
    this.#place.replaceChildren(...(shown.length === 0 ? [none] : [legend(), list, after]));
  }

  #showBusiest(): void {
    const filter = this.#filter.value.trim().toLowerCase();
    const all = this.#state.sums ?? [];
    const found = all.filter(({ domain, rule }) => `${domain}\n${rule}`.toLowerCase().includes(filter));
    const notAll = this.#state.whyNotAllKept();
    const which = notAll === undefined ? 'with traffic' : 'with figures that are kept';
    this.#count.textContent = `${countOf(found.length, 'rule')} ${which}, in the last hour`;
    if (found.length === 0) {
      const nothing = notAll ?? 'Nothing was asked of such a rule in the last hour.';
      this.#place.replaceChildren(el('p', { class: 'empty' }, nothing));
      return;
    }
    const shown = this.#isWhole ? found : found.slice(0, BUSIEST);
    const place = el('div', { class: 'card' }, this.#busiestTable(shown));
    if (shown.length < found.length) {
      const rest = button(`Show all ${countText(found.length)}`, () => {
        this.#isWhole = true;
        this.#showBusiest();
      });
      place.append(rest);
    }
    if (notAll !== undefined) place.append(el('p', { class: 'note' }, notAll));
    this.#place.replaceChildren(place);
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
        caption: 'Rules with most denials of the last hour first',
        captionShown: true,
        columns: [
          { heading: 'Rule', cell: (row) => trafficShown(this.#state.wordsOf(row)) },
          { heading: 'Domain', cell: ({ domain }) => nameOf(domain) },
          { heading: 'Phase', cell: ({ domain, rule }) => phaseCell(phases.get(ruleKey(domain, rule))) },
          number('Denied, minute', ({ minute }) => minute.denied),
          number('Denied, hour', ({ hour }) => hour.denied),
          number('Would be denied, hour', ({ hour }) => hour.would),
          number('Allowed, hour', ({ hour }) => hour.ok),
        ],
      },
      sums,
    );
  }
}

function phaseCell(phase: string | undefined): Child {
  return phase === undefined ? '–' : phaseState(phase);
}

function named({ domain }: DumpedDomain, filter: string): boolean {
  return domain.toLowerCase().includes(filter.trim().toLowerCase());
}

/** What the figures of a row are, for those who see them. */
function legend(): HTMLElement {
  const of = (kind: string, sign: string, name: string) =>
    el('span', { class: `figure ${kind}` }, el('span', { class: 'sign', 'aria-hidden': 'true' }, sign), name);
  return el(
    'p',
    { class: 'legend' },
    'Figures of a row, last minute / last hour: ',
    of('denied', '▲', 'denied'),
    of('would', '◆', 'would be denied'),
    of('ok', '●', 'allowed'),
    '. A row opens for its charts.',
  );
}

function domainHead({ state, files, policy }: DumpedDomain): readonly Child[] {
  if (policy === undefined) {
    const why = state === 'absent' ? 'not in force: its files are bad' : 'not in force';
    return [el('p', {}, stateOf('bad', why), ' ', ...files.map((file) => wholeName(file)))];
  }
  const next = switchesToCome(policy.phase, serverNow()).map(switchShown);
  const derived = policy.derive.length;
  return [
    el(
      'p',
      { class: 'domain-head' },
      phaseState(policy.phase.now),
      ` ${phaseMeaning(policy.phase.now)} `,
      next.length === 0 ? undefined : el('span', { class: 'mark' }, ...joined(next, '; ')),
      ` ${countOf(policy.rules.length, 'rule')}.`,
    ),
    derived === 0
      ? undefined
      : el(
          'details',
          { class: 'derive' },
          el('summary', {}, `Entries are derived before rules are looked for (${countOf(derived, 'step')})`),
          el('ul', {}, ...policy.derive.map(({ step, rules }) => deriveStep(step, rules ?? []))),
        ),
  ];
}

function deriveStep(step: string, rules: readonly string[]): HTMLElement {
  const list = el('ul');
  const after = el('div');
  inPortions(list, after, rules, (rule) => el('li', {}, wholeName(rule)));
  return el('li', {}, wholeName(step), rules.length === 0 ? undefined : list, after);
}
