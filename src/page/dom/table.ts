import { type Child, el } from './element.js';

/** A column of a table. */
export interface TableColumn<T> {
  readonly heading: string;
  /** Figures stand at the right side. */
  readonly figures?: boolean;
  cell(row: T): Child | readonly Child[];
}

/** What a table is made of. The first column names its row. */
export interface TableOptions<T> {
  readonly caption: string;
  /** Whether the caption is seen, or only read out, as where a heading above says the same. */
  readonly captionShown?: boolean;
  readonly columns: readonly TableColumn<T>[];
  /** A cell over the whole width below a row. */
  below?(row: T): readonly Child[];
}

/**
 * A table, whose cells stand below each other with their headings on narrow screens: roles keep it a table for screen
 * readers there.
 */
export function tableOf<T>(options: TableOptions<T>, rows: readonly T[]): HTMLTableElement {
  const { caption, captionShown, columns } = options;
  return el(
    'table',
    { role: 'table' },
    el('caption', captionShown === true ? {} : { class: 'spoken' }, caption),
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...columns.map(headCell))),
    el('tbody', { role: 'rowgroup' }, ...rows.flatMap((row) => rowsOf(options, row))),
  );
}

function headCell<T>({ heading, figures }: TableColumn<T>): HTMLElement {
  return el(
    'th',
    { scope: 'col', role: 'columnheader', class: figures === true ? 'figures' : undefined },
    heading,
  );
}

function rowsOf<T>({ columns, below }: TableOptions<T>, row: T): readonly HTMLElement[] {
  const cells = columns.map(({ heading, figures, cell }, at) => {
    const made = cell(row);
    const children = Array.isArray(made) ? (made as readonly Child[]) : [made as Child];
    const attributes = { class: figures === true ? 'figures' : undefined, 'data-heading': heading };
    return at === 0
      ? el('th', { scope: 'row', role: 'rowheader', ...attributes }, ...children)
      : el('td', { role: 'cell', ...attributes }, ...children);
  });
  const under = below?.(row) ?? [];
  const first = el('tr', { role: 'row', class: under.length > 0 ? 'with-below' : undefined }, ...cells);
  if (under.length === 0) return [first];
  return [
    first,
    el('tr', { role: 'row', class: 'below' }, el('td', { role: 'cell', colspan: columns.length }, ...under)),
  ];
}

/** A table that scrolls by itself where it is wider than the screen, by keyboard as well. */
export function scrolling(table: HTMLTableElement): HTMLElement {
  const label = table.caption?.textContent ?? 'table';
  return el('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': label }, table);
}
