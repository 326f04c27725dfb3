import { type Child, el } from './element.js';

/** A column of a table. */
export interface TableColumn<T> {
  readonly heading: string;
  /** Whether the column contains numbers, which are aligned to the right. */
  readonly figures?: boolean;
  cell(row: T): Child | readonly Child[];
}

/** Definition of a table. The first column is the header of its row. */
export interface TableOptions<T> {
  readonly caption: string;
  /**
   * Whether the caption is visible. A hidden caption is only read by screen readers, for example below a heading with
   * the same text.
   */
  readonly captionShown?: boolean;
  readonly columns: readonly TableColumn<T>[];
  /** Returns the content of a full-width cell below a row. */
  below?(row: T): readonly Child[];
}

/**
 * Creates a table. On narrow screens the cells are stacked with their headings. The explicit roles keep it a table for
 * screen readers.
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
