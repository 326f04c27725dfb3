import fc from 'fast-check';

/** A field as bytes, including its tag. */
type FieldBytes = fc.Arbitrary<Uint8Array>;

/** Encodes a varint, with `padding` more bytes than necessary. */
export function varint(value: bigint, padding = 0): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  } while (rest > 0n);
  for (let i = 0; i < padding && bytes.length < 10; i++) bytes.push(0x80);
  bytes.push((bytes.pop() as number) & 0x7f);
  return bytes;
}

const uint64 = fc.oneof(
  fc.constantFrom(0n, 1n, 127n, 128n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
);
/** Mostly 0: protobufjs misreads padded numbers, which must not hide other differences. */
const padding = fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, fc.nat(9));

function tagged(number: number, wireType: number, body: FieldBytes): FieldBytes {
  return fc
    .tuple(padding, body)
    .map(([extra, bytes]) => Uint8Array.from([...varint(BigInt(number * 8 + wireType), extra), ...bytes]));
}

function varintField(number: number): FieldBytes {
  return tagged(
    number,
    0,
    fc.tuple(uint64, padding).map(([value, extra]) => Uint8Array.from(varint(value, extra))),
  );
}

function bytesField(number: number, content: FieldBytes): FieldBytes {
  return tagged(
    number,
    2,
    fc
      .tuple(content, padding)
      .map(([bytes, extra]) => Uint8Array.from([...varint(BigInt(bytes.length), extra), ...bytes])),
  );
}

function fixedField(number: number, wireType: 1 | 5): FieldBytes {
  const length = wireType === 1 ? 8 : 4;
  return tagged(number, wireType, fc.uint8Array({ minLength: length, maxLength: length }));
}

function groupField(number: number, content: FieldBytes): FieldBytes {
  return tagged(
    number,
    3,
    content.map((bytes) => Uint8Array.from([...bytes, ...varint(BigInt(number * 8 + 4))])),
  );
}

function anyOf(fields: readonly FieldBytes[], maxLength: number): FieldBytes {
  return fc.array(fc.oneof(...fields), { maxLength }).map((parts) => Buffer.concat(parts));
}

/** Fields with unknown field numbers. */
function unknownFields(depth: number): FieldBytes[] {
  const fields = [varintField(9), bytesField(15, fc.uint8Array({ maxLength: 5 }))];
  fields.push(fixedField(16, 1), fixedField(2_000, 5));
  if (depth > 0) fields.push(groupField(100_000, anyOf(unknownFields(depth - 1), 2)));
  return fields;
}

/**
 * Generates well-formed bytes of a RateLimitRequest that no encoder writes: repeated fields in any order, unknown
 * fields, numbers of any size, and text that is not UTF-8.
 */
export function arbitraryWireRequest(): FieldBytes {
  const unknown = unknownFields(3);
  const text = fc.oneof(
    fc.string({ maxLength: 80 }).map((value) => Buffer.from(value)),
    fc.uint8Array({ maxLength: 10 }),
  );
  const entry = anyOf([bytesField(1, text), bytesField(2, text), ...unknown], 4);
  const override = anyOf([varintField(1), varintField(2), ...unknown], 3);
  const wrapper = anyOf([varintField(1), ...unknown], 2);
  const descriptor = anyOf(
    [
      bytesField(1, entry),
      bytesField(1, entry),
      bytesField(2, override),
      bytesField(3, wrapper),
      varintField(4),
      ...unknown,
    ],
    5,
  );
  return anyOf(
    [bytesField(1, text), bytesField(2, descriptor), bytesField(2, descriptor), varintField(3), ...unknown],
    5,
  );
}

/** A change of a few bytes. Positions are taken modulo the length. */
type Damage =
  | { readonly kind: 'set'; readonly at: number; readonly byte: number }
  | { readonly kind: 'insert'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly kind: 'cut'; readonly at: number; readonly count: number }
  | { readonly kind: 'repeat'; readonly at: number; readonly count: number }
  | { readonly kind: 'end'; readonly at: number };

const damage: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), at: fc.nat(), byte: fc.nat(255) }),
  fc.record({
    kind: fc.constant('insert' as const),
    at: fc.nat(),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant('cut' as const), at: fc.nat(), count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ kind: fc.constant('repeat' as const), at: fc.nat(), count: fc.integer({ min: 1, max: 30 }) }),
  fc.record({ kind: fc.constant('end' as const), at: fc.nat() }),
);

function apply(bytes: Uint8Array, one: Damage): Uint8Array {
  const at = bytes.length === 0 ? 0 : one.at % bytes.length;
  const before = bytes.subarray(0, at);
  switch (one.kind) {
    case 'set':
      return Buffer.concat([before, Uint8Array.of(one.byte), bytes.subarray(at + 1)]);
    case 'insert':
      return Buffer.concat([before, one.bytes, bytes.subarray(at)]);
    case 'cut':
      return Buffer.concat([before, bytes.subarray(at + one.count)]);
    case 'repeat':
      return Buffer.concat([before, bytes.subarray(at, at + one.count), bytes.subarray(at)]);
    case 'end':
      return before;
  }
}

/** Generates the same bytes with a few changes. */
export function damaged(whole: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> {
  return fc
    .tuple(whole, fc.array(damage, { minLength: 1, maxLength: 3 }))
    .map(([bytes, changes]) => Uint8Array.from(changes.reduce(apply, bytes)));
}
