import { type OpenedSource, openPart, unopened } from '../read/policy-source.js';
import { ProblemList, WHOLE_FILE } from '../yaml/config-problem.js';
import { joinPath, yamlText } from '../yaml/yaml-document.js';
import { parseYamlDocuments, scalarPart } from '../yaml/yaml-part.js';
import { entriesAt, type Manifest, manifestsOf } from './manifest.js';

/** A part of a file that is a policy. */
export interface OpenedPart {
  /** Unique name: the file and the path in it. */
  readonly name: string;
  readonly opened: OpenedSource;
}

/** A cheap test that every manifest passes, because most files are policies, and large. */
const MANIFEST_HINT = /\bapiVersion["']?\s*:/;

/**
 * Returns the policies in the ConfigMaps of a file; undefined if the file is not a Kubernetes manifest. A key of `data`
 * that is not a policy is skipped with a warning. A file without any policy is an error.
 */
export function openConfigMaps(file: string, bytes: Uint8Array): readonly OpenedPart[] | undefined {
  const text = yamlText(bytes);
  // A file that is not text is reported when it is read as a policy.
  if (text === undefined || !MANIFEST_HINT.test(text)) return undefined;
  const problems = new ProblemList(file);
  const manifests = manifestsOf(parseYamlDocuments(bytes, problems));
  // An unreadable manifest is reported here. Any other file is read as a policy.
  if (manifests.length === 0 && problems.errorCount === 0) return undefined;
  const lines = text.split('\n');
  const maps = manifests.filter(({ kind }) => kind === 'ConfigMap');
  const parts = maps.flatMap((map) => openData(map, lines, problems));
  if (parts.length === 0 && manifests.length > 0) {
    const kinds = [...new Set(manifests.map(({ kind }) => kind))].join(', ');
    const found =
      maps.length === 0
        ? `the file has no ConfigMap, only manifests of kind ${kinds}`
        : 'no key under "data" in the ConfigMaps of the file contains a policy';
    const remedy = manifests.some(({ kind }) => kind === 'BackendTrafficPolicy')
      ? 'a BackendTrafficPolicy is not a policy of weir; write one with weir suggest, or with weir migrate'
      : 'specify the manifest of the ConfigMap that contains the policies';
    problems.error(WHOLE_FILE, '', `${found}; ${remedy}`);
  }
  return [{ name: file, opened: unopened(problems) }, ...parts];
}

/**
 * Returns the policies in `data` of a ConfigMap. Skipped keys become warnings in `problems`. `lines` are those of the
 * file that `problems` names. `isRead` tells whether to look at a key.
 */
export function openData(
  map: Manifest,
  lines: readonly string[],
  problems: ProblemList,
  isRead: (key: string) => boolean = () => true,
): readonly OpenedPart[] {
  return entriesAt(map.fields, 'data').flatMap(([key, value]) => {
    if (!isRead(key)) return [];
    const within = `${joinPath(map.path, 'data')}[${JSON.stringify(key)}]`;
    if (value.kind === 'scalar') {
      const opened = openPart(scalarPart(value, lines), new ProblemList(problems.file, within));
      // Report unreadable text as an error if it is meant to be a policy, instead of skipping it.
      const isMeant = /\.ya?ml$/.test(key) || /^\s*(?:domain|descriptors)\s*:/m.test(value.text);
      if (opened.source !== undefined || (isMeant && !opened.isNotPolicy))
        return [{ name: `${problems.file} ${within}`, opened }];
    }
    problems.warn(value.at, within, 'this key does not contain a policy, and is skipped');
    return [];
  });
}
