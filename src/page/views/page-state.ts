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
import { KnownRates, notAllKept } from '../text/known-rates.js';
import { ruleKey } from '../text/rule-tree.js';
import { type TrafficWords, trafficWords } from '../text/traffic-words.js';

/** What the page knows, and what its views may do. */
export class PageState {
  readonly client: Client;
  readonly history = new KnownRates();
  overview: Overview | undefined;
  /** Whether the server answers now. */
  isHeard = false;
  caller: OverviewCaller | undefined;
  policies: DumpedPolicies | undefined;
  /** Another number for each answer about the policies that differs from the one before. */
  policiesRevision = 0;
  #policiesText = '';
  #policiesAsked = 0;
  /** Why the policies could not be had, a sentence. */
  policiesError: string | undefined;
  /** Those with most denials of the hour first; undefined while nothing is known. */
  sums: readonly RuleSums[] | undefined;
  sumsByRule: ReadonlyMap<string, RuleSums> = new Map();
  /** Why the history could not be had, a sentence. */
  historyError: string | undefined;
  /** Whether some rules count in the sum of all only. */
  crowded = false;
  /** What the time axis of charts shows; the address of the page keeps it. */
  range = rangeOf(location.search);
  readonly #rangeListeners: (() => void)[] = [];
  /** Tells screen readers of something, once. */
  announce: (text: string) => void = () => {};
  /** Shows the bucket of these entries; `limit`: that of a limit which requests bring, such as `100/minute`. */
  openBucket: (domain: string, entries: readonly NamedEntry[], limit?: string) => void = () => {};

  constructor(client: Client) {
    this.client = client;
  }

  /** Shows another range from now on. */
  chooseRange(range: ChartRange): void {
    this.range = range;
    const { pathname, search, hash } = location;
    history.replaceState(history.state, '', `${pathname}${queryWith(search, range)}${hash}`);
    for (const listener of this.#rangeListeners) listener();
  }

  /** `listener` runs when another range is chosen. */
  onRange(listener: () => void): void {
    this.#rangeListeners.push(listener);
  }

  /** Asks what became of requests in the last hour. */
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

  /** The series of some rules, in their order; none where they could not be had. */
  async readSeries(
    rules: readonly { readonly domain: string; readonly rule: string }[],
  ): Promise<Pick<HistoryAnswer, 'step' | 'ends'> & { readonly series: readonly (RateSeries | null)[] }> {
    const answer = await this.client.ask<HistoryAnswer>('history', { rules });
    if (!answer.ok) return { step: 0, ends: 0, series: [] };
    return { step: answer.body.step, ends: answer.body.ends, series: answer.body.series ?? [] };
  }

  /** Asks for the policies in force. */
  async readPolicies(): Promise<void> {
    const number = ++this.#policiesAsked;
    const answer = await this.client.get<DumpedPolicies>('rlconfig?format=json');
    // One that was asked for later knows better.
    if (number !== this.#policiesAsked) return;
    this.policiesError = answer.ok ? undefined : answer.error;
    if (!answer.ok) return;
    const text = JSON.stringify(answer.body);
    if (text === this.#policiesText) return;
    this.#policiesText = text;
    this.policies = answer.body;
    this.policiesRevision++;
  }

  /** How what is counted under the name of a rule is named. */
  wordsOf({ domain, rule }: { readonly domain: string; readonly rule: string }): TrafficWords {
    return trafficWords(rule, () => {
      const named = this.policies?.domains.find((one) => one.domain === domain);
      return named?.policy?.rules.some(({ path }) => path === rule) ?? false;
    });
  }

  /** That figures of some rules are not kept, a sentence; undefined where those of all rules are. */
  whyNotAllKept(): string | undefined {
    return notAllKept(this.overview?.keeps.history, this.crowded);
  }

  /** Why the caller may change nothing, a sentence; undefined where it may. */
  whyNoChange(): string | undefined {
    if (this.caller === undefined) return 'It is not known yet what you may do.';
    if (this.caller.right === 'write') return undefined;
    return `The token ${this.caller.by} may read only: to change something use one with the right write.`;
  }

  /** The domains in force, by name. */
  domainsInForce(): readonly string[] {
    const { policies, overview } = this;
    if (policies !== undefined) {
      return policies.domains.filter(({ policy }) => policy !== undefined).map(({ domain }) => domain);
    }
    const domains = overview?.policy.domains ?? [];
    return domains.filter(({ phase }) => phase !== undefined).map(({ domain }) => domain);
  }
}

/** A part of the page that is seen by itself. */
export interface View {
  /** It is seen from now on, or all it shows is to be asked anew. */
  open(): void;
  /** It is not seen any more. */
  close?(): void;
  /** Something of the state has changed. */
  update(): void;
  /** A step of the history is over. */
  point?(): void;
}
