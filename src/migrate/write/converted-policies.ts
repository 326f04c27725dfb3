import { loadParts } from '../../config/files/load-policies.js';
import { openFile } from '../../config/read/policy-source.js';
import { formatProblem } from '../../config/yaml/config-problem.js';
import { quotedYaml } from '../../config/yaml/quoted-yaml.js';
import { quantity } from '../../quantity.js';
import type { WrittenFile } from '../../written-files.js';
import type { Finding } from '../findings.js';
import type { Conversion, ConvertedLimit } from '../read/converted.js';
import type { Input } from '../read/input.js';
import type { Report } from '../report.js';

/** Folder of the written policies. */
const FOLDER = 'policies';

/** Maximum number of characters of a domain in the name of its file. */
const MAX_NAME = 80;

interface Node {
  readonly key: string;
  readonly value: string | undefined;
  readonly limits: ConvertedLimit[];
  readonly children: Map<string, Node>;
}

/** Returns the report on converted limits, and the policy files. `inputs` are all files. */
export function convertedReport(
  conversions: readonly Conversion[],
  inputs: readonly Input[],
): { readonly report: Report; readonly files: readonly WrittenFile[] } {
  const limits = conversions.flatMap((conversion) => conversion.limits);
  const domains = [...new Set(limits.map(({ domain }) => domain))];
  const names = new Set<string>();
  const files = domains.map((domain): WrittenFile => {
    const own = limits.filter((limit) => limit.domain === domain);
    const path = `${FOLDER}/${freeName(domain, names)}`;
    return { path, content: policyText(domain, own), note: quantity(own.length, 'rule') };
  });
  const parts = files.map(({ path, content }) => ({
    name: path,
    opened: openFile(path, Buffer.from(content)),
  }));
  const loaded = loadParts(parts, { mergeDomains: false });
  const bad = loaded.errors.map((problem): Finding => ({ about: 'policies', text: formatProblem(problem) }));
  const sources = conversions.map(({ source }) => source).join(' and ');
  const rules = `${quantity(limits.length, 'rule')} in ${quantity(domains.length, 'domain')}`;
  const report: Report = {
    service: undefined,
    policies: `${rules}, converted from ${sources}.`,
    directory: undefined,
    files: [],
    decide: [...conversions.flatMap(({ decide }) => decide), ...bad],
    advice: [
      ...conversions.flatMap(({ advice }) => advice),
      ...inputs
        .filter((input) => !conversions.some(({ from }) => from === input))
        .map(({ file }) => ({
          about: file,
          text: 'weir migrate ignored this file, because other files contain limits to convert.',
        })),
    ],
    same: domains.map((domain) => {
      const { length } = limits.filter((limit) => limit.domain === domain);
      const text = `${quantity(length, 'rule')}; run weir migrate with --write to write the policy.`;
      return { about: `domain ${domain}`, text };
    }),
    better: [],
    unused: [],
    keep: {},
    written: undefined,
  };
  return { report, files };
}

/** Returns a file name for a domain that is not in `taken`, and adds it. */
function freeName(domain: string, taken: Set<string>): string {
  const plain = domain
    .replaceAll(/[^\w.-]/g, '_')
    .replace(/^\.+/, '_')
    .slice(0, MAX_NAME);
  for (let i = 1; ; i++) {
    const name = `${plain}${i === 1 ? '' : `-${i}`}.yaml`;
    if (taken.has(name.toLowerCase())) continue;
    taken.add(name.toLowerCase());
    return name;
  }
}

/** Returns the policy file with the limits of one domain. */
function policyText(domain: string, limits: readonly ConvertedLimit[]): string {
  const top = new Map<string, Node>();
  for (const limit of limits) {
    let level = top;
    let node: Node | undefined;
    for (const { key, value } of limit.entries) {
      const id = JSON.stringify([key, value ?? null]);
      node = level.get(id) ?? { key, value, limits: [], children: new Map() };
      level.set(id, node);
      level = node.children;
    }
    node?.limits.push(limit);
  }
  const nodes = [...top.values()].map((node) => nodeText(node, '  ')).join('');
  return `domain: ${quotedYaml(domain)}\ndescriptors:\n${nodes}`;
}

function nodeText({ key, value, limits, children }: Node, indent: string): string {
  const lines = [`${indent}- key: ${quotedYaml(key)}`];
  if (value !== undefined) lines.push(`${indent}  value: ${quotedYaml(value)}`);
  const [limit] = limits;
  if (limits.length > 1) {
    lines.push(`${indent}  rate_limits:`);
    for (const one of limits) {
      const shadow = one.shadowMode ? ', shadow_mode: true' : '';
      lines.push(`${indent}    - { ${limitText(one)}${shadow} }`);
    }
  } else if (limit !== undefined) {
    if (limit.shadowMode) lines.push(`${indent}  shadow_mode: true`);
    lines.push(`${indent}  rate_limit: { ${limitText(limit)} }`);
  }
  if (children.size > 0) lines.push(`${indent}  descriptors:`);
  const below = [...children.values()].map((child) => nodeText(child, `${indent}    `)).join('');
  return `${lines.join('\n')}\n${below}`;
}

function limitText({ name, unit, multiplier, requests }: ConvertedLimit): string {
  return [
    ...(name === '' ? [] : [`name: ${quotedYaml(name)}`]),
    `unit: ${unit}`,
    ...(multiplier === 1 ? [] : [`unit_multiplier: ${multiplier}`]),
    `requests_per_unit: ${requests}`,
  ].join(', ');
}
