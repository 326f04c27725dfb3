import type { RuleSums } from '../../admin/page/messages.js';
import { type Child, el, spoken } from '../dom/element.js';
import { addInPortions } from '../dom/portions.js';
import { expandableName, nameOf, serverNow, stateOf, timeOf } from '../dom/texts.js';
import type { DumpedPolicyRule } from '../text/dumped-policy.js';
import { futureSwitches, ruleMarks, switchVerb } from '../text/limit-words.js';
import { countOf, shortCount } from '../text/numbers.js';
import { overWords } from '../text/over-words.js';
import { fullLimitWords, standardLimitWords } from '../text/plan-words.js';
import { type RuleNode, ruleKey } from '../text/rule-tree.js';
import { utcText } from '../text/times.js';
import type { PageState } from './page-state.js';
import type { RuleCharts } from './rule-charts.js';
import { fact, phaseState, switchElement } from './system-parts.js';

/** Maximum number of rules of a domain whose tree is initially open. */
const OPEN_RULES = 50;
/** Maximum number of characters of a name in a row. */
const ROW_TEXT = 80;

/** Creates the rows of a rule tree, and updates their counts. */
export class RuleRows {
  readonly #state: PageState;
  readonly #charts: RuleCharts;
  readonly #figures = new Map<string, Element[]>();
  /** Rows that can be opened, by a name that stays the same when the rows are rendered again. */
  readonly #summaries = new Map<string, HTMLElement>();
  /** Whether each of these rows is open, if known. */
  readonly #isOpen = new Map<string, boolean>();
  readonly #closers = new Set<() => void>();

  constructor(state: PageState, charts: RuleCharts) {
    this.#state = state;
    this.#charts = charts;
  }

  /** Removes all rows, but remembers which of them were open. */
  clear(): void {
    this.#figures.clear();
    this.#summaries.clear();
    for (const close of this.#closers) close();
    this.#closers.clear();
  }

  /** Returns the name of the row that has the focus. */
  focused(): string | undefined {
    return [...this.#summaries].find(([, summary]) => summary === document.activeElement)?.[0];
  }

  /** Moves the focus to a row, if the row exists. */
  focus(name: string): void {
    this.#summaries.get(name)?.focus({ preventScroll: true });
  }

  /** Returns the rows of a domain. `open`: whether all branches are open, regardless of their number. */
  tree(domain: string, root: RuleNode, open: boolean): readonly Node[] {
    return this.#children(domain, root, '', open || root.count <= OPEN_RULES);
  }

  /** Updates the counts of all rows. */
  refresh(): void {
    for (const [key, places] of this.#figures) {
      for (const place of places) place.replaceChildren(...this.#figuresOf(key));
    }
  }

  #figuresOf(key: string): readonly HTMLElement[] {
    const { sumsByRule } = this.#state;
    return figures(sumsByRule.get(key), this.#state.missingRatesNote() === undefined);
  }

  #children(domain: string, node: RuleNode, place: string, open: boolean): readonly Node[] {
    const list = el('ul', { class: 'tree' });
    const after = el('div');
    addInPortions(list, after, [...node.children.values()], (child) =>
      this.#node(domain, child, `${place}/${child.label}`, open),
    );
    return [list, after];
  }

  #node(domain: string, node: RuleNode, place: string, open: boolean): HTMLElement {
    const rules = node.rules.map((rule, at) => this.#rule(domain, node.label, rule, `rule ${at} ${place}`));
    if (node.children.size === 0) return el('li', {}, ...rules);
    const body = el('div');
    const summary = el(
      'summary',
      {},
      node.rules.length === 0
        ? nameOf(node.label, ROW_TEXT)
        : el('span', {}, 'below ', nameOf(node.label, ROW_TEXT)),
      el('span', { class: 'count' }, ` ${countOf(node.count - node.rules.length, 'rule')}`),
    );
    const fill = (): void => {
      this.#isOpen.set(name, branch.open);
      if (!branch.open || body.hasChildNodes()) return;
      body.append(...this.#children(domain, node, place, open));
    };
    const name = `below ${place}`;
    this.#summaries.set(name, summary);
    const branch = el('details', { class: 'branch', ontoggle: fill }, summary, body);
    branch.open = this.#isOpen.get(name) ?? open;
    fill();
    return el('li', {}, ...rules, branch);
  }

  #rule(domain: string, label: string, rule: DumpedPolicyRule, name: string): HTMLElement {
    const key = ruleKey(domain, rule.path);
    const place = el('span', { class: 'sums' }, ...this.#figuresOf(key));
    const known = this.#figures.get(key);
    if (known === undefined) this.#figures.set(key, [place]);
    else known.push(place);
    const body = el('div', { class: 'rule-body' });
    let close: (() => void) | undefined;
    const fill = (): void => {
      this.#isOpen.set(name, row.open);
      if (row.open === (close !== undefined)) return;
      if (close !== undefined) {
        close();
        this.#closers.delete(close);
        close = undefined;
        body.replaceChildren();
        return;
      }
      close = this.#fill(body, domain, rule);
      this.#closers.add(close);
    };
    const summary = el(
      'summary',
      {},
      el('span', { class: 'rule-name' }, nameOf(label, ROW_TEXT), ...namePart(label, rule.name)),
      el('span', { class: 'rule-limit' }, standardLimitWords(rule)),
      el('span', { class: 'rule-phase' }, ...phasePart(rule)),
      place,
    );
    this.#summaries.set(name, summary);
    const row = el('details', { class: 'rule', ontoggle: fill }, summary, body);
    row.open = this.#isOpen.get(name) ?? false;
    fill();
    return row;
  }

  #fill(body: Element, domain: string, rule: DumpedPolicyRule): () => void {
    const charts = el('div');
    body.replaceChildren(ruleFacts(rule), charts);
    return this.#charts.add(charts, { domain, rule: rule.path });
  }
}

function namePart(label: string, name: string): readonly Child[] {
  if (name === '' || label.endsWith(`=${name}`) || label.endsWith(`[${name}]`)) return [];
  return [' ', el('span', { class: 'given' }, nameOf(name, ROW_TEXT))];
}

function phasePart(rule: DumpedPolicyRule): readonly Child[] {
  if (rule.limit.unlimited === true) return [stateOf('none', 'no limit')];
  const marks = ruleMarks(rule).map((mark) => el('span', { class: 'mark' }, shortMark(mark)));
  const [next] = futureSwitches(rule.phase, serverNow());
  const soon =
    next === undefined ? undefined : el('span', { class: 'mark' }, `${switchVerb(next)} `, timeOf(next.at));
  // The last limit of a chain decides about its phase.
  return [rule.then === null ? phaseState(rule.phase.now) : undefined, ...marks, soon];
}

function shortMark(mark: string): string {
  return mark.split(': ')[0] ?? mark;
}

/** Returns a full description of a rule. */
function ruleFacts(rule: DumpedPolicyRule): HTMLElement {
  const { phase, matchers = [] } = rule;
  const said: Child[] = [];
  for (const one of futureSwitches(phase, serverNow())) {
    said.push(el('br'), switchElement(one));
  }
  const began =
    phase.active !== undefined && phase.now === 'active' ? Date.parse(phase.active) / 1000 : undefined;
  if (began !== undefined) said.push(` Active since ${utcText(began)}.`);
  const marks = ruleMarks(rule);
  return el(
    'dl',
    { class: 'facts' },
    ...fact('Rule', expandableName(rule.path)),
    ...(rule.name === '' ? [] : fact('Name', expandableName(rule.name))),
    ...fact('Limit', fullLimitWords(rule)),
    ...(rule.then === null
      ? fact('Phase', phaseState(phase.now), ...said)
      : fact('Phase', 'The phase of the last limit of the chain applies.')),
    ...fact('Over the limit', overWords(rule)),
    ...(marks.length === 0 ? [] : fact('Options', marks.join('; '))),
    ...matchers.flatMap(({ key, value_cidr: blocks, value_regex: patterns }) =>
      fact('Matches', nameOf(key), ': ', expandableName([...(blocks ?? []), ...(patterns ?? [])].join('  '))),
    ),
    ...fact('If the store is unavailable', rule.on_store_failure),
  );
}

/** Returns the counts of a rule: denied, would be denied and allowed in the last minute and hour. */
function figures(sums: RuleSums | undefined, areAllRatesKept: boolean): readonly HTMLElement[] {
  if (sums === undefined) {
    return [
      areAllRatesKept
        ? spoken('no requests in the last hour')
        : el('span', { class: 'note' }, 'not recorded'),
    ];
  }
  const { minute, hour } = sums;
  return [
    figure('denied', 'denied', '▲', minute.denied, hour.denied),
    figure('would', 'would be denied', '◆', minute.would, hour.would),
    figure('ok', 'allowed', '●', minute.ok, hour.ok),
  ];
}

function figure(kind: string, name: string, sign: string, minute: number, hour: number): HTMLElement {
  return el(
    'span',
    { class: `figure ${kind}${hour === 0 ? ' zero' : ''}` },
    el('span', { 'aria-hidden': 'true', class: 'sign' }, sign),
    spoken(`${name}: `),
    el('span', { class: 'of-minute' }, shortCount(minute)),
    spoken(' in the last minute, '),
    el('span', { class: 'of-hour' }, el('span', { 'aria-hidden': 'true' }, ' / '), shortCount(hour)),
    spoken(' in the last hour; '),
  );
}
