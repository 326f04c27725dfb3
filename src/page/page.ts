import type { HistoryPoint, Overview, OverviewCaller } from '../admin/page/messages.js';
import { Client } from './ask/client.js';
import { LiveFeed } from './ask/live-feed.js';
import { byId } from './dom/element.js';
import { refreshTimes, setServerNow } from './dom/texts.js';
import { BucketView } from './views/bucket-view.js';
import { ChangeDialog } from './views/change-dialog.js';
import { OverviewView } from './views/overview-view.js';
import { PageState, type View } from './views/page-state.js';
import { PolicyReader } from './views/policy-reader.js';
import { RulesView } from './views/rules-view.js';
import { StatusBar } from './views/status-bar.js';
import { TokenDialog } from './views/token-dialog.js';
import { TopView } from './views/top-view.js';

/* The page at `/` of the debug port: the state of one server, and its views. */

const VIEWS = ['overview', 'rules', 'top', 'bucket'] as const;
type ViewName = (typeof VIEWS)[number];

const state = new PageState(new Client(location.pathname));
const bucketView = new BucketView(state, new ChangeDialog(state));
const views: Readonly<Record<ViewName, View>> = {
  overview: new OverviewView(state),
  rules: new RulesView(state),
  top: new TopView(state),
  bucket: bucketView,
};
let currentView: ViewName = 'overview';
const policyReader = new PolicyReader(state, updateAll, () => currentView === 'rules');

const feed = new LiveFeed(state.client, {
  caller(caller: OverviewCaller) {
    state.caller = caller;
    statusBar.update();
    updateAll();
  },
  overview(overview: Overview) {
    const before = state.overview;
    state.overview = overview;
    setServerNow(overview.now);
    statusBar.update();
    summarizeChanges(before, overview);
    if (policiesChanged(before, overview)) void policyReader.read();
    updateAll();
    if (isPolled && Date.now() - historyAskedAt >= historyMs()) void readHistory();
  },
  point(point: HistoryPoint) {
    // The server reports a step when the step ends.
    setServerNow(point.ends);
    const follows = state.history.add(point);
    if (document.hidden && follows) return;
    // Only the whole history contains the sums of rules.
    if (follows && Date.now() - historyAskedAt < historyMs()) views[currentView].point?.();
    else void readHistory();
  },
  state(feedState) {
    const isNew = feedState.kind !== lastKind;
    lastKind = feedState.kind;
    isPolled = feedState.kind === 'polling';
    statusBar.feed(feedState);
    const isBack = feedState.kind === 'live' || feedState.kind === 'polling';
    state.isConnected = isBack;
    if (!isNew || !isBack) return;
    void readHistory();
    void policyReader.read();
    views[currentView].open();
  },
});
let lastKind = '';
let isPolled = false;
/** Interval between reads of the whole history, in milliseconds. With few rules, the page reads it after every step. */
const historyMs = (): number => ((state.sums?.length ?? 0) <= FEW_RULES ? 4000 : 14_000);
const FEW_RULES = 100;
let historyAskedAt = 0;

const token = new TokenDialog(state, () => {
  state.caller = undefined;
  lastKind = '';
  feed.restart();
});
const statusBar = new StatusBar(
  state,
  () => {
    lastKind = '';
    feed.restart();
  },
  (sentence) => token.ask(sentence),
);

state.announce = (text) => {
  byId('announcements').textContent = text;
};
state.openBucket = (domain, entries, limit) => {
  location.hash = '#bucket';
  show('bucket', false);
  bucketView.showBucket(domain, entries, limit);
};

function updateAll(): void {
  for (const view of Object.values(views)) view.update();
}

async function readHistory(): Promise<void> {
  historyAskedAt = Date.now();
  await state.readHistory();
  views[currentView].point?.();
}

function policiesChanged(before: Overview | undefined, { policy }: Overview): boolean {
  const phases = (overview: Overview['policy']) => JSON.stringify(overview.domains);
  return (
    before !== undefined &&
    (before.policy.version !== policy.version || phases(before.policy) !== phases(policy))
  );
}

/** Announces a change to screen readers, once. */
function summarizeChanges(before: Overview | undefined, { policy, health, store }: Overview): void {
  if (before === undefined) return;
  if (before.health.status !== health.status) {
    state.announce(
      health.status === 'SERVING' ? 'weir is serving again.' : `weir is not serving: ${health.reason}`,
    );
  } else if (before.store.up !== store.up) {
    state.announce(store.up ? 'The store is available again.' : 'The store is unavailable.');
  } else if (before.policy.errors.length === 0 && policy.errors.length > 0) {
    state.announce('The policies were reloaded with errors.');
  } else if (before.policy.version !== policy.version) {
    state.announce(`Version ${policy.version} of the policies is now in effect.`);
  }
}

/** Whether the last navigation was a click on a link of this page, and not a change of the URL. */
let isByLink = false;
addEventListener('click', ({ target }) => {
  isByLink = target instanceof Element && target.closest('a[href^="#"]') !== null;
});

/**
 * Shows one view. `focus`: whether the user navigated to the view, so that focus moves to its heading. The focus is
 * visible only after a link of the page was used.
 */
function show(name: ViewName, focus: boolean): void {
  if (name !== currentView) views[currentView].close?.();
  currentView = name;
  for (const one of VIEWS) byId(`view-${one}`).hidden = one !== name;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.getAttribute('href') === `#${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const title = byId(`title-${name}`);
  document.title = `${title.textContent} – weir`;
  if (focus) {
    title.classList.toggle('by-address', !isByLink);
    isByLink = false;
    scrollTo(0, 0);
    title.focus({ preventScroll: true });
  }
  views[name].open();
  views[name].point?.();
}

/** Returns the view that the URL selects, or undefined for an unknown view. */
function viewOfUrl(): ViewName | undefined {
  const name = location.hash.slice(1);
  return name === '' ? 'overview' : VIEWS.find((one) => one === name);
}

addEventListener('hashchange', () => {
  const name = viewOfUrl();
  if (name !== undefined && name !== currentView) show(name, true);
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && state.history.step > 0) void readHistory();
});
setInterval(refreshTimes, 1000);
show(viewOfUrl() ?? 'overview', false);
feed.restart();
