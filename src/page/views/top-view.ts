import type { TopAnswer, TopBucket } from '../../server/buckets/messages.js';
import { button, byId, type Child, el, KeptPart, spoken } from '../dom/element.js';
import { tableOf } from '../dom/table.js';
import { entriesShown, nameOf, sentence } from '../dom/texts.js';
import { whyNotLookedUp } from '../text/entry-lines.js';
import { countText, shareText } from '../text/numbers.js';
import { briefText } from '../text/shown-text.js';
import { spanText } from '../text/times.js';
import { fillDomains } from './domain-select.js';
import type { PageState, View } from './page-state.js';
import { trafficShown } from './traffic-words.js';

/** How often it is asked again while it is seen, ms. */
const REFRESH_MS = 5000;
const ROWS = 50;

/** Whose buckets are denied, or used, most. */
export class TopView implements View {
  readonly #state: PageState;
  readonly #domain = byId('top-domain') as HTMLSelectElement;
  readonly #by = byId('top-by') as HTMLSelectElement;
  readonly #of = byId('top-of') as HTMLSelectElement;
  readonly #about = byId('top-about');
  readonly #rows: KeptPart<Pick<TopAnswer, 'top' | 'by' | 'of'>>;
  readonly #failed = byId('top-failed');
  #timer: ReturnType<typeof setInterval> | undefined;
  #asked = 0;

  constructor(state: PageState) {
    this.#state = state;
    this.#rows = new KeptPart(byId('top-rows'), (answer) => this.#table(answer));
    byId('top-form').addEventListener('change', () => void this.#ask());
    byId('top-form').addEventListener('submit', (event) => event.preventDefault());
  }

  open(): void {
    this.update();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      // Rows do not move under somebody who reads or uses them.
      const isUsed = byId('top-rows').contains(document.activeElement);
      if (!document.hidden && !isUsed) void this.#ask();
    }, REFRESH_MS);
    void this.#ask();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  update(): void {
    fillDomains(this.#domain, this.#state.domainsInForce(), 'all domains');
  }

  async #ask(): Promise<void> {
    const number = ++this.#asked;
    if (this.#state.overview?.keeps.top === 0) {
      this.#failed.replaceChildren(
        sentence('TOP_BUCKETS is 0, so weir does not count who is denied most: set it, to 500 for instance.'),
      );
      byId('top-rows').replaceChildren();
      return;
    }
    const answer = await this.#state.client.ask<TopAnswer>('top', {
      by: this.#by.value,
      of: this.#of.value,
      limit: ROWS,
      ...(this.#domain.value !== '' && { domain: this.#domain.value }),
    });
    // The choice may have changed meanwhile.
    if (number !== this.#asked) return;
    this.#failed.replaceChildren(...(answer.ok ? [] : [sentence(answer.error)]));
    if (!answer.ok) return;
    const { top, by, of, covers, sampled, error } = answer.body;
    const exact = error.denied === 0 && error.used === 0 && sampled <= 1;
    this.#about.textContent =
      `${exact ? 'Exact' : 'Estimates'}; counted for ${spanText(covers)} so far.` +
      (sampled > 1 ? ` One decision in ${countText(Math.round(sampled))} was counted, that many times.` : '');
    this.#rows.show({ top, by, of });
  }

  #table({ top, by, of }: Pick<TopAnswer, 'top' | 'by' | 'of'>): readonly Child[] {
    if (top.length === 0 || (by === 'denied' && top.every(({ denied }) => denied === 0))) {
      const what = by === 'denied' ? 'denied' : 'asked for anything that has a limit';
      return [el('p', { class: 'empty' }, `Nobody was ${what} in the last ${of}.`), this.#rest(top, by, of)];
    }
    return [this.#rest(top, by, of)];
  }

  #rest(top: readonly TopBucket[], by: string, of: string): Child {
    if (top.length === 0) return undefined;
    const denied = {
      heading: 'Denied',
      figures: true,
      cell: (row: TopBucket) => estimate(row.denied, row.denied_error),
    };
    const used = {
      heading: 'Let through',
      figures: true,
      cell: (row: TopBucket) => estimate(row.used, row.used_error),
    };
    return tableOf<TopBucket>(
      {
        caption: `Buckets that were ${by === 'denied' ? 'denied' : 'used'} most in the last ${of}`,
        captionShown: true,
        columns: [
          { heading: 'Entries', cell: ({ entries }) => entriesShown(entries) },
          denied,
          used,
          { heading: 'Of limit', figures: true, cell: ({ used_ratio: share }) => shareText(share) },
          { heading: 'Rule', cell: (row) => trafficShown(this.#state.wordsOf(row)) },
          { heading: 'Domain', cell: ({ domain }) => nameOf(domain) },
          { heading: 'Bucket', cell: (row) => this.#link(row) },
        ],
      },
      top,
    );
  }

  #link({ domain, entries }: TopBucket): Child {
    const why = whyNotLookedUp(entries);
    if (why !== undefined) return el('span', { class: 'note' }, why);
    const open = button('Show', () => this.#state.openBucket(domain, entries));
    open.append(
      spoken(` the bucket of ${briefText(entries.map(({ key, value }) => `${key}=${value}`).join(' '))}`),
    );
    return open;
  }
}

/** A number that may be too high by `error`. */
function estimate(count: number, error: number): string {
  return error > 0 ? `${countText(Math.max(0, count - error))} – ${countText(count)}` : countText(count);
}
