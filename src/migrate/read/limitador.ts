import { itemsAt, manifestsOf, textAt } from '../../config/manifests/manifest.js';
import type { YamlValue } from '../../config/yaml/yaml-document.js';
import type { Finding } from '../findings.js';
import {
  type Conversion,
  type ConvertedLimit,
  conversionFailure,
  limitFields,
  limitsIn,
  separateLimits,
  unmatchableReason,
  wholeNumber,
  windowOf,
} from './converted.js';
import { type Input, isLimits } from './input.js';

/** Fields of a limit (Kuadrant/limitador, limitador/src/limit.rs). `id` is only a name for its API. */
const FIELDS = ['namespace', 'max_value', 'seconds', 'conditions', 'variables', 'name', 'id'];

/** Matches an entry of the descriptor: `user`, `descriptors[0].user`, `descriptors[0]['user']`. */
const ENTRY = String.raw`(?:(?:descriptors\[(\d+)\])(?:\.([A-Za-z_]\w*)|\[\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*\])|([A-Za-z_][\w.-]*))`;
const TEXT = String.raw`(?:'([^'\\]*)'|"([^"\\]*)")`;
const VARIABLE = new RegExp(`^\\s*${ENTRY}\\s*$`);
const ENTRY_FIRST = new RegExp(`^\\s*${ENTRY}\\s*==\\s*${TEXT}\\s*$`);
const TEXT_FIRST = new RegExp(`^\\s*${TEXT}\\s*==\\s*${ENTRY}\\s*$`);

/** Maximum number of lists of keys that a sentence names. */
const SHOWN_LISTS = 3;

/**
 * Converts the limits of a limits file, or of a Limitador resource of Kubernetes. Returns undefined if an input
 * contains none.
 */
export function convertLimitador(input: Input): Conversion | undefined {
  const lists = [
    ...input.documents.filter(isLimits).map((document) => itemsAt(document)),
    ...manifestsOf(input.documents)
      .filter(({ kind }) => kind === 'Limitador')
      .map(({ fields }) => limitsIn(fields)),
  ];
  if (lists.length === 0) return undefined;
  const { limits, decide } = separateLimits(
    lists.flat().map((item) => readLimit(item, `${input.file}:${item.at.line}`)),
  );
  decide.push(...differentKeyFindings(limits, input.file));
  const advice = [
    {
      about: 'windows',
      text:
        'in Limitador, a window starts with the first request. In weir, windows start at multiples of ' +
        'their length, for example on the minute or hour. For a limit that works like a sliding window, ' +
        'set algorithm: token_bucket.',
    },
    {
      about: 'descriptors',
      text:
        'Limitador accepts entries in any order, and ignores additional entries. weir applies a limit ' +
        "only to descriptors with exactly the limit's entries, in the order of the policy. Configure " +
        'Envoy to send such descriptors.',
    },
  ];
  const source = `the Limitador limits in ${input.file}`;
  return { from: input, source, limits: withSameKeyOrder(limits), decide, advice };
}

/** Converts a limit. Returns a finding if weir cannot express it. */
function readLimit(given: YamlValue, about: string): ConvertedLimit | Finding {
  const item = limitFields(given, FIELDS, about);
  if ('text' in item) return item;
  const refuse = conversionFailure(about);
  const domain = textAt(item, 'namespace');
  if (domain === '')
    return refuse('its namespace is empty', 'set a namespace, which becomes the domain of the policy');
  const requests = textAt(item, 'max_value');
  if (wholeNumber(requests, 0) === undefined) {
    return refuse(
      `its max_value ${JSON.stringify(requests)} is not a number of requests`,
      'correct max_value',
    );
  }
  const seconds = wholeNumber(textAt(item, 'seconds'), 1);
  if (seconds === undefined)
    return refuse('its "seconds" is not a whole number of 1 or more', 'correct the number');
  const text = ['conditions', 'variables'].find((key) => {
    const field = item.fields.get(key);
    return field !== undefined && field.value.kind !== 'list';
  });
  if (text !== undefined) return refuse(`its "${text}" is not a list`, 'write a list');
  const entries = new Map<string, ConvertedLimit['entries'][number]>();
  const places = new Set<string>();
  for (const [list, expressions] of [
    ['condition', itemsAt(item, 'conditions')],
    ['variable', itemsAt(item, 'variables')],
  ] as const) {
    for (const expression of expressions) {
      const text = expression.kind === 'scalar' ? expression.text : '';
      const entry = list === 'condition' ? equality(text) : variable(text);
      if (entry === undefined) {
        const clause =
          list === 'condition'
            ? `its condition ${JSON.stringify(text)} is not of the form key == 'value'`
            : `its variable ${JSON.stringify(text)} is not the key of an entry`;
        return refuse(clause, 'write the rule by hand, if possible with value_regex, value_cidr or derive');
      }
      const clause = entry.value === undefined ? undefined : unmatchableReason(entry.value);
      if (clause !== undefined)
        return refuse(`the value of ${JSON.stringify(entry.key)} ${clause}`, 'write the rule by hand');
      places.add(entry.place);
      const known = entries.get(entry.key);
      if (known === undefined) entries.set(entry.key, { key: entry.key, value: entry.value });
      // A variable that a condition also fixes has only one value, and a repeated condition adds nothing.
      else if (list === 'condition' && known.value !== entry.value && places.size === 1) {
        const clause =
          'it never applies, because its conditions require two different values for ' +
          `${JSON.stringify(entry.key)}`;
        return refuse(clause, 'correct or remove the limit');
      }
    }
  }
  if (entries.size === 0) {
    return refuse(
      'it has neither conditions nor variables, so it counts every descriptor in its namespace',
      'configure Envoy to send a separate descriptor for this limit, for example with a generic_key ' +
        'action, and write a rule for that descriptor',
    );
  }
  if (places.size > 1) {
    return refuse(
      'it uses entries of several descriptors in a request, but a weir rule matches only one descriptor at a time',
      'configure Envoy to send one descriptor with all of these entries',
    );
  }
  return {
    about,
    domain,
    entries: [...entries.values()],
    requests,
    ...windowOf(seconds),
    name: textAt(item, 'name'),
    shadowMode: false,
  };
}

interface ReadEntry {
  readonly key: string;
  /** Value of the entry; undefined matches any value. */
  readonly value: string | undefined;
  /** Index of the descriptor with the entry; '' if none is given. */
  readonly place: string;
}

function variable(text: string): ReadEntry | undefined {
  const [, place = '', dotted, single, double, plain] = VARIABLE.exec(text) ?? [];
  const key = dotted ?? single ?? double ?? plain;
  return key === undefined || key === '' ? undefined : { key, value: undefined, place };
}

function equality(text: string): ReadEntry | undefined {
  const [, place = '', dotted, single, double, plain, one, other] = ENTRY_FIRST.exec(text) ?? [];
  const key = dotted ?? single ?? double ?? plain;
  if (key !== undefined) return key === '' ? undefined : { key, value: one ?? other ?? '', place };
  const [, quoted, doubly, second = '', ...keys] = TEXT_FIRST.exec(text) ?? [];
  const found = keys.find((name) => name !== undefined);
  return found === undefined || found === ''
    ? undefined
    : { key: found, value: quoted ?? doubly ?? '', place: second };
}

/**
 * Sorts the entries of limits that have the same keys into the order of the first such limit. Limitador accepts entries
 * in any order, but Envoy sends each descriptor in one order.
 */
function withSameKeyOrder(limits: readonly ConvertedLimit[]): readonly ConvertedLimit[] {
  const orders = new Map<string, ReadonlyMap<string, number>>();
  return limits.map((limit) => {
    const keys = limit.entries.map(({ key }) => key);
    const id = JSON.stringify([limit.domain, ...[...keys].sort()]);
    const order = orders.get(id) ?? new Map(keys.map((key, i) => [key, i]));
    orders.set(id, order);
    const placeOf = (key: string): number => order.get(key) ?? 0;
    return { ...limit, entries: [...limit.entries].sort((a, b) => placeOf(a.key) - placeOf(b.key)) };
  });
}

/** Reports namespaces whose limits have different keys, because Limitador applies every limit that matches. */
function differentKeyFindings(limits: readonly ConvertedLimit[], file: string): readonly Finding[] {
  const lists = new Map<string, Set<string>>();
  for (const { domain, entries } of limits) {
    const keys = entries.map(({ key, value }) => (value === undefined ? key : `${key}=…`)).sort();
    const known = lists.get(domain) ?? new Set();
    lists.set(domain, known.add(keys.join(', ')));
  }
  return [...lists].flatMap(([domain, known]): readonly Finding[] => {
    if (known.size < 2) return [];
    const shown = [...known].slice(0, SHOWN_LISTS).map((keys) => `[${keys}]`);
    const more = known.size > SHOWN_LISTS ? ` and ${known.size - SHOWN_LISTS} more` : '';
    const text =
      `its limits have different entries: ${shown.join(', ')}${more}. In Limitador, a descriptor counts ` +
      'toward every limit whose entries the descriptor contains. In weir, a descriptor counts only toward ' +
      'the limit with exactly the same entries. Configure Envoy to send one descriptor for each of these ' +
      'lists of entries.';
    return [{ about: `${file}: namespace ${domain}`, text }];
  });
}
