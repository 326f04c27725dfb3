/** A list whose items come one at a time; an item `undefined` is none, but a pause. */
export class LazyList {
  readonly items: Iterable<unknown>;

  constructor(items: Iterable<unknown>) {
    this.items = items;
  }
}

/** An object with a {@link LazyList}, or a lazy object, somewhere in it. */
export class LazyObject {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(fields: Readonly<Record<string, unknown>>) {
    this.fields = fields;
  }
}

/**
 * JSON in pieces, as JSON.stringify indents it by two spaces. What is not lazy is a piece: it should be small. '' is a
 * pause.
 *
 * @param indent of the line that it begins in
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
