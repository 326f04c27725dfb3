import { type ComponentChildren, Fragment } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { countText } from '../text/numbers.js';

/** A column of a table: either cells, or figures, which are aligned to the right. */
export interface TableColumn<T> {
  readonly heading: string;
  readonly cell?: (row: T) => ComponentChildren;
  readonly figures?: (row: T) => ComponentChildren;
}

interface TableProps<T> {
  readonly caption: string;
  /** Whether the caption is visible, and not only read by screen readers, below a heading with the same text. */
  readonly captionShown?: boolean;
  /** The first column is the header of its row. */
  readonly columns: readonly TableColumn<T>[];
  readonly rows: readonly T[];
  /** Returns the identity of a row, so that a focused element follows its row when rows change places. */
  readonly keyOf?: (row: T) => string;
  /** Returns the content of a full-width cell below a row. */
  readonly below?: (row: T) => ComponentChildren;
}

/** A table. On narrow screens, page.css stacks the cells with their headings. */
export function Table<T>({ caption, captionShown, columns, rows, keyOf, below }: TableProps<T>) {
  return (
    <table>
      <caption class={captionShown ? '' : 'spoken'}>{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ heading, figures }) => (
            <th key={heading} scope="col" class={figures && 'figures'}>
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <Fragment key={keyOf?.(row) ?? at}>
            <tr>
              {columns.map(({ heading, cell, figures }, column) => {
                const Cell = column === 0 ? 'th' : 'td';
                return (
                  <Cell
                    key={heading}
                    scope={column === 0 ? 'row' : undefined}
                    class={figures && 'figures'}
                    data-heading={heading}
                  >
                    {(cell ?? figures)?.(row)}
                  </Cell>
                );
              })}
            </tr>
            {below && (
              <tr class="below">
                <td colSpan={columns.length}>{below(row)}</td>
              </tr>
            )}
          </Fragment>
        ))}
      </tbody>
    </table>
  );
}

interface RowLimitProps<T> {
  readonly rows: readonly T[];
  /** Number of rows that are shown first. */
  readonly first: number;
  readonly children: (rows: readonly T[]) => ComponentChildren;
}

/** Shows the first rows, and the others when the user clicks a button, which moves the focus to the table. */
export function RowLimit<T>({ rows, first, children }: RowLimitProps<T>) {
  const [isWhole, setWhole] = useState(false);
  const table = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (isWhole) table.current?.focus({ preventScroll: true });
  }, [isWhole]);
  return (
    <>
      <div ref={table} tabIndex={-1}>
        {children(isWhole ? rows : rows.slice(0, first))}
      </div>
      {!isWhole && rows.length > first && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {countText(rows.length)}
        </button>
      )}
    </>
  );
}
