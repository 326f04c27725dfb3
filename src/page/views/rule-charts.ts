import type { HistoryRule } from '../../admin/page/messages.js';
import { TrafficCharts } from '../dom/chart.js';
import { el } from '../dom/element.js';
import { slotsOf } from '../text/chart-range.js';
import { briefText } from '../text/shown-text.js';
import type { PageState } from './page-state.js';

/** Maximum number of rules in one question. */
const MAX_RULES = 50;
/** Maximum number of bytes of the rules' names in one question, because the server limits its size. */
const MAX_NAME_BYTES = 24 * 1024;
/**
 * Number of charts that are updated after every step. If more are open, they are updated at this interval, in
 * milliseconds.
 */
const FEW_CHARTS = 4;
const MANY_CHARTS_INTERVAL_MS = 14_000;

interface OpenChart extends HistoryRule {
  readonly charts: TrafficCharts;
  readonly note: HTMLElement;
}

/** Returns the rules that fit into one question. */
function firstBatch(all: readonly OpenChart[]): readonly OpenChart[] {
  let bytes = 0;
  const end = all.findIndex(({ domain, rule }, at) => {
    bytes += new TextEncoder().encode(JSON.stringify({ domain, rule })).length;
    return at > 0 && (at >= MAX_RULES || bytes > MAX_NAME_BYTES);
  });
  return end === -1 ? all : all.slice(0, end);
}

/** The charts of all open rules, which are read together after each step. */
export class RuleCharts {
  readonly #state: PageState;
  readonly #open = new Set<OpenChart>();
  #asking = false;
  #isRefreshPending = false;
  #askedAt = 0;

  constructor(state: PageState) {
    this.#state = state;
    state.onRange(() => void this.refresh());
  }

  /** Adds the charts of a rule to `place`. Returns a function that closes the charts. */
  add(place: Element, { domain, rule }: HistoryRule): () => void {
    const charts = new TrafficCharts(`the rule ${briefText(rule)} in the domain ${briefText(domain)}`);
    const note = el('p', { class: 'note' }, 'Loading…');
    charts.element.hidden = true;
    place.replaceChildren(note, charts.element);
    const one = { domain, rule, charts, note };
    this.#open.add(one);
    void this.refresh();
    return () => this.#open.delete(one);
  }

  /** Called after each step of the history. */
  point(): void {
    if (this.#open.size > FEW_CHARTS && Date.now() - this.#askedAt < MANY_CHARTS_INTERVAL_MS) return;
    void this.refresh();
  }

  /** Reads the series of all open charts. */
  async refresh(): Promise<void> {
    if (this.#asking) {
      this.#isRefreshPending = true;
      return;
    }
    this.#asking = true;
    this.#askedAt = Date.now();
    do {
      this.#isRefreshPending = false;
      const all = [...this.#open];
      for (let rest = all; rest.length > 0; ) {
        const some = firstBatch(rest);
        await this.#ask(some);
        rest = rest.slice(some.length);
      }
    } while (this.#isRefreshPending);
    this.#asking = false;
  }

  async #ask(asked: readonly OpenChart[]): Promise<void> {
    const { step, ends, series } = await this.#state.readSeries(
      asked.map(({ domain, rule }) => ({ domain, rule })),
    );
    const { range, history } = this.#state;
    for (const [at, { charts, note }] of asked.entries()) {
      const known = series[at] ?? undefined;
      charts.element.hidden = known === undefined;
      note.hidden = known !== undefined;
      if (known !== undefined)
        charts.show(known, { step, ends, slots: slotsOf(range, step, history.series.ok.length) });
      else note.textContent = this.#whyNothing(step > 0);
    }
  }

  #whyNothing(answered: boolean): string {
    if (!answered)
      return 'The rates of this rule could not be loaded. The page tries again in a few seconds.';
    if (this.#state.overview?.keeps.history === 0)
      return 'HISTORY_RULES is 0, so weir does not record the rates of individual rules.';
    if (this.#state.crowded) {
      const only =
        'its rates were not recorded because the number of rules with requests exceeded HISTORY_RULES';
      return `No request matched this rule in the last hour, or ${only}.`;
    }
    return 'No request matched this rule in the last hour.';
  }
}
