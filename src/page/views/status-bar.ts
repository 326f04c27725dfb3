import type { Overview, OverviewCaller } from '../../admin/page/messages.js';
import type { FeedState } from '../ask/live-feed.js';
import { button, byId, type Child, el, RenderedPart } from '../dom/element.js';
import { sentence, stateOf } from '../dom/texts.js';
import { briefText } from '../text/shown-text.js';
import { clockText } from '../text/times.js';
import type { PageState } from './page-state.js';

/** A problem because of which denials may not be caused by callers. */
interface ServingProblem {
  readonly kind: 'problem';
  /** The reason if weir itself reports that it is not serving. */
  readonly reason: string | undefined;
  readonly store: 'up' | 'partly unavailable' | 'unavailable';
  /** Time at which this page first saw the problem, in seconds since the epoch. */
  readonly since: number;
}

type Banner =
  | { readonly kind: 'lost'; readonly since: number }
  | { readonly kind: 'refused'; readonly status: number; readonly error: string }
  | ServingProblem
  /**
   * The server's version if it differs from the page's version. If undefined, the page cannot read the server's
   * answers.
   */
  | { readonly kind: 'version'; readonly version: string | undefined }
  | { readonly kind: 'none' };

/** The head of the page: the state of the connection, the user, and what to do about problems. */
export class StatusBar {
  readonly #state: PageState;
  readonly #banner: RenderedPart<Banner>;
  readonly #tryNow: () => void;
  #kind: FeedState['kind'] = 'connecting';
  #retryAt = 0;
  #problem: ServingProblem | undefined;
  /** The problem with the connection, if any. */
  #fault: Banner = { kind: 'none' };
  #isUnusable = false;
  /** Version in the first answer, which is also the version of the page. */
  #version: string | undefined;

  constructor(state: PageState, tryNow: () => void, askToken: (sentence: string) => void) {
    this.#state = state;
    this.#tryNow = tryNow;
    this.#banner = new RenderedPart(byId('banner'), (banner) => this.#bannerOf(banner, askToken));
    byId('reload').addEventListener('click', tryNow);
    setInterval(() => this.#tick(), 1000);
  }

  feed(feed: FeedState): void {
    const previous = this.#kind;
    this.#kind = feed.kind;
    const isOld = feed.kind === 'lost' || feed.kind === 'refused';
    if (feed.kind !== 'paused') {
      document.body.classList.toggle('old', isOld && this.#state.overview !== undefined);
    }
    byId('connection').replaceChildren(connectionOf(feed));
    if (feed.kind === 'lost') this.#retryAt = feed.retryAt;
    const isBack = feed.kind === 'live' || feed.kind === 'polling';
    if (feed.kind === 'unusable' || isBack) {
      this.#isUnusable = !isBack;
      this.#fault = { kind: 'none' };
    }
    if (feed.kind === 'lost') this.#fault = { kind: 'lost', since: feed.since };
    if (feed.kind === 'refused') this.#fault = { kind: 'refused', status: feed.status, error: feed.error };
    this.#showToken();
    this.#showBanner();
    this.#tick();
    if (isBack && (previous === 'lost' || previous === 'refused'))
      this.#state.announce('weir is answering again.');
  }

  /** Shows the user and the version of the server. */
  update(): void {
    const { caller, overview } = this.#state;
    this.#version ??= overview?.version;
    byId('version').textContent = overview === undefined ? '' : overview.version;
    byId('who').textContent = caller === undefined ? '' : whoText(caller);
    this.#showToken();
    this.#problem = overview === undefined ? undefined : problemOf(overview, this.#problem);
    this.#showBanner();
  }

  /** The user can remove the token even if the server does not answer. */
  #showToken(): void {
    byId('token-buttons').hidden = this.#state.client.token === undefined;
  }

  /**
   * Shows one banner. A problem with the connection hides all others, and a different version hides problems of the
   * store.
   */
  #showBanner(): void {
    const version = this.#state.overview?.version;
    const isOtherVersion = version !== this.#version;
    if (this.#fault.kind !== 'none') this.#banner.show(this.#fault);
    else if (isOtherVersion || this.#isUnusable)
      this.#banner.show({ kind: 'version', version: isOtherVersion ? version : undefined });
    else this.#banner.show(this.#problem ?? { kind: 'none' });
  }

  #bannerOf(banner: Banner, askToken: (sentence: string) => void): readonly Child[] {
    if (banner.kind === 'none') return [];
    if (banner.kind === 'problem') return [problemElement(banner)];
    if (banner.kind === 'version') {
      const { version } = banner;
      const why =
        version === undefined
          ? "This page cannot read weir's answers. Another version of weir may be running. Reload the page."
          : `weir now runs version ${briefText(version)}. Reload this page.`;
      return [
        el('p', {}, el('strong', {}, why), ' Until then, the data on this page may be wrong.'),
        button('Reload the page', () => location.reload(), { class: 'primary' }),
      ];
    }
    const tryNow = button('Retry now', this.#tryNow);
    if (banner.kind === 'lost') {
      const marked = this.#state.overview === undefined ? '' : ' This page shows the last known data.';
      return [
        el(
          'p',
          {},
          el('strong', {}, `weir has not answered since ${clockText(banner.since / 1000)}.`),
          marked,
          ' ',
          el('span', { id: 'retry', 'aria-hidden': 'true' }),
        ),
        tryNow,
      ];
    }
    if (banner.status !== 401)
      return [el('div', {}, el('strong', {}, 'weir refused the request:'), sentence(banner.error)), tryNow];
    const enter = button('Enter a token', () => askToken(banner.error), { class: 'primary' });
    return [el('div', {}, el('strong', {}, 'weir requires a token.'), sentence(banner.error)), enter];
  }

  #tick(): void {
    const retry = document.getElementById('retry');
    if (retry === null) return;
    const seconds = Math.ceil((this.#retryAt - Date.now()) / 1000);
    const text = seconds > 0 ? `Next attempt in ${seconds} s.` : 'Retrying…';
    if (retry.textContent !== text) retry.textContent = text;
  }
}

/** Returns the current problem, if any. Keeps the start time of `before`. */
function problemOf(overview: Overview, before: ServingProblem | undefined): ServingProblem | undefined {
  const { health, store: seen, now } = overview;
  const isPartly = seen.nodes.some(({ up, of }) => up < of);
  const store = !seen.up ? 'unavailable' : isPartly ? 'partly unavailable' : 'up';
  const isServing = health.status === 'SERVING';
  if (store === 'up' && isServing) return undefined;
  return {
    kind: 'problem',
    reason: isServing ? undefined : (health.reason ?? 'weir did not report a reason'),
    store,
    since: before?.since ?? now,
  };
}

function problemElement({ reason, store, since }: ServingProblem): HTMLElement {
  const what =
    reason !== undefined
      ? 'weir is not serving'
      : store === 'unavailable'
        ? 'The store is unavailable'
        : 'Part of the store is unavailable';
  return el(
    'div',
    {},
    el('strong', {}, `${what}. This page first noticed the problem at ${clockText(since)}.`),
    reason === undefined ? undefined : sentence(reason),
    store === 'up'
      ? undefined
      : el(
          'p',
          {},
          "While the store is unavailable, each rule's on_store_failure setting determines the answer. " +
            'The cause of a denial may be the store, not the caller.',
        ),
  );
}

function whoText({ by, right }: OverviewCaller): string {
  const name = by === 'loopback' ? 'Local access' : `Token ${briefText(by)}`;
  return `${name}: ${right === 'write' ? 'read and write' : 'read only'}`;
}

function connectionOf({ kind }: FeedState): HTMLElement {
  switch (kind) {
    case 'live':
      return stateOf('good', 'live');
    case 'polling':
      return stateOf('watch', 'polling every 5 s');
    case 'paused':
      return stateOf('none', 'paused');
    case 'unusable':
      return stateOf('bad', 'unreadable answer');
    case 'connecting':
      return stateOf('none', 'connecting');
    case 'lost':
      return stateOf('bad', 'no answer');
    case 'refused':
      return stateOf('bad', 'refused');
  }
}
