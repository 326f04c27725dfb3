import type { TopAnswer, TopBucket } from '../../admin/buckets/messages.js';
import { button, byId, type Child, el, KeptPart, spoken } from '../dom/element.js';
import { tableOf } from '../dom/table.js';
import { entriesShown, nameOf, sentence, serverNow } from '../dom/texts.js';
import { whyNotLookedUp } from '../text/entry-lines.js';
import { countText, shareText } from '../text/numbers.js';
import { briefText } from '../text/shown-text.js';
import { clockText, spanText } from '../text/times.js';
import { fillDomains } from './domain-select.js';
import type { PageState, View } from './page-state.js';
import { trafficShown } from './traffic-element.js';

/** Refresh interval while the view is open, in milliseconds. */
const REFRESH_MS = 5000;
const ROWS = 50;
/** Number of rows that a phone shows until the user asks for all. page.css hides the other rows. */
const FIRST_ROWS = 10;

/** The view of the buckets that are denied or used most. */
export class TopView implements View {
  readonly #state: PageState;
  readonly #domain = byId('top-domain') as HTMLSelectElement;
  readonly #by = byId('top-by') as HTMLSelectElement;
  readonly #of = byId('top-of') as HTMLSelectElement;
  readonly #about = byId('top-about');
  readonly #place = byId('top-rows');
  readonly #rows: KeptPart<Pick<TopAnswer, 'top' | 'by' | 'of'>>;
  readonly #failed = byId('top-failed');
  #timer: ReturnType<typeof setInterval> | undefined;
  #asked = 0;
  /** The choices of the question that has not been answered yet. */
  #underWay: string | undefined;
  /** The choices, the time and the description of the rows that are shown. */
  #shown: { readonly choice: string; readonly at: number; readonly about: string } | undefined;
  #standsStill = false;
  /** Rows that are expanded on a phone, by their content. */
  readonly #unfolded = new Set<string>();
  /** A button that shows the rows after the first ten on a phone. */
  readonly #rest = button('', () => this.#showWhole(), { class: 'top-rest' });

  constructor(state: PageState) {
    this.#state = state;
    const rows = el('div');
    this.#place.append(rows, this.#rest);
    this.#rows = new KeptPart(rows, (answer) => this.#table(answer));
    byId('top-form').addEventListener('change', () => void this.#ask());
    byId('top-form').addEventListener('submit', (event) => event.preventDefault());
    this.#place.addEventListener('focusout', ({ relatedTarget }) => {
      const staysInside = relatedTarget instanceof Node && this.#place.contains(relatedTarget);
      if (this.#standsStill && !staysInside && document.hasFocus()) void this.#ask();
    });
  }

  open(): void {
    this.update();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      if (document.hidden) return;
      if (this.#isUsed()) this.#standStill();
      // A second question would discard the pending answer, so a slow server would never be heard.
      else if (this.#underWay !== this.#choice()) void this.#ask();
    }, REFRESH_MS);
    void this.#ask();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#unfolded.clear();
  }

  update(): void {
    fillDomains(this.#domain, this.#state.domainsInForce(), 'all domains');
  }

  /** Rows do not change while the focus is inside them. */
  #isUsed(): boolean {
    return this.#place.contains(document.activeElement);
  }

  #standStill(): void {
    if (this.#shown === undefined) return;
    this.#standsStill = true;
    const { about, at } = this.#shown;
    const still = `Updates stopped at ${clockText(at)} and resume when you leave the rows.`;
    this.#say(`${about} ${still}`);
  }

  #say(about: string): void {
    if (this.#about.textContent !== about) this.#about.textContent = about;
  }

  #choice(): string {
    return JSON.stringify([this.#by.value, this.#of.value, this.#domain.value]);
  }

  async #ask(): Promise<void> {
    const number = ++this.#asked;
    if (this.#state.overview?.keeps.top === 0) {
      this.#failed.replaceChildren(
        sentence(
          'TOP_BUCKETS is 0, so weir does not record which callers are denied most. Set TOP_BUCKETS to ' +
            '500, for example.',
        ),
      );
      this.#place.hidden = true;
      return;
    }
    const choice = this.#choice();
    this.#underWay = choice;
    if (this.#shown?.choice !== choice) this.#say('Loading…');
    const answer = await this.#state.client.ask<TopAnswer>('top', {
      by: this.#by.value,
      of: this.#of.value,
      limit: ROWS,
      ...(this.#domain.value !== '' && { domain: this.#domain.value }),
    });
    // The choices may have changed in the meantime.
    if (number !== this.#asked) return;
    this.#underWay = undefined;
    this.#failed.replaceChildren(...(answer.ok ? [] : [sentence(answer.error)]));
    if (!answer.ok) {
      this.#say(this.#shown?.about ?? '');
      return;
    }
    if (this.#isUsed() && this.#shown?.choice === choice) {
      this.#standStill();
      return;
    }
    const { top, by, of, covers, sampled, error } = answer.body;
    const exact = error.denied === 0 && error.used === 0 && sampled <= 1;
    const about =
      `${exact ? 'Exact' : 'Estimates'}, based on the last ${spanText(covers)}.` +
      (sampled > 1 ? ` weir counted a sample of 1 in ${countText(Math.round(sampled))} decisions.` : '');
    if (this.#shown?.choice !== choice) {
      this.#place.classList.remove('whole');
      this.#unfolded.clear();
    }
    this.#shown = { choice, at: serverNow(), about };
    this.#standsStill = false;
    this.#say(about);
    this.#place.hidden = false;
    this.#rest.hidden = top.length <= FIRST_ROWS || this.#place.classList.contains('whole');
    this.#rest.textContent = `Show all ${countText(top.length)}`;
    this.#rows.show({ top, by, of });
  }

  #table({ top, by, of }: Pick<TopAnswer, 'top' | 'by' | 'of'>): readonly Child[] {
    if (top.length === 0 || (by === 'denied' && top.every(({ denied }) => denied === 0))) {
      const what = by === 'denied' ? 'was denied' : 'sent a request that matched a limit';
      return [
        el('p', { class: 'empty' }, `No caller ${what} in the last ${of}.`),
        this.#tableOf(top, by, of),
      ];
    }
    return [this.#tableOf(top, by, of)];
  }

  #tableOf(top: readonly TopBucket[], by: string, of: string): Child {
    if (top.length === 0) return undefined;
    const denied = {
      heading: 'Denied',
      figures: true,
      cell: (row: TopBucket) => estimate(row.denied, row.denied_error),
    };
    const used = {
      heading: 'Used',
      figures: true,
      cell: (row: TopBucket) => estimate(row.used, row.used_error),
    };
    return tableOf<TopBucket>(
      {
        caption: `Buckets ${by === 'denied' ? 'denied' : 'used'} most in the last ${of}`,
        captionShown: true,
        columns: [
          { heading: 'Entries', cell: (row) => this.#entries(row) },
          denied,
          used,
          { heading: 'Share of limit', figures: true, cell: ({ used_ratio: share }) => shareText(share) },
          { heading: 'Rule', cell: (row) => this.#rule(row) },
          { heading: 'Domain', cell: ({ domain }) => nameOf(domain) },
          { heading: 'Bucket', cell: (row) => this.#link(row) },
        ],
      },
      top,
    );
  }

  /** Shows the entries, with a button that expands the row on a phone. */
  #entries({ domain, rule, limit, entries }: TopBucket): readonly Child[] {
    const row = JSON.stringify([domain, rule, limit, entries]);
    const unfold = button(
      'More',
      () => {
        const isUnfolded = !this.#unfolded.delete(row);
        if (isUnfolded) this.#unfolded.add(row);
        unfold.setAttribute('aria-expanded', String(isUnfolded));
      },
      { class: 'unfolds', 'aria-expanded': String(this.#unfolded.has(row)) },
    );
    unfold.append(spoken(' about these entries'));
    return [entriesShown(entries), unfold];
  }

  #showWhole(): void {
    this.#place.classList.add('whole');
    this.#rest.hidden = true;
    const next = this.#place.querySelectorAll<HTMLElement>('.unfolds')[FIRST_ROWS];
    next?.focus();
  }

  #rule(row: TopBucket): Child | readonly Child[] {
    const { limit } = row;
    if (limit === undefined) return trafficShown(this.#state.wordsOf(row));
    return [el('em', {}, 'override:'), ' ', nameOf(limit)];
  }

  #link({ domain, entries, limit }: TopBucket): Child {
    const why = whyNotLookedUp(entries);
    if (why !== undefined) return el('span', { class: 'note' }, why);
    const open = button('Show', () => this.#state.openBucket(domain, entries, limit));
    open.append(
      spoken(` the bucket of ${briefText(entries.map(({ key, value }) => `${key}=${value}`).join(' '))}`),
    );
    return open;
  }
}

/** Shows a number that may be too high by `error`. */
function estimate(count: number, error: number): string {
  return error > 0 ? `${countText(Math.max(0, count - error))} – ${countText(count)}` : countText(count);
}
