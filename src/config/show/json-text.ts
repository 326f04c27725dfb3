/** A list whose items are produced one at a time. An `undefined` item is a pause and not part of the list. */
export class LazyList {
  readonly items: Iterable<unknown>;

  constructor(items: Iterable<unknown>) {
    this.items = items;
  }
}

/** An object that contains a {@link LazyList} or a lazy object. */
export class LazyObject {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(fields: Readonly<Record<string, unknown>>) {
    this.fields = fields;
  }
}

/**
 * Yields JSON in pieces, indented by two spaces as with JSON.stringify. Each value that is not lazy is one piece and
 * should be small. '' is a pause.
 *
 * @param indent of the line that the value starts in
 */
export function* jsonText(value: unknown, indent = ''): Generator<string> {
  const inner = `${indent}  `;
  if (value instanceof LazyList) {
    let any = false;
    for (const item of value.items) {
      if (item === undefined) {
        yield '';
        continue;
      }
      yield `${any ? ',' : '['}\n${inner}`;
      yield* jsonText(item, inner);
      any = true;
    }
    yield any ? `\n${indent}]` : '[]';
  } else if (value instanceof LazyObject) {
    let any = false;
    for (const [name, field] of Object.entries(value.fields)) {
      if (field === undefined) continue;
      yield `${any ? ',' : '{'}\n${inner}${JSON.stringify(name)}: `;
      yield* jsonText(field, inner);
      any = true;
    }
    yield any ? `\n${indent}}` : '{}';
  } else {
    yield JSON.stringify(value, null, 2).replaceAll('\n', `\n${indent}`);
  }
}
