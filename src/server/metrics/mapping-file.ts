import { FieldReader } from '../../config/read/field-reader.js';
import { type ConfigProblem, ProblemList } from '../../config/yaml/config-problem.js';
import { parseGoDuration } from '../../config/yaml/go-duration.js';
import { parseYaml } from '../../config/yaml/yaml-document.js';
import { compileGoRegExp } from '../../telemetry/go-regexp.js';
import {
  DEFAULT_BUCKETS,
  DEFAULT_SUMMARY,
  type Mapping,
  type MappingRule,
  type ObserverOptions,
} from '../../telemetry/mapping/mapper.js';

const RULE_KEYS = [
  ...[
    'match',
    'match_type',
    'match_metric_type',
    'name',
    'labels',
    'honor_labels',
    'help',
    'action',
    'scale',
  ],
  ...['observer_type', 'timer_type', 'histogram_options', 'summary_options', 'buckets', 'quantiles', 'ttl'],
];
const DEFAULTS_KEYS = [
  ...['observer_type', 'timer_type', 'histogram_options', 'summary_options', 'buckets', 'quantiles', 'ttl'],
  ...['match_type', 'glob_disable_ordering'],
];
const HISTOGRAM_KEYS = ['buckets', 'native_histogram_bucket_factor', 'native_histogram_max_buckets'];
const SUMMARY_KEYS = ['quantiles', 'max_age', 'age_buckets', 'buf_cap'];

const GLOB = /^(\*|[a-zA-Z_][a-zA-Z0-9_-]*)(\.\*|\.[a-zA-Z0-9_][a-zA-Z0-9_-]*)*$/;
const METRIC_NAME = /^([a-zA-Z_]|\$\{?\d+\}?)([a-zA-Z0-9_]|\$\{?\d+\}?)*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

export interface MappingFile {
  readonly mapping: Mapping;
  readonly errors: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

type Histogram = Extract<ObserverOptions, { kind: 'histogram' }>;
type Summary = Extract<ObserverOptions, { kind: 'summary' }>;

/** Values for rules that do not set their own. */
interface Defaults {
  readonly matchType: 'glob' | 'regex';
  readonly observer: 'histogram' | 'summary';
  readonly histogram: Histogram;
  readonly summary: Summary;
}

/**
 * Reads a mapping file of statsd_exporter 0.26, including older spellings of keys. `file` is the file name in messages.
 */
export function readMappingFile(file: string, bytes: Uint8Array): MappingFile {
  const problems = new ProblemList(file);
  const document = parseYaml(bytes, problems);
  const { errors, warnings } = problems;
  const none: Mapping = { rules: [], mostSpecificGlob: false, observer: DEFAULT_SUMMARY };
  if (document === undefined) return { mapping: none, errors, warnings };
  if (document.kind !== 'map') {
    problems.error(document.at, '', 'the file must be a mapping with the key "mappings"');
    return { mapping: none, errors, warnings };
  }
  const reader = new FieldReader(document, '', problems);
  reader.expectKeys(['defaults', 'mappings']);
  const defaultsReader = reader.mapping('defaults');
  const defaults = readDefaults(defaultsReader);
  const rules = reader.mappings('mappings', 'rules').flatMap((one) => readRule(one, defaults) ?? []);
  problems.sort();
  const mapping = {
    rules,
    mostSpecificGlob: defaultsReader?.boolean('glob_disable_ordering') ?? false,
    observer: defaults[defaults.observer],
  };
  return { mapping, errors, warnings };
}

function readDefaults(reader: FieldReader | undefined): Defaults {
  const builtIn: Defaults = {
    matchType: 'glob',
    observer: 'summary',
    histogram: { kind: 'histogram', buckets: DEFAULT_BUCKETS },
    summary: DEFAULT_SUMMARY,
  };
  if (reader === undefined) return builtIn;
  reader.expectKeys(DEFAULTS_KEYS);
  warnOfTtl(reader);
  return {
    matchType: reader.choice('match_type', ['glob', 'regex']) ?? 'glob',
    observer: readObserverType(reader) ?? 'summary',
    histogram: readHistogram(reader, builtIn.histogram),
    summary: readSummary(reader, builtIn.summary),
  };
}

function readRule(reader: FieldReader, defaults: Defaults): MappingRule | undefined {
  reader.expectKeys(RULE_KEYS);
  warnOfTtl(reader);
  // weir's statistics have no tags that this key could prefer, so the value has no effect.
  reader.boolean('honor_labels');
  const matchType = reader.choice('match_type', ['glob', 'regex']) ?? defaults.matchType;
  const match = readMatch(reader, matchType);
  const name = reader.text('name');
  if (name === undefined) reader.error('name', 'a rule needs a "name", even with "action: drop"; add a name');
  else if (!METRIC_NAME.test(name)) {
    reader.error(
      'name',
      `${JSON.stringify(name)} is not a valid metric name; use letters, digits, _ and $1 or \${1}`,
    );
  }
  const kind = reader.choice('match_metric_type', ['counter', 'gauge', 'observer', 'timer']);
  const rule = {
    name: name ?? '',
    labels: readLabels(reader),
    drop: reader.choice('action', ['map', 'drop']) === 'drop',
    kind: kind === 'timer' ? ('observer' as const) : kind,
    observer: readObserver(reader, defaults),
    scale: readNumber(reader, 'scale') ?? 1,
    help: reader.text('help') ?? '',
  };
  return match === undefined ? undefined : { ...rule, match };
}

function readMatch(reader: FieldReader, type: 'glob' | 'regex'): MappingRule['match'] | undefined {
  const match = reader.text('match');
  if (match === undefined) {
    reader.error('match', 'a rule needs a "match" that selects statistics; add a "match"');
    return undefined;
  }
  if (type === 'glob') {
    if (GLOB.test(match)) return match.split('.');
    const remedy =
      'each part between dots must be a name or a single *; for other patterns, set match_type: regex';
    reader.error('match', `${JSON.stringify(match)} is not a valid glob: ${remedy}`);
    return undefined;
  }
  const compiled = compileGoRegExp(match);
  if (typeof compiled !== 'string') return compiled;
  reader.error(
    'match',
    `${JSON.stringify(match)} is not a valid regular expression: ${compiled}; correct the expression`,
  );
  return undefined;
}

function readLabels(reader: FieldReader): readonly (readonly [string, string])[] {
  const labels = reader.mapping('labels');
  if (labels === undefined) return [];
  return [...labels.map.fields.keys()].map((name) => {
    if (!LABEL_NAME.test(name)) {
      labels.error(name, `${JSON.stringify(name)} is not a valid label name; use letters, digits and _`);
    } else if (name === '__name__') {
      labels.error(
        name,
        '"__name__" is the label that Prometheus uses for the metric name; choose another label',
      );
    }
    return [name, labels.text(name) ?? ''] as const;
  });
}

function readObserverType(reader: FieldReader): 'histogram' | 'summary' | undefined {
  const types = ['histogram', 'summary'] as const;
  const older = reader.choice('timer_type', types);
  return reader.choice('observer_type', types) ?? older;
}

function readObserver(reader: FieldReader, defaults: Defaults): ObserverOptions {
  const type = readObserverType(reader) ?? defaults.observer;
  const histogram = readHistogram(reader, defaults.histogram);
  const summary = readSummary(reader, defaults.summary);
  const other = type === 'histogram' ? 'summary_options' : 'histogram_options';
  if (reader.field(other) !== undefined) {
    reader.error(
      other,
      `"${other}" cannot be combined with the observer type ${type}; remove one of the two`,
    );
  }
  return type === 'histogram' ? histogram : summary;
}

function readHistogram(reader: FieldReader, defaults: Histogram): Histogram {
  const older = readNumbers(reader, 'buckets');
  const options = reader.mapping('histogram_options');
  options?.expectKeys(HISTOGRAM_KEYS);
  const newer = options === undefined ? undefined : readNumbers(options, 'buckets');
  if (older !== undefined && newer !== undefined) {
    reader.error('buckets', '"buckets" is also set in "histogram_options"; remove one of the two');
  }
  const buckets = newer ?? older;
  if (buckets === undefined || buckets.length === 0) return defaults;
  if (buckets.some((bound, at) => at > 0 && bound <= (buckets[at - 1] as number))) {
    (newer === undefined ? reader : (options ?? reader)).error(
      'buckets',
      '"buckets" must be in ascending order; sort the values',
    );
  }
  return { kind: 'histogram', buckets };
}

function readSummary(reader: FieldReader, defaults: Summary): Summary {
  const older = readQuantiles(reader);
  const options = reader.mapping('summary_options');
  options?.expectKeys(SUMMARY_KEYS);
  const newer = options === undefined ? undefined : readQuantiles(options);
  if (older !== undefined && newer !== undefined) {
    reader.error('quantiles', '"quantiles" is also set in "summary_options"; remove one of the two');
  }
  const maxAge = options?.text('max_age');
  const maxAgeNanos = maxAge === undefined ? 0n : parseGoDuration(maxAge);
  if (maxAgeNanos === undefined || maxAgeNanos < 0n) {
    options?.error(
      'max_age',
      `${JSON.stringify(maxAge)} is not a valid duration; use a value such as 30s or 10m`,
    );
  }
  const quantiles = newer ?? older ?? [];
  return {
    kind: 'summary',
    quantiles: quantiles.length === 0 ? defaults.quantiles : quantiles,
    maxAgeMs: Number(maxAgeNanos ?? 0n) / 1e6 || defaults.maxAgeMs,
    ageBuckets: options?.scalar('age_buckets', { kind: 'count', min: 0, max: 1000 }) || defaults.ageBuckets,
  };
}

function readQuantiles(reader: FieldReader): readonly number[] | undefined {
  if (reader.field('quantiles') === undefined) return undefined;
  return reader.mappings('quantiles', 'quantiles').flatMap((one) => {
    one.expectKeys(['quantile', 'error']);
    readNumber(one, 'error');
    const quantile = readNumber(one, 'quantile');
    if (quantile !== undefined && quantile >= 0 && quantile <= 1) return [quantile];
    one.error('quantile', '"quantile" must be a number from 0 to 1');
    return [];
  });
}

function readNumber(reader: FieldReader, key: string): number | undefined {
  const text = reader.text(key);
  if (text === undefined) return undefined;
  const number = numberOf(text);
  if (number === undefined) reader.error(key, `"${key}" must be a number`);
  return number;
}

function readNumbers(reader: FieldReader, key: string): readonly number[] | undefined {
  if (reader.field(key) === undefined) return undefined;
  return reader.texts(key, 'numbers').flatMap(({ value, at, path }) => {
    const number = numberOf(value);
    if (number !== undefined) return [number];
    reader.problems.error(at, path, `${JSON.stringify(value)} is not a number`);
    return [];
  });
}

/** Parses a number in the syntax of YAML 1.1, including `.005` and `1e-6`. */
function numberOf(text: string): number | undefined {
  const number = /^[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[+-]?\d+)?$/i.test(text)
    ? Number(text.replaceAll('_', ''))
    : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

function warnOfTtl(reader: FieldReader): void {
  const ttl = reader.text('ttl');
  if (ttl === undefined) return;
  const nanos = parseGoDuration(ttl);
  if (nanos === undefined)
    reader.error('ttl', `${JSON.stringify(ttl)} is not a valid duration; use a value such as 30s or 10m`);
  else if (nanos > 0n) {
    reader.warn(
      'ttl',
      '"ttl" has no effect, because series never expire; METRICS_MAX_SERIES limits the number of series',
    );
  }
}
