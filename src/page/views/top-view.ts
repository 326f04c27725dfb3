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
import { trafficShown } from './traffic-words.js';

/** How often it is asked again while it is seen, ms. */
const REFRESH_MS = 5000;
const ROWS = 50;
/** So many rows are seen on a phone until all are wanted; page.css hides the others. */
const FIRST_ROWS = 10;

/** Whose buckets are denied, or used, most. */
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
  /** What is asked for by a question that is under way. */
  #underWay: string | undefined;
  /** What the rows that are shown were asked for by, since when they are as they are, and what is said about them. */
  #shown: { readonly choice: string; readonly at: number; readonly about: string } | undefined;
  #standsStill = false;
  /** Rows that are unfolded on a phone, by what they are about. */
  readonly #unfolded = new Set<string>();
  /** On a phone a button shows the rows after the first ten. */
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
      // Another question would make the answer void that is on its way, and a slow server would never be heard.
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

  /** Rows do not move under somebody who reads or uses them. */
  #isUsed(): boolean {
    return this.#place.contains(document.activeElement);
  }

  #standStill(): void {
    if (this.#shown === undefined) return;
    this.#standsStill = true;
    const { about, at } = this.#shown;
    const still = `The rows stand still since ${clockText(at)}, as long as you are in them.`;
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
        sentence('TOP_BUCKETS is 0, so weir does not count who is denied most: set it, to 500 for instance.'),
      );
      this.#place.hidden = true;
      return;
    }
    const choice = this.#choice();
    this.#underWay = choice;
    if (this.#shown?.choice !== choice) this.#say('Asking…');
    const answer = await this.#state.client.ask<TopAnswer>('top', {
      by: this.#by.value,
      of: this.#of.value,
      limit: ROWS,
      ...(this.#domain.value !== '' && { domain: this.#domain.value }),
    });
    // The choice may have changed meanwhile.
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
      `${exact ? 'Exact' : 'Estimates'}; counted for ${spanText(covers)} so far.` +
      (sampled > 1 ? ` One decision in ${countText(Math.round(sampled))} was counted, that many times.` : '');
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
      const what = by === 'denied' ? 'denied' : 'asked for anything that has a limit';
      return [
        el('p', { class: 'empty' }, `Nobody was ${what} in the last ${of}.`),
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
        caption: `Buckets that were ${by === 'denied' ? 'denied' : 'used'} most in the last ${of}`,
        captionShown: true,
        columns: [
          { heading: 'Entries', cell: (row) => this.#entries(row) },
          denied,
          used,
          { heading: 'Of limit', figures: true, cell: ({ used_ratio: share }) => shareText(share) },
          { heading: 'Rule', cell: (row) => this.#rule(row) },
          { heading: 'Domain', cell: ({ domain }) => nameOf(domain) },
          { heading: 'Bucket', cell: (row) => this.#link(row) },
        ],
      },
      top,
    );
  }

  /** The entries, with a button that shows the rest of the row on a phone. */
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
    return [el('em', {}, 'a limit that requests bring themselves:'), ' ', nameOf(limit)];
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

/** A number that may be too high by `error`. */
function estimate(count: number, error: number): string {
  return error > 0 ? `${countText(Math.max(0, count - error))} – ${countText(count)}` : countText(count);
}
