import { CompiledPolicy, secretKeysOf } from '../../policy/compiled-policy.js';
import { fixedStatName, type StatLevel } from '../../policy/names/stat-name.js';
import { type Algorithm, DEFAULT_ALGORITHM } from '../../policy/policy.js';
import { nodeLabel, PolicyNode } from '../../policy/policy-node.js';
import type { PhaseSchedule, Rule } from '../../policy/rule.js';
import { matcherField, matcherName } from '../../policy/values/value-matcher.js';
import type { ProblemList } from '../yaml/config-problem.js';
import type { FieldReader, Located } from '../yaml/field-reader.js';
import { MISPLACED_KEYS, NODE_KEYS, ROOT_KEYS } from './policy-keys.js';
import { type PolicySource, placeName } from './policy-source.js';
import type { ReadFile } from './read-derive.js';
import { readMatcher } from './read-matcher.js';
import { readPhase } from './read-phase.js';
import { readRules } from './read-rules.js';
import { type RootSettings, readRootSettings } from './root-settings.js';

/** What the files of one domain gave. */
export interface CompiledDomain {
  /** Absent when one of them holds an error. */
  readonly policy: CompiledPolicy | undefined;
  /** Files named by `sha256_file`, with what was wrong in each. */
  readonly tableFiles: readonly ProblemList[];
}

/**
 * Checks the files of one domain completely and compiles them to one tree: the nodes of later files are added to those of the
 * earlier. Problems go into the list of the file they are in; there is a policy only if none of them is an error. `readFile` gets
 * the files named by `sha256_file`; `defaultAlgorithm` holds where the files say nothing.
 */
export function compilePolicy(
  sources: readonly PolicySource[],
  readFile: ReadFile,
  defaultAlgorithm: Algorithm = DEFAULT_ALGORITHM,
): CompiledDomain {
  for (const { root } of sources) root.expectKeys(ROOT_KEYS, MISPLACED_KEYS);
  const settings = readRootSettings(sources, readFile, defaultAlgorithm);
  const { derived } = settings;
  const domain = sources[0]?.domain ?? '';
  const { tree, rules } = new TreeBuilder(domain, settings).build(sources);
  for (const { root } of sources) root.problems.sort();
  const lists = [...sources.map(({ root }) => root.problems), ...derived.tableFiles];
  const bad = domain === '' || lists.some((list) => list.errors.length > 0);
  const policy = bad
    ? undefined
    : new CompiledPolicy({
        domain,
        file: sources.map(({ file }) => file).join(', '),
        settings: {
          responseHeaders: settings.responseHeaders,
          deniedResponse: settings.deniedResponse,
          decisionMetadata: settings.decisionMetadata,
          overrideAlgorithm: settings.algorithm,
        },
        steps: derived.steps,
        root: tree,
        rules,
      });
  return { policy, tableFiles: derived.tableFiles };
}

/** Where a node hangs: what the nodes below it need to know. */
interface Place {
  readonly parent: PolicyNode;
  /** {@link Rule.path} of the parent. */
  readonly path: string;
  /** From the first level to the parent. */
  readonly levels: readonly StatLevel[];
}

/** The fields of a descriptor that are no rule. */
interface NodeFields extends StatLevel {
  readonly phase: PhaseSchedule;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly detailedMetric: boolean;
}

/** Turns checked mappings into a tree; holds what the recursion shares. */
class TreeBuilder {
  private readonly domain: string;
  private readonly settings: RootSettings;
  private readonly secretKeys: ReadonlySet<string>;
  private readonly tree: PolicyNode;
  private readonly rules: Rule[] = [];
  /** Every `replaces` of the domain, to warn about names that no rule has. */
  private readonly replaced: (Located<string> & { readonly problems: ProblemList })[] = [];
  private readonly readers = new Map<PolicyNode, FieldReader>();

  constructor(domain: string, settings: RootSettings) {
    this.domain = domain;
    this.settings = settings;
    this.secretKeys = secretKeysOf(settings.derived.steps);
    this.tree = new PolicyNode({
      key: '',
      value: '',
      shareThreshold: false,
      detailedMetric: false,
      valueToMetric: false,
      parent: undefined,
      phase: settings.phase,
      onStoreFailure: settings.onStoreFailure,
      rules: [],
    });
  }

  build(sources: readonly PolicySource[]): { readonly tree: PolicyNode; readonly rules: readonly Rule[] } {
    const { tree } = this;
    for (const { root } of sources) this.readDescriptors(root, { parent: tree, path: '', levels: [] });
    this.warnOfUnknownReplaces();
    for (const { root } of sources) this.warnOfUnreachable(root);
    return { tree, rules: this.rules };
  }

  private readDescriptors(reader: FieldReader, place: Place): void {
    for (const child of reader.mappings('descriptors', 'mappings with a key')) this.readNode(child, place);
  }

  private readNode(reader: FieldReader, place: Place): void {
    reader.expectKeys(NODE_KEYS, MISPLACED_KEYS);
    const { parent } = place;
    const fields = readFields(reader, parent);
    const { key, value, matcher, shareThreshold, detailedMetric, valueToMetric, phase } = fields;
    const label = nodeLabel(key, value, matcher);
    const path = place.path === '' ? label : `${place.path}/${label}`;
    const levels = [...place.levels, { key, value, matcher, shareThreshold, valueToMetric }];
    const { rules, onStoreFailure, replaced } = readRules(reader, {
      path,
      statName: fixedStatName(this.domain, levels, detailedMetric, this.secretKeys),
      node: fields,
      file: this.settings,
    });
    const { problems } = reader;
    this.rules.push(...rules);
    this.replaced.push(...replaced.map((located) => ({ ...located, problems })));
    const node = new PolicyNode({
      key,
      value,
      matcher,
      shareThreshold,
      detailedMetric,
      valueToMetric,
      parent,
      phase,
      onStoreFailure,
      rules,
    });
    if (key !== '') this.add(node, parent, reader);
    this.readDescriptors(reader, { parent: node, path, levels });
  }

  private add(node: PolicyNode, parent: PolicyNode, reader: FieldReader): void {
    const standing = parent.add(node);
    if (standing === undefined) {
      this.readers.set(node, reader);
      return;
    }
    const other = this.readers.get(standing) as FieldReader;
    const sameFile = other.problems === reader.problems;
    const message = sameFile
      ? `"${repeated(node, standing)}" stands twice on this level; merge the two or remove one`
      : `"${repeated(node, standing)}" stands on this level already, in ${placeName(other.problems.file, nodeAt(other, standing))}; ` +
        'the files of a domain may not repeat a node: keep one of the two';
    reader.problems.error(nodeAt(reader, node), reader.path, message);
  }

  private warnOfUnknownReplaces(): void {
    const names = new Set(this.rules.filter(({ candidate }) => !candidate).map(({ name }) => name));
    for (const { value, at, path, problems } of this.replaced) {
      if (names.has(value)) continue;
      problems.warn(
        at,
        path,
        `no rule of this domain has the name "${value.slice(0, 60)}"; it replaces nothing`,
      );
    }
  }

  /** An API key is replaced before matching, so a node for it is never reached. */
  private warnOfUnreachable(root: FieldReader): void {
    if (root.field('derive') === undefined || this.secretKeys.size === 0) return;
    const visit = (node: PolicyNode): void => {
      for (const child of node.children()) {
        if (this.secretKeys.has(child.key)) {
          root.warn(
            'derive',
            `descriptors with key "${child.key}" never match, as "derive" replaces the key`,
          );
        }
        visit(child);
      }
    };
    visit(this.tree);
  }
}

function nodeAt(reader: FieldReader, node: PolicyNode): ReturnType<FieldReader['at']> {
  if (node.matcher !== undefined) return reader.at(matcherField(node.matcher));
  return reader.at(node.value === '' ? 'key' : 'value');
}

/** What of a node stands on its level already. */
function repeated({ matcher, label }: PolicyNode, standing: PolicyNode): string {
  const others = new Set(standing.matcher?.items);
  return matcher?.items.find((item) => others.has(item))?.slice(0, 60) ?? label;
}

function readFields(reader: FieldReader, parent: PolicyNode): NodeFields {
  const key = reader.name('key') ?? '';
  const matcher = readMatcher(reader);
  const value = matcher === undefined ? (reader.name('value') ?? '') : matcherName(matcher);
  if (key === '' && (reader.field('key')?.value.kind ?? 'scalar') === 'scalar') {
    reader.error('key', 'the descriptor has no key; write the key of the entry it matches');
  }
  if (key.includes('*')) {
    reader.warn('key', 'a "*" in a key stands for itself; patterns are for values');
  }
  const shareThreshold = reader.boolean('share_threshold') === true;
  if (shareThreshold && matcher === undefined && !value.includes('*')) {
    // envoyproxy/ratelimit lets it pass where only the key holds a "*".
    if (key.includes('*'))
      reader.warn('share_threshold', '"share_threshold" has no effect without a "*" in the value');
    else
      reader.error(
        'share_threshold',
        '"share_threshold" needs a value with a "*" in it; add one or remove it',
      );
  }
  return {
    key,
    value,
    matcher,
    shareThreshold,
    phase: readPhase(reader) ?? parent.phase,
    shadowMode: reader.boolean('shadow_mode') === true,
    quotaMode: reader.boolean('quota_mode') === true,
    detailedMetric: reader.boolean('detailed_metric') === true,
    valueToMetric: reader.boolean('value_to_metric') === true,
  };
}
