import type { TopAnswer, TopBucket } from '../../admin/buckets/messages.js';
import { button, byId, type Child, el, RenderedPart, spoken } from '../dom/element.js';
import { tableOf } from '../dom/table.js';
import { entriesElement, nameOf, sentence, serverNow } from '../dom/texts.js';
import { noLookupReason } from '../text/entry-lines.js';
import { countText, shareText } from '../text/numbers.js';
import { briefText } from '../text/shown-text.js';
import { clockText, spanText } from '../text/times.js';
import { fillDomains } from './domain-select.js';
import type { PageState, View } from './page-state.js';
import { trafficElement } from './traffic-element.js';

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
  readonly #rows: RenderedPart<Pick<TopAnswer, 'top' | 'by' | 'of'>>;
  readonly #failed = byId('top-failed');
  #timer: ReturnType<typeof setInterval> | undefined;
  #asked = 0;
  /** The choices of the question that has not been answered yet. */
  #pendingChoice: string | undefined;
  /** The choices, the time and the description of the rows that are shown. */
  #shown: { readonly choice: string; readonly at: number; readonly about: string } | undefined;
  #isFrozen = false;
  /** Rows that are expanded on a phone, by their content. */
  readonly #expanded = new Set<string>();
  /** A button that shows the rows after the first ten on a phone. */
  readonly #rest = button('', () => this.#showAll(), { class: 'top-rest' });

  constructor(state: PageState) {
    this.#state = state;
    const rows = el('div');
    this.#place.append(rows, this.#rest);
    this.#rows = new RenderedPart(rows, (answer) => this.#table(answer));
    byId('top-form').addEventListener('change', () => void this.#ask());
    byId('top-form').addEventListener('submit', (event) => event.preventDefault());
    this.#place.addEventListener('focusout', ({ relatedTarget }) => {
      const staysInside = relatedTarget instanceof Node && this.#place.contains(relatedTarget);
      if (this.#isFrozen && !staysInside && document.hasFocus()) void this.#ask();
    });
  }

  open(): void {
    this.update();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      if (document.hidden) return;
      if (this.#isUsed()) this.#freeze();
      // A second question would discard the pending answer, so a slow server would never be heard.
      else if (this.#pendingChoice !== this.#choice()) void this.#ask();
    }, REFRESH_MS);
    void this.#ask();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#expanded.clear();
  }

  update(): void {
    fillDomains(this.#domain, this.#state.domainsInEffect(), 'all domains');
  }

  /** Rows do not change while the focus is inside them. */
  #isUsed(): boolean {
    return this.#place.contains(document.activeElement);
  }

  #freeze(): void {
    if (this.#shown === undefined) return;
    this.#isFrozen = true;
    const { about, at } = this.#shown;
    const still = `Updates paused at ${clockText(at)}. Updates resume when you move the focus out of the table.`;
    this.#describe(`${about} ${still}`);
  }

  #describe(about: string): void {
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
          'TOP_BUCKETS is 0, so weir does not record which callers are denied most often. To record ' +
            'these callers, set TOP_BUCKETS, for example to 500.',
        ),
      );
      this.#place.hidden = true;
      return;
    }
    const choice = this.#choice();
    this.#pendingChoice = choice;
    if (this.#shown?.choice !== choice) this.#describe('Loading…');
    const answer = await this.#state.client.ask<TopAnswer>('top', {
      by: this.#by.value,
      of: this.#of.value,
      limit: ROWS,
      ...(this.#domain.value !== '' && { domain: this.#domain.value }),
    });
    // The choices may have changed in the meantime.
    if (number !== this.#asked) return;
    this.#pendingChoice = undefined;
    this.#failed.replaceChildren(...(answer.ok ? [] : [sentence(answer.error)]));
    if (!answer.ok) {
      this.#describe(this.#shown?.about ?? '');
      return;
    }
    if (this.#isUsed() && this.#shown?.choice === choice) {
      this.#freeze();
      return;
    }
    const { top, by, of, covers, sampled, error } = answer.body;
    const exact = error.denied === 0 && error.used === 0 && sampled <= 1;
    const about =
      `${exact ? 'Exact numbers' : 'Estimates'} for the last ${spanText(covers)}.` +
      (sampled > 1 ? ` weir counted a sample of 1 in ${countText(Math.round(sampled))} decisions.` : '');
    if (this.#shown?.choice !== choice) {
      this.#place.classList.remove('whole');
      this.#expanded.clear();
    }
    this.#shown = { choice, at: serverNow(), about };
    this.#isFrozen = false;
    this.#describe(about);
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
        caption: `${by === 'denied' ? 'Buckets with the most denials' : 'Most used buckets'} in the last ${of}`,
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
    const expand = button(
      'More',
      () => {
        const isExpanded = !this.#expanded.delete(row);
        if (isExpanded) this.#expanded.add(row);
        expand.setAttribute('aria-expanded', String(isExpanded));
      },
      { class: 'unfolds', 'aria-expanded': String(this.#expanded.has(row)) },
    );
    expand.append(spoken(' about these entries'));
    return [entriesElement(entries), expand];
  }

  #showAll(): void {
    this.#place.classList.add('whole');
    this.#rest.hidden = true;
    const next = this.#place.querySelectorAll<HTMLElement>('.unfolds')[FIRST_ROWS];
    next?.focus();
  }

  #rule(row: TopBucket): Child | readonly Child[] {
    const { limit, plan } = row;
    if (limit === undefined) {
      const rule = trafficElement(this.#state.labelOf(row));
      return plan === undefined ? rule : [rule, ` plan ${briefText(plan)}`];
    }
    return [el('em', {}, 'override:'), ' ', nameOf(limit)];
  }

  #link({ domain, entries, limit }: TopBucket): Child {
    const why = noLookupReason(entries);
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
