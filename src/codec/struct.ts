/** google.protobuf.Value as proto-loader reads and writes it. At most one field is set. */
export interface ProtoValue {
  readonly nullValue?: number;
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: ProtoStruct;
  readonly listValue?: { readonly values?: readonly ProtoValue[] };
}

/** google.protobuf.Struct as proto-loader reads and writes it. */
export interface ProtoStruct {
  readonly fields?: Readonly<Record<string, ProtoValue>>;
}

/** Converts a JSON object to a Struct. Omits members that have no JSON value (undefined, functions). */
export function toStruct(object: Readonly<Record<string, unknown>>): ProtoStruct {
  const fields: [string, ProtoValue][] = [];
  for (const [key, member] of Object.entries(object)) {
    const value = toValue(member);
    if (value !== undefined) fields.push([key, value]);
  }
  return { fields: Object.fromEntries(fields) };
}

/** Converts a Struct to a JSON object. */
export function fromStruct(struct: ProtoStruct): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(struct.fields ?? {}).map(([key, value]) => [key, fromValue(value)]),
  );
}

function toValue(member: unknown): ProtoValue | undefined {
  if (member === null) return { nullValue: 0 };
  switch (typeof member) {
    case 'number':
      return { numberValue: member };
    case 'string':
      return { stringValue: member };
    case 'boolean':
      return { boolValue: member };
    case 'object':
      if (Array.isArray(member)) {
        return { listValue: { values: member.map((item: unknown) => toValue(item) ?? { nullValue: 0 }) } };
      }
      return { structValue: toStruct(member as Record<string, unknown>) };
    default:
      return undefined;
  }
}

function fromValue(value: ProtoValue): unknown {
  if (value.numberValue !== undefined) return value.numberValue;
  if (value.stringValue !== undefined) return value.stringValue;
  if (value.boolValue !== undefined) return value.boolValue;
  if (value.structValue !== undefined) return fromStruct(value.structValue);
  if (value.listValue !== undefined) return (value.listValue.values ?? []).map(fromValue);
  return null;
}
