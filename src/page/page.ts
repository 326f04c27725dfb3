import type { HistoryPoint, Overview, OverviewCaller } from '../admin/page/messages.js';
import { Client } from './ask/client.js';
import { LiveFeed } from './ask/live-feed.js';
import { byId } from './dom/element.js';
import { refreshTimes, setServerNow } from './dom/texts.js';
import { BlocksView } from './views/blocks-view.js';
import { BucketView } from './views/bucket-view.js';
import { ChangeDialog } from './views/change-dialog.js';
import { OverviewView } from './views/overview-view.js';
import { PageState, type View } from './views/page-state.js';
import { PolicyReader } from './views/policy-reader.js';
import { RulesView } from './views/rules-view.js';
import { StatusBar } from './views/status-bar.js';
import { TokenDialog } from './views/token-dialog.js';
import { TopView } from './views/top-view.js';

/* The page at `/` of the debug port: what is known of one server, and the views of it. */

const VIEWS = ['overview', 'rules', 'top', 'bucket', 'blocks'] as const;
type ViewName = (typeof VIEWS)[number];

const state = new PageState(new Client(location.pathname));
const dialog = new ChangeDialog(state);
const bucketView = new BucketView(state, dialog);
const views: Readonly<Record<ViewName, View>> = {
  overview: new OverviewView(state),
  rules: new RulesView(state),
  top: new TopView(state),
  bucket: bucketView,
  blocks: new BlocksView(state, dialog),
};
let seen: ViewName = 'overview';
const policyReader = new PolicyReader(state, updateAll, () => seen === 'rules');

const feed = new LiveFeed(state.client, {
  caller(caller: OverviewCaller) {
    state.caller = caller;
    bar.update();
    updateAll();
  },
  overview(overview: Overview) {
    const before = state.overview;
    state.overview = overview;
    setServerNow(overview.now);
    bar.update();
    summarizeChanges(before, overview);
    if (policiesChanged(before, overview)) void policyReader.read();
    updateAll();
    if (isPolled && Date.now() - historyAskedAt >= historyMs()) void readHistory();
  },
  point(point: HistoryPoint) {
    // A step is told of when it ends.
    setServerNow(point.ends);
    const follows = state.history.add(point);
    if (document.hidden && follows) return;
    // Sums of rules come with the whole history only.
    if (follows && Date.now() - historyAskedAt < historyMs()) views[seen].point?.();
    else void readHistory();
  },
  state(told) {
    const isNew = told.kind !== lastKind;
    lastKind = told.kind;
    isPolled = told.kind === 'polling';
    bar.feed(told);
    const isBack = told.kind === 'live' || told.kind === 'polling';
    state.isHeard = isBack;
    if (!isNew || !isBack) return;
    void readHistory();
    void policyReader.read();
    views[seen].open();
  },
});
let lastKind = '';
let isPolled = false;
/** How often the whole history is asked for, ms: with few rules at each step. */
const historyMs = (): number => ((state.sums?.length ?? 0) <= FEW_RULES ? 4000 : 14_000);
const FEW_RULES = 100;
let historyAskedAt = 0;

const token = new TokenDialog(state, () => {
  state.caller = undefined;
  lastKind = '';
  feed.restart();
});
const bar = new StatusBar(
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
  views[seen].point?.();
}

function policiesChanged(before: Overview | undefined, { policy }: Overview): boolean {
  const phases = (overview: Overview['policy']) => JSON.stringify(overview.domains);
  return (
    before !== undefined &&
    (before.policy.version !== policy.version || phases(before.policy) !== phases(policy))
  );
}

/** What changes while nobody looks is told once. */
function summarizeChanges(before: Overview | undefined, { policy, health, store }: Overview): void {
  if (before === undefined) return;
  if (before.health.status !== health.status) {
    state.announce(
      health.status === 'SERVING' ? 'weir serves again.' : `weir does not serve: ${health.reason}`,
    );
  } else if (before.store.up !== store.up) {
    state.announce(store.up ? 'The store is up again.' : 'The store is away.');
  } else if (before.policy.errors.length === 0 && policy.errors.length > 0) {
    state.announce('The policies were read again, and there are errors.');
  } else if (before.policy.version !== policy.version) {
    state.announce(`The policies have changed to version ${policy.version}.`);
  }
}

/** Whether a link of this page was followed last, and the address was not changed by hand or by the browser since. */
let isByLink = false;
addEventListener('click', ({ target }) => {
  isByLink = target instanceof Element && target.closest('a[href^="#"]') !== null;
});

/**
 * Shows one view. `focus`: somebody went there, so that reading goes on from its heading. Only who went there by a link
 * of the page, with the keyboard, needs to see where the focus is.
 */
function show(name: ViewName, focus: boolean): void {
  if (name !== seen) views[seen].close?.();
  seen = name;
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

/** The view that the address names; one that it does not know leaves the page as it is. */
function named(): ViewName | undefined {
  const name = location.hash.slice(1);
  return name === '' ? 'overview' : VIEWS.find((one) => one === name);
}

addEventListener('hashchange', () => {
  const name = named();
  if (name !== undefined && name !== seen) show(name, true);
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && state.history.step > 0) void readHistory();
});
setInterval(refreshTimes, 1000);
show(named() ?? 'overview', false);
feed.restart();
