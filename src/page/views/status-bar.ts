import type { Overview, OverviewCaller } from '../../admin/page/messages.js';
import type { FeedState } from '../ask/live-feed.js';
import { button, byId, type Child, el, KeptPart } from '../dom/element.js';
import { sentence, stateOf } from '../dom/texts.js';
import { briefText } from '../text/shown-text.js';
import { clockText } from '../text/times.js';
import type { PageState } from './page-state.js';

/** What makes denials something other than the doing of callers. */
interface StoreTrouble {
  readonly kind: 'trouble';
  /** Whether weir says itself that it does not serve, and why. */
  readonly reason: string | undefined;
  readonly store: 'up' | 'partly away' | 'away';
  /** Since when this page has seen it, seconds since the epoch. */
  readonly since: number;
}

type Banner =
  | { readonly kind: 'lost'; readonly since: number }
  | { readonly kind: 'refused'; readonly status: number; readonly error: string }
  | StoreTrouble
  /** Another version than that the page is of; undefined: the server answers what the page cannot use. */
  | { readonly kind: 'other'; readonly version: string | undefined }
  | { readonly kind: 'none' };

/** The head of the page: whether the server answers, who asks, and what to do where it does not. */
export class StatusBar {
  readonly #state: PageState;
  readonly #banner: KeptPart<Banner>;
  readonly #tryNow: () => void;
  #kind: FeedState['kind'] = 'connecting';
  #retryAt = 0;
  #trouble: StoreTrouble | undefined;
  /** What is wrong with the connection. */
  #fault: Banner = { kind: 'none' };
  #isUnusable = false;
  /** That of the first answer, which the page is of. */
  #version: string | undefined;

  constructor(state: PageState, tryNow: () => void, askToken: (sentence: string) => void) {
    this.#state = state;
    this.#tryNow = tryNow;
    this.#banner = new KeptPart(byId('banner'), (banner) => this.#bannerOf(banner, askToken));
    byId('reload').addEventListener('click', tryNow);
    setInterval(() => this.#tick(), 1000);
  }

  feed(feed: FeedState): void {
    const was = this.#kind;
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
    if (isBack && (was === 'lost' || was === 'refused')) this.#state.announce('weir answers again.');
  }

  /** Shows who asks, and which version answers. */
  update(): void {
    const { caller, overview } = this.#state;
    this.#version ??= overview?.version;
    byId('version').textContent = overview === undefined ? '' : overview.version;
    byId('who').textContent = caller === undefined ? '' : whoText(caller);
    this.#showToken();
    this.#trouble = overview === undefined ? undefined : troubleOf(overview, this.#trouble);
    this.#showBanner();
  }

  /** A token can be given up whether it leads to an answer or not. */
  #showToken(): void {
    byId('token-buttons').hidden = this.#state.client.token === undefined;
  }

  /** Of a server that does not answer only that is known, and of one that is another only that. */
  #showBanner(): void {
    const version = this.#state.overview?.version;
    const isOther = version !== this.#version;
    if (this.#fault.kind !== 'none') this.#banner.show(this.#fault);
    else if (isOther || this.#isUnusable)
      this.#banner.show({ kind: 'other', version: isOther ? version : undefined });
    else this.#banner.show(this.#trouble ?? { kind: 'none' });
  }

  #bannerOf(banner: Banner, askToken: (sentence: string) => void): readonly Child[] {
    if (banner.kind === 'none') return [];
    if (banner.kind === 'trouble') return [troubleShown(banner)];
    if (banner.kind === 'other') {
      const { version } = banner;
      const why =
        version === undefined
          ? 'This page and the server are of different versions, or something is wrong: load the page again.'
          : `weir is now ${briefText(version)}: load this page again.`;
      return [
        el('p', {}, el('strong', {}, why), ' What is shown may be wrong until then.'),
        button('Load the page again', () => location.reload(), { class: 'primary' }),
      ];
    }
    const tryNow = button('Try now', this.#tryNow);
    if (banner.kind === 'lost') {
      const marked = this.#state.overview === undefined ? '' : ' What is shown is as it was then.';
      return [
        el(
          'p',
          {},
          el('strong', {}, `weir does not answer since ${clockText(banner.since / 1000)}; trying again.`),
          marked,
          ' ',
          el('span', { id: 'retry', 'aria-hidden': 'true' }),
        ),
        tryNow,
      ];
    }
    if (banner.status !== 401)
      return [el('div', {}, el('strong', {}, 'weir refuses to answer:'), sentence(banner.error)), tryNow];
    const enter = button('Enter a token', () => askToken(banner.error), { class: 'primary' });
    return [el('div', {}, el('strong', {}, 'weir wants a token.'), sentence(banner.error)), enter];
  }

  #tick(): void {
    const retry = document.getElementById('retry');
    if (retry === null) return;
    const seconds = Math.ceil((this.#retryAt - Date.now()) / 1000);
    const text = seconds > 0 ? `Next try in ${seconds} s.` : 'Trying…';
    if (retry.textContent !== text) retry.textContent = text;
  }
}

/** What is wrong, as `before` since the same time where that was the same. */
function troubleOf(overview: Overview, before: StoreTrouble | undefined): StoreTrouble | undefined {
  const { health, store: seen, now } = overview;
  const isPartly = seen.nodes.some(({ up, of }) => up < of);
  const store = !seen.up ? 'away' : isPartly ? 'partly away' : 'up';
  const isServing = health.status === 'SERVING';
  if (store === 'up' && isServing) return undefined;
  return {
    kind: 'trouble',
    reason: isServing ? undefined : (health.reason ?? 'it does not say why'),
    store,
    since: before?.since ?? now,
  };
}

function troubleShown({ reason, store, since }: StoreTrouble): HTMLElement {
  const what =
    reason !== undefined
      ? 'weir does not serve'
      : store === 'away'
        ? 'The store is away'
        : 'A part of the store is away';
  return el(
    'div',
    {},
    el('strong', {}, `${what}, seen here since ${clockText(since)}.`),
    reason === undefined ? undefined : sentence(reason),
    store === 'up'
      ? undefined
      : el(
          'p',
          {},
          'Without it on_store_failure decides: denials now may not be the doing of those who are denied.',
        ),
  );
}

function whoText({ by, right }: OverviewCaller): string {
  const name = by === 'loopback' ? 'On this machine' : `Token ${briefText(by)}`;
  return `${name}: may ${right === 'write' ? 'look and change' : 'look only'}`;
}

function connectionOf({ kind }: FeedState): HTMLElement {
  switch (kind) {
    case 'live':
      return stateOf('good', 'live');
    case 'polling':
      return stateOf('watch', 'asked every 5 s');
    case 'paused':
      return stateOf('none', 'paused');
    case 'unusable':
      return stateOf('bad', 'not understood');
    case 'connecting':
      return stateOf('none', 'connecting');
    case 'lost':
      return stateOf('bad', 'no answer');
    case 'refused':
      return stateOf('bad', 'refused');
  }
}
