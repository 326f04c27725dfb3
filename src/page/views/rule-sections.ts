import { type Child, el } from '../dom/element.js';
import { addInPortions } from '../dom/portions.js';
import { expandableName, joined, nameOf, serverNow, stateOf } from '../dom/texts.js';
import type { DumpedDomain, DumpedPlans, DumpedPolicyRule } from '../text/dumped-policy.js';
import { futureSwitches } from '../text/limit-words.js';
import { countOf } from '../text/numbers.js';
import { domainMeaning } from '../text/over-words.js';
import { planSourceWords, planWords } from '../text/plan-words.js';
import { ruleTree } from '../text/rule-tree.js';
import type { PageState } from './page-state.js';
import { RuleCharts } from './rule-charts.js';
import { RuleRows } from './rule-rows.js';
import { phaseState, switchElement } from './system-parts.js';

/** A domain with the rules that are shown. */
export interface ShownDomain {
  readonly dumped: DumpedDomain;
  readonly rules: readonly DumpedPolicyRule[];
}

interface Section {
  readonly element: HTMLElement;
  readonly rows: RuleRows;
  /** JSON of the data that was rendered. */
  readonly made: string;
}

/**
 * The rule trees of all domains. Only domains that changed are rendered again, so that focus and scroll position are
 * kept.
 */
export class RuleSections {
  readonly #state: PageState;
  readonly #charts: RuleCharts;
  readonly #place: Element;
  readonly #sections = new Map<string, Section>();
  #filter = '';
  /** Current data, including domains whose portion is not shown yet. */
  #shown: ReadonlyMap<string, ShownDomain> = new Map();
  #listed: string | undefined;

  constructor(state: PageState, place: Element) {
    this.#state = state;
    this.#charts = new RuleCharts(state);
    this.#place = place;
  }

  /** Shows the domains. `open`: whether all branches are open, regardless of their number. */
  show(shown: readonly ShownDomain[], filter: string, open: boolean, head: Node): void {
    if (filter !== this.#filter) this.clear();
    this.#filter = filter;
    this.#shown = new Map(shown.map((one) => [one.dumped.domain, one]));
    for (const [domain, { rows }] of this.#sections) {
      if (this.#shown.has(domain)) continue;
      rows.clear();
      this.#sections.delete(domain);
    }
    const focused = document.activeElement;
    const names = [...this.#shown.keys()];
    const listed = JSON.stringify(names);
    if (listed === this.#listed) {
      for (const domain of this.#sections.keys()) this.#section(domain, open);
      return;
    }
    this.#listed = listed;
    const list = el('div');
    const after = el('div');
    addInPortions(list, after, names, (domain) => this.#section(domain, open));
    this.#place.replaceChildren(head, list, after);
    // An element loses the focus when it is moved.
    if (focused instanceof HTMLElement && list.contains(focused)) focused.focus({ preventScroll: true });
  }

  /** Updates the counts of all rows. */
  refresh(): void {
    for (const { rows } of this.#sections.values()) rows.refresh();
  }

  /** Called after each step of the history. */
  point(): void {
    this.#charts.point();
  }

  /** Removes all sections. */
  clear(): void {
    for (const { rows } of this.#sections.values()) rows.clear();
    this.#sections.clear();
    this.#listed = undefined;
  }

  #section(domain: string, open: boolean): Node {
    const shown = this.#shown.get(domain);
    if (shown === undefined) return el('section');
    const { dumped, rules } = shown;
    const made = JSON.stringify([dumped, open]);
    const known = this.#sections.get(domain);
    if (known?.made === made) return known.element;
    const { element, rows } = known ?? {
      element: el('section', { class: 'card' }),
      rows: new RuleRows(this.#state, this.#charts),
    };
    const focused = rows.focused();
    rows.clear();
    element.replaceChildren(
      el('h3', {}, nameOf(domain)),
      ...domainHead(dumped).filter((child) => child !== undefined),
      ...rows.tree(domain, ruleTree(rules), open),
    );
    if (focused !== undefined) rows.focus(focused);
    this.#sections.set(domain, { element, rows, made });
    return element;
  }
}

function domainHead({ state, files, policy }: DumpedDomain): readonly Child[] {
  if (policy === undefined) {
    const why = state === 'absent' ? 'not in effect: its files are invalid' : 'not in effect';
    return [el('p', {}, stateOf('bad', why), ' ', ...files.map((file) => expandableName(file)))];
  }
  const next = futureSwitches(policy.phase, serverNow()).map(switchElement);
  const derived = policy.derive.length;
  return [
    el(
      'p',
      { class: 'domain-head' },
      phaseState(policy.phase.now),
      ` ${domainMeaning(policy.phase.now, policy.rules)} `,
      next.length === 0 ? undefined : el('span', { class: 'mark' }, ...joined(next, '; ')),
      ` ${countOf(policy.rules.length, 'rule')}.`,
    ),
    derived === 0
      ? undefined
      : el(
          'details',
          { class: 'derive' },
          el('summary', {}, `Entries derived before matching (${countOf(derived, 'step')})`),
          el('ul', {}, ...policy.derive.map(({ step, rules }) => deriveStep(step, rules ?? []))),
        ),
    policy.plans === null ? undefined : plansPart(policy.plans),
  ];
}

function plansPart(plans: DumpedPlans): HTMLElement {
  const list = el('ul');
  const after = el('div');
  addInPortions(list, after, Object.entries(plans.define), ([name, values]) =>
    el('li', {}, expandableName(planWords(name, values))),
  );
  const refused =
    plans.refused === 0 ? [] : [' ', stateOf('bad', `${countOf(plans.refused, 'row')} refused`)];
  return el(
    'details',
    { class: 'derive' },
    el('summary', {}, `Plans (${planSourceWords(plans)})`, ...refused),
    list,
    after,
  );
}

function deriveStep(step: string, rules: readonly string[]): HTMLElement {
  const list = el('ul');
  const after = el('div');
  addInPortions(list, after, rules, (rule) => el('li', {}, expandableName(rule)));
  return el('li', {}, expandableName(step), rules.length === 0 ? undefined : list, after);
}
