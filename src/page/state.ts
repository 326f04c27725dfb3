import { computed, signal } from '@preact/signals';
import type { HistoryAnswer, Overview, OverviewCaller } from '../admin/page/messages.js';
import { poll } from './ask/client.js';
import { type ChartRange, queryWith, rangeOf } from './text/chart-range.js';
import type { DumpedPolicies } from './text/dumped-policy.js';
import { nextSwitchAt } from './text/phases.js';
import { missingRatesNote } from './text/recent-rates.js';
import { ruleKey } from './text/rule-key.js';
import { type TrafficLabel, trafficLabel } from './text/traffic-label.js';

/* The data of the page, shared by its views. */

/** The views, by their name in the URL. */
export const VIEWS = {
  overview: 'Overview',
  rules: 'Rules',
  top: 'Top callers',
  bucket: 'Caller',
  plans: 'Plans',
  replicas: 'Replicas',
} as const;
export type ViewName = keyof typeof VIEWS;

/**
 * The state of the connection to the server: a stream of events, polling without a stream, a pause while the page is
 * hidden, answers that the page cannot read, or a failure. Times are in milliseconds since the epoch.
 */
export type Connection =
  | { readonly kind: 'connecting' | 'live' | 'polling' | 'paused' | 'unusable' }
  | { readonly kind: 'lost'; readonly since: number; readonly retryAt: number }
  | { readonly kind: 'refused'; readonly status: number; readonly error: string };

export const view = signal<ViewName>('overview');
export const connection = signal<Connection>({ kind: 'connecting' });
/** Number of times that the page has connected. Views read their data again when it changes. */
export const connections = signal(0);
export const overview = signal<Overview | undefined>(undefined);
export const caller = signal<OverviewCaller | undefined>(undefined);
export const policies = signal<DumpedPolicies | undefined>(undefined);
/** The reason why the policies could not be read, as a message. */
export const policiesError = signal<string | undefined>(undefined);
/** The rates of all rules together in the last hour, and the sums of each rule, most denials first. */
export const rates = signal<HistoryAnswer>({ step: 0, ends: 0, crowded: false });
/** The reason why the rates could not be read, as a message. */
export const ratesError = signal<string | undefined>(undefined);
/** The range of all charts, which is kept in the URL. */
export const range = signal(rangeOf(location.search));
/** The server's time in seconds since the epoch, which advances each second. */
export const now = signal(Date.now() / 1000);
/** A text that screen readers announce once. */
export const announcement = signal('');

export const sumsByRule = computed(
  () => new Map((rates.value.sums ?? []).map((sum) => [ruleKey(sum.domain, sum.rule), sum])),
);

/** A sentence about rules without rates, or undefined if weir keeps the rates of all rules. */
export const missingNote = computed(() =>
  missingRatesNote(overview.value?.keeps.history, rates.value.crowded),
);

/** The reason why the user may not make changes, or undefined if changes are allowed. */
export const noChangeReason = computed(() => {
  if (caller.value === undefined) return 'Your permissions are not known yet.';
  const { by, right } = caller.value;
  if (right === 'write') return undefined;
  return `The token ${by} has only read permission. To make a change, use a token with write permission.`;
});

/** The names of the domains that have a policy in effect. */
export const domainsInEffect = computed((): readonly string[] =>
  (policies.value?.domains ?? []).flatMap(({ domain, policy }) => (policy === undefined ? [] : [domain])),
);

/** Returns the words for the requests that are counted under the name of a rule. */
export function labelOf({ domain, rule }: { readonly domain: string; readonly rule: string }): TrafficLabel {
  return trafficLabel(rule, () => {
    const named = policies.value?.domains.find((one) => one.domain === domain);
    return named?.policy?.rules.some(({ path }) => path === rule) ?? false;
  });
}

/** Changes the range of all charts. */
export function chooseRange(chosen: ChartRange): void {
  range.value = chosen;
  const { pathname, search, hash } = location;
  history.replaceState(history.state, '', `${pathname}${queryWith(search, chosen)}${hash}`);
}

/** Reads the rates of the last hour. */
export async function readRates(): Promise<void> {
  const answer = await poll<HistoryAnswer>('history', {});
  ratesError.value = answer.ok ? undefined : answer.error;
  if (answer.ok) rates.value = answer.body;
}

/** Replaces the overview, and reads the policies again if they have changed. */
export function setOverview(next: Overview): void {
  const { value: before } = overview;
  overview.value = next;
  setNow(next.now);
  if (before === undefined) return;
  announcement.value = changeWords(before, next) ?? announcement.value;
  const policiesOf = ({ policy }: Overview) => JSON.stringify([policy.version, policy.domains]);
  if (policiesOf(before) !== policiesOf(next)) void readPolicies();
}

function changeWords(before: Overview, { policy, health, store }: Overview): string | undefined {
  if (before.health.status !== health.status)
    return health.status === 'SERVING' ? 'weir is serving again.' : `weir is not serving: ${health.reason}`;
  if (before.store.up !== store.up)
    return store.up ? 'The store is available again.' : 'The store is unavailable.';
  if (before.policy.errors.length === 0 && policy.errors.length > 0)
    return 'The policies were reloaded with errors.';
  if (before.policy.version === policy.version) return undefined;
  return `Version ${policy.version} of the policies is now in effect.`;
}

let policiesAsked = 0;
let policiesAskedAt = 0;
/** The time of the next phase change of any rule, in seconds since the epoch. */
let nextSwitch = Number.POSITIVE_INFINITY;
/** Seconds after a phase change until the policies are read again, because the clocks may differ slightly. */
const SETTLED_SECONDS = 1;
/** Maximum age of the policies while rules are visible, in milliseconds. */
const MAX_POLICIES_AGE_MS = 60_000;
/** Pause before the policies are read again after a failure, in milliseconds. */
const POLICIES_RETRY_MS = 10_000;

/** Reads the policies in effect. */
export async function readPolicies(): Promise<void> {
  const number = ++policiesAsked;
  policiesAskedAt = Date.now();
  // The answer includes all phase changes until now, unless the clocks differ.
  const askedAt = now.value - SETTLED_SECONDS;
  nextSwitch = Number.POSITIVE_INFINITY;
  const answer = await poll<DumpedPolicies>('rlconfig?format=json');
  // A later question has a newer answer.
  if (number !== policiesAsked) return;
  policiesError.value = answer.ok ? undefined : answer.error;
  if (!answer.ok) return;
  policies.value = answer.body;
  nextSwitch = nextSwitchAt(answer.body, askedAt);
}

/** Offset of the server's clock from the browser's clock, in seconds. */
let clockOffset = 0;

export function setNow(seconds: number): void {
  clockOffset = seconds - Date.now() / 1000;
  now.value = seconds;
}

/** Advances the clock, and reads the policies again if a schedule has changed a phase. */
export function tick(): void {
  now.value = Date.now() / 1000 + clockOffset;
  if (document.hidden || !['live', 'polling'].includes(connection.value.kind)) return;
  const age = Date.now() - policiesAskedAt;
  const isOld = view.value === 'rules' && age >= MAX_POLICIES_AGE_MS;
  const isRetried = policiesError.value !== undefined && age >= POLICIES_RETRY_MS;
  if (now.value >= nextSwitch + SETTLED_SECONDS || isOld || isRetried) void readPolicies();
}
