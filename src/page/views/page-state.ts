import type {
  HistoryAnswer,
  Overview,
  OverviewCaller,
  RateSeries,
  RuleSums,
} from '../../admin/page/messages.js';
import type { Client } from '../ask/client.js';
import { type ChartRange, queryWith, rangeOf } from '../text/chart-range.js';
import type { DumpedPolicies } from '../text/dumped-policy.js';
import type { NamedEntry } from '../text/entry-lines.js';
import { missingRatesNote, RecentRates } from '../text/recent-rates.js';
import { ruleKey } from '../text/rule-tree.js';
import { type TrafficLabel, trafficLabel } from '../text/traffic-label.js';

/** The data of the page, shared by its views. */
export class PageState {
  readonly client: Client;
  readonly history = new RecentRates();
  overview: Overview | undefined;
  /** Whether the server answers now. */
  isConnected = false;
  caller: OverviewCaller | undefined;
  policies: DumpedPolicies | undefined;
  /** Incremented for each answer that contains different policies. */
  policiesRevision = 0;
  #policiesText = '';
  #policiesAsked = 0;
  /** The reason why the policies could not be read, as a message. */
  policiesError: string | undefined;
  /** The sums of rules, those with the most denials of the hour first; undefined until known. */
  sums: readonly RuleSums[] | undefined;
  sumsByRule: ReadonlyMap<string, RuleSums> = new Map();
  /** The reason why the history could not be read, as a message. */
  historyError: string | undefined;
  /** Whether some rules count only in the sum of all rules. */
  crowded = false;
  /** The range of the charts, which is kept in the URL. */
  range = rangeOf(location.search);
  readonly #rangeListeners: (() => void)[] = [];
  /** Announces a text to screen readers, once. */
  announce: (text: string) => void = () => {};
  /** Opens the bucket of these entries. `limit`: an override, such as `100/minute`. */
  openBucket: (domain: string, entries: readonly NamedEntry[], limit?: string) => void = () => {};

  constructor(client: Client) {
    this.client = client;
  }

  /** Changes the range of all charts. */
  chooseRange(range: ChartRange): void {
    this.range = range;
    const { pathname, search, hash } = location;
    history.replaceState(history.state, '', `${pathname}${queryWith(search, range)}${hash}`);
    for (const listener of this.#rangeListeners) listener();
  }

  /** Calls `listener` when the range changes. */
  onRange(listener: () => void): void {
    this.#rangeListeners.push(listener);
  }

  /** Reads the history of the last hour. */
  async readHistory(): Promise<void> {
    const answer = await this.client.ask<HistoryAnswer>('history', {});
    this.historyError = answer.ok ? undefined : answer.error;
    if (!answer.ok) return;
    const { sums = [], crowded } = answer.body;
    this.history.read(answer.body);
    this.sums = sums;
    this.sumsByRule = new Map(sums.map((sum) => [ruleKey(sum.domain, sum.rule), sum]));
    this.crowded = crowded;
  }

  /** Returns the series of some rules, in order. Returns no series if they cannot be read. */
  async readSeries(
    rules: readonly { readonly domain: string; readonly rule: string }[],
  ): Promise<Pick<HistoryAnswer, 'step' | 'ends'> & { readonly series: readonly (RateSeries | null)[] }> {
    const answer = await this.client.ask<HistoryAnswer>('history', { rules });
    if (!answer.ok) return { step: 0, ends: 0, series: [] };
    return { step: answer.body.step, ends: answer.body.ends, series: answer.body.series ?? [] };
  }

  /** Reads the policies in effect. */
  async readPolicies(): Promise<void> {
    const number = ++this.#policiesAsked;
    const answer = await this.client.get<DumpedPolicies>('rlconfig?format=json');
    // A later question has a newer answer.
    if (number !== this.#policiesAsked) return;
    this.policiesError = answer.ok ? undefined : answer.error;
    if (!answer.ok) return;
    const text = JSON.stringify(answer.body);
    if (text === this.#policiesText) return;
    this.#policiesText = text;
    this.policies = answer.body;
    this.policiesRevision++;
  }

  /** Returns the words for the requests that are counted under the name of a rule. */
  labelOf({ domain, rule }: { readonly domain: string; readonly rule: string }): TrafficLabel {
    return trafficLabel(rule, () => {
      const named = this.policies?.domains.find((one) => one.domain === domain);
      return named?.policy?.rules.some(({ path }) => path === rule) ?? false;
    });
  }

  /** Returns a sentence about rules without rates, or undefined if weir keeps the rates of all rules. */
  missingRatesNote(): string | undefined {
    return missingRatesNote(this.overview?.keeps.history, this.crowded);
  }

  /** Returns the reason why the user may not make changes, or undefined if changes are allowed. */
  noChangeReason(): string | undefined {
    if (this.caller === undefined) return 'Your permissions are not known yet.';
    if (this.caller.right === 'write') return undefined;
    return `The token ${this.caller.by} has only read permission. To make a change, use a token with write permission.`;
  }

  /** Returns the names of the domains that have a policy in effect. */
  domainsInEffect(): readonly string[] {
    const { policies, overview } = this;
    if (policies !== undefined) {
      return policies.domains.filter(({ policy }) => policy !== undefined).map(({ domain }) => domain);
    }
    const domains = overview?.policy.domains ?? [];
    return domains.filter(({ phase }) => phase !== undefined).map(({ domain }) => domain);
  }
}

/** A view of the page. */
export interface View {
  /** Called when the view opens, or must read all its data again. */
  open(): void;
  /** Called when the view closes. */
  close?(): void;
  /** Called when the state has changed. */
  update(): void;
  /** Called after each step of the history. */
  point?(): void;
}
