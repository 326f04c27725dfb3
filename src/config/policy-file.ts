import { fixedPhase, type Rule, STORE_FAILURE_POLICIES, type StoreFailurePolicy } from '../limiter/rule.js';
import { CompiledPolicy } from './compiled-policy.js';
import { type Position, ProblemList } from './config-problem.js';
import { FieldReader, type Located } from './field-reader.js';
import type { ResponseHeaders } from './policy.js';
import { MISPLACED_KEYS } from './policy-keys.js';
import { nodeLabel, PolicyNode } from './policy-node.js';
import { type DeriveFields, type ReadFile, readDerive, showDeriveKey } from './read-derive.js';
import { readPhase } from './read-phase.js';
import { readRateLimit } from './read-rate-limit.js';
import { parseYaml } from './yaml-document.js';

/** What one policy file gave. */
export interface ParsedPolicy {
  /** Absent when the file holds an error. */
  readonly policy: CompiledPolicy | undefined;
  /** Where `domain` stands, to report a second file with the same one. */
  readonly domainAt: Position | undefined;
  readonly problems: ProblemList;
  /** Files named by `sha256_file`, with what was wrong in each. */
  readonly tableFiles: readonly ProblemList[];
  /** The file is a key table, not a policy; an error says so. */
  readonly isKeyTable: boolean;
}

const ROOT_KEYS = ['domain', 'phase', 'response_headers', 'on_store_failure', 'derive', 'descriptors'];
const NODE_KEYS = [
  'key',
  'value',
  'phase',
  'share_threshold',
  'shadow_mode',
  'quota_mode',
  'detailed_metric',
  'value_to_metric',
  'metadata',
  'rate_limit',
  'descriptors',
];
const HEADER_FAMILIES = ['x-ratelimit', 'retry-after'] as const;
const LATER_HEADER_FAMILIES: readonly string[] = ['ratelimit-draft-03', 'ratelimit'];

/**
 * Reads one policy file: YAML, checked completely and compiled. Every problem of the file is collected; there is a policy only
 * if none of them is an error. `readFile` gets the files named by `sha256_file`, relative ones resolved against `file`.
 */
export function parsePolicy(file: string, bytes: Uint8Array, readFile: ReadFile): ParsedPolicy {
  const problems = new ProblemList(file);
  const nothing = { policy: undefined, domainAt: undefined, problems, tableFiles: [], isKeyTable: false };
  const document = parseYaml(bytes, problems, { showKey });
  if (document === undefined) return nothing;
  if (document.kind !== 'map') {
    problems.error(document.at, '', 'a policy file is a mapping; begin it with "domain: <name>"');
    return nothing;
  }
  const keys = [...document.fields.keys()];
  if (keys.length > 0 && !keys.some((key) => ROOT_KEYS.includes(key) || MISPLACED_KEYS.has(key))) {
    // Perhaps a key table that no policy names: its keys are none to be shown.
    problems.error(
      document.at,
      '',
      'the file holds no policy; begin it with "domain: <name>", or move it elsewhere',
    );
    return { ...nothing, isKeyTable: keys.every((key) => /^[0-9a-f]{64}$/i.test(key)) };
  }
  return new PolicyReader(new FieldReader(document, '', problems), readFile).read();
}

/** Looks like the name of a field, mistyped or not: lower case words. API keys hold digits or capitals, or are longer. */
const FIELD_NAME = /^(?=.{1,24}$)[a-z]+(?:[_-][a-z]+)*$/;

/**
 * Keys at the top that are not known may be API keys: the file may be a key table, or a table may lack its indentation. The tree
 * of descriptors holds none, unless a table got into it.
 */
function showKey(path: string, key: string): boolean {
  if (path === '') return FIELD_NAME.test(key);
  return path.startsWith('derive') ? showDeriveKey(path, key) : !/\b(?:derive|sha256)/.test(path);
}

/** Turns a checked mapping into a tree; holds what the recursion shares. */
class PolicyReader {
  private readonly root: FieldReader;
  private readonly readFile: ReadFile;
  private readonly rules: Rule[] = [];
  /** Every `replaces` of the file, to warn about names that no rule has. */
  private readonly replaced: Located<string>[] = [];

  constructor(root: FieldReader, readFile: ReadFile) {
    this.root = root;
    this.readFile = readFile;
  }

  read(): ParsedPolicy {
    const { root } = this;
    const { problems } = root;
    root.expectKeys(ROOT_KEYS, MISPLACED_KEYS);
    const domain = root.text('domain') ?? '';
    if (domain === '' && (root.field('domain')?.value.kind ?? 'scalar') === 'scalar') {
      root.error('domain', '"domain" is missing or empty; write the domain that Envoy sends');
    }
    const responseHeaders = this.readResponseHeaders();
    const phase = readPhase(root) ?? fixedPhase('active');
    const onStoreFailure = root.choice('on_store_failure', STORE_FAILURE_POLICIES) ?? 'error';
    const derived = readDerive(root, this.readFile);
    const tree = new PolicyNode({
      key: '',
      value: '',
      shareThreshold: false,
      parent: undefined,
      phase,
      onStoreFailure,
      rule: undefined,
    });
    this.readDescriptors(root, tree, '', onStoreFailure);
    this.warnOfUnknownReplaces();
    this.warnOfUnreachable(tree, derived);
    problems.sort();
    const bad = problems.errors.length > 0 || derived.tableFiles.some((file) => file.errors.length > 0);
    const policy = bad
      ? undefined
      : new CompiledPolicy({
          domain,
          file: problems.file,
          responseHeaders,
          steps: derived.steps,
          root: tree,
          rules: this.rules,
        });
    return {
      policy,
      domainAt: domain === '' ? undefined : root.at('domain'),
      problems,
      tableFiles: derived.tableFiles,
      isKeyTable: false,
    };
  }

  private readResponseHeaders(): ResponseHeaders | undefined {
    if (this.root.field('response_headers') === undefined) return undefined;
    const families = this.root.texts('response_headers', 'header families');
    for (const family of families) {
      if (HEADER_FAMILIES.some((known) => known === family.value)) continue;
      const reason = LATER_HEADER_FAMILIES.includes(family.value)
        ? `"${family.value}" is not available yet`
        : `"${family.value.slice(0, 60)}" is no header family`;
      this.root.problems.error(
        family.at,
        family.path,
        `${reason}; choose from ${HEADER_FAMILIES.join(', ')}`,
      );
    }
    return {
      xRateLimit: families.some((family) => family.value === 'x-ratelimit'),
      retryAfter: families.some((family) => family.value === 'retry-after'),
    };
  }

  private readDescriptors(
    reader: FieldReader,
    parent: PolicyNode,
    parentPath: string,
    fileFailure: StoreFailurePolicy,
  ): void {
    for (const child of reader.mappings('descriptors', 'mappings with a key')) {
      this.readNode(child, parent, parentPath, fileFailure);
    }
  }

  private readNode(
    reader: FieldReader,
    parent: PolicyNode,
    parentPath: string,
    fileFailure: StoreFailurePolicy,
  ): void {
    reader.expectKeys(NODE_KEYS, MISPLACED_KEYS);
    const key = reader.text('key') ?? '';
    const value = reader.text('value') ?? '';
    this.checkKey(reader, key);
    const shareThreshold = reader.boolean('share_threshold') === true;
    if (shareThreshold && !value.includes('*')) {
      reader.error(
        'share_threshold',
        '"share_threshold" needs a value with a "*" in it; add one or remove it',
      );
    }
    const phase = readPhase(reader) ?? parent.phase;
    const shadowMode = reader.boolean('shadow_mode') === true;
    const quotaMode = reader.boolean('quota_mode') === true;
    this.readKeysOfLater(reader);
    const label = nodeLabel(key, value);
    const path = parentPath === '' ? label : `${parentPath}/${label}`;
    const limitReader = reader.mapping('rate_limit');
    const limit = limitReader === undefined ? undefined : readRateLimit(limitReader);
    const onStoreFailure = limit?.onStoreFailure ?? fileFailure;
    const rule: Rule | undefined =
      limit === undefined
        ? undefined
        : {
            name: limit.name,
            path,
            rate: limit.rate,
            phase,
            shadowMode,
            quotaMode,
            replaces: limit.replaces.map((name) => name.value),
            onStoreFailure,
            metadata: undefined,
            statName: '',
          };
    if (rule !== undefined) this.rules.push(rule);
    if (limit !== undefined) this.replaced.push(...limit.replaces);
    if (limitReader === undefined && (shadowMode || quotaMode)) {
      const mode = shadowMode ? 'shadow_mode' : 'quota_mode';
      reader.warn(mode, `"${mode}" has no effect without "rate_limit" beside it`);
    }
    const node = new PolicyNode({ key, value, shareThreshold, parent, phase, onStoreFailure, rule });
    if (key !== '' && !parent.add(node)) {
      const at = reader.at(value === '' ? 'key' : 'value');
      reader.problems.error(
        at,
        reader.path,
        `"${label}" stands twice on this level; merge the two or remove one`,
      );
    }
    this.readDescriptors(reader, node, path, fileFailure);
  }

  private checkKey(reader: FieldReader, key: string): void {
    if (key === '' && (reader.field('key')?.value.kind ?? 'scalar') === 'scalar') {
      reader.error('key', 'the descriptor has no key; write the key of the entry it matches');
    }
    if (key.includes('*')) {
      reader.warn('key', 'a "*" in a key stands for itself; patterns are for values');
    }
  }

  /** Keys of envoyproxy/ratelimit that are checked, so that its files load, and wait for their implementation. */
  private readKeysOfLater(reader: FieldReader): void {
    const inUse = [
      reader.boolean('detailed_metric') === true ? 'detailed_metric' : '',
      reader.boolean('value_to_metric') === true ? 'value_to_metric' : '',
      reader.mapping('metadata') === undefined ? '' : 'metadata',
    ];
    for (const key of inUse) {
      if (key !== '') reader.warn(key, `"${key}" has no effect yet`);
    }
  }

  private warnOfUnknownReplaces(): void {
    const names = new Set(this.rules.map((rule) => rule.name));
    for (const { value, at, path } of this.replaced) {
      if (names.has(value)) continue;
      this.root.problems.warn(
        at,
        path,
        `no rule of this file has the name "${value.slice(0, 60)}"; it replaces nothing`,
      );
    }
  }

  /** An API key is replaced before matching, so a node for it is never reached. */
  private warnOfUnreachable(tree: PolicyNode, derived: DeriveFields): void {
    const secrets = new Set(derived.steps.flatMap((step) => (step.kind === 'table' ? [step.source] : [])));
    const visit = (node: PolicyNode): void => {
      for (const child of node.children()) {
        if (secrets.has(child.key)) {
          this.root.warn(
            'derive',
            `descriptors with key "${child.key}" never match, as "derive" replaces the key`,
          );
        }
        visit(child);
      }
    };
    if (secrets.size > 0) visit(tree);
  }
}
