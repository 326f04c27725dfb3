import type { Control, ControlKind, IdentityPart } from '../../limiter/control.js';

/** An entry of the log of controls; see control-start.lua. */
export interface ControlRow {
  readonly version: number;
  /** End of the control on the clock of the scripts, in microseconds. */
  readonly expiresAtMicros: number;
  readonly name: string;
  readonly what:
    | { readonly kind: 'set'; readonly control: Control }
    | { readonly kind: 'ended' }
    /** Undefined if there were too many keys to list. */
    | { readonly kind: 'touched'; readonly keys: readonly string[] | undefined };
}

/** The reply to a poll. */
export interface ControlsPolled {
  /** Time on the clock of the scripts, in microseconds. */
  readonly nowMicros: number;
  /** The latest version of the log. */
  readonly version: number;
  /** Whether the log does not contain the given mark, so that the rows start at the beginning of the log. */
  readonly startsOver: boolean;
  /** The reply contains all entries up to this version. */
  readonly at: number;
  /** Mark of the latest version; '' if the log is empty. */
  readonly mark: string;
  readonly rows: readonly ControlRow[];
}

/** Encodes a control as compact JSON, because the log may contain ten thousand controls. */
export function controlText({ kind, domain, identity, reason, by, durationMicros }: Control): string {
  const parts = identity.map(({ key, value, secret }) => (secret ? [key, value, 1] : [key, value]));
  return JSON.stringify([kind, domain, parts, reason, by, durationMicros]);
}

/** Parses a reply of control-poll.lua; undefined if it is malformed. Rows of unknown kinds are skipped. */
export function readPolled(text: string): ControlsPolled | undefined {
  const lines = text.split('\n');
  const header = /^(\d{1,16}) (\d{1,15}) ([01]) (\d{1,15}) (?:-|([\w-]{1,64}))$/.exec(lines[0] ?? '');
  if (header === null) return undefined;
  const [, now, version, startsOver, at, mark = ''] = header;
  const rows: ControlRow[] = [];
  for (const line of lines.slice(1)) {
    const row = readRow(line);
    if (row !== undefined) rows.push(row);
  }
  return {
    nowMicros: Number(now),
    version: Number(version),
    startsOver: startsOver === '1',
    at: Number(at),
    mark,
    rows,
  };
}

/** Parses a reply of control-change.lua: the version of each change, or 0 if it was refused. */
export function readChanged(text: string, changes: number): readonly number[] | undefined {
  const numbers = text.split(' ').map(Number);
  return numbers.length === changes + 1 && numbers.every(Number.isSafeInteger) ? numbers.slice(1) : undefined;
}

function readRow(line: string): ControlRow | undefined {
  const [, version, ends, what, name, id, text] =
    /^(\d{1,15}) (\d{1,16}) ([a-z]) (\S{1,64}) (\S{1,64}) (.*)$/s.exec(line) ?? [];
  if (name === undefined || id === undefined || text === undefined) return undefined;
  const row = { version: Number(version), expiresAtMicros: Number(ends), name };
  if (what === 'g') return { what: { kind: 'ended' }, ...row };
  const value = parsed(text);
  if (what === 'c') {
    const control = controlOf(id, value);
    return control && { what: { kind: 'set', control }, ...row };
  }
  if (what !== 't') return undefined;
  return { what: { kind: 'touched', keys: isTexts(value) ? value : undefined }, ...row };
}

function controlOf(id: string, value: unknown): Control | undefined {
  if (!Array.isArray(value)) return undefined;
  const [kind, domain, parts, reason, by, durationMicros] = value as unknown[];
  const identity = identityOf(parts);
  if (!isKind(kind) || identity === undefined || !isTexts([domain, reason, by])) return undefined;
  if (!Number.isSafeInteger(durationMicros)) return undefined;
  const texts = { domain: domain as string, reason: reason as string, by: by as string };
  return { id, kind, identity, ...texts, durationMicros: durationMicros as number };
}

function identityOf(value: unknown): readonly IdentityPart[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const identity: IdentityPart[] = [];
  for (const part of value as unknown[]) {
    if (!Array.isArray(part) || !isTexts(part.slice(0, 2)) || part.length < 2) return undefined;
    const [key, text] = part as [string, string];
    identity.push({ key, value: text, secret: part[2] === 1 });
  }
  return identity;
}

function isKind(value: unknown): value is ControlKind {
  return value === 'block' || value === 'allow';
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
