import { type OpenedSource, openPart, unopened } from '../read/policy-source.js';
import { ProblemList, WHOLE_FILE } from '../yaml/config-problem.js';
import { joinPath, yamlText } from '../yaml/yaml-document.js';
import { parseYamlDocuments, scalarPart } from '../yaml/yaml-part.js';
import { entriesAt, type Manifest, manifestsOf } from './manifest.js';

/** A part of a file that is a policy. */
export interface OpenedPart {
  /** Tells it from the others: the file's name and the place in it. */
  readonly name: string;
  readonly opened: OpenedSource;
}

/** Cheap, and true of every manifest: most files that are asked about are policies, and large. */
const PERHAPS_A_MANIFEST = /\bapiVersion["']?\s*:/;

/**
 * The policies in the ConfigMaps of a file; undefined where the file is no manifest of Kubernetes. A key of `data` that
 * holds no policy is left out with a warning; a file without any policy is an error.
 */
export function openConfigMaps(file: string, bytes: Uint8Array): readonly OpenedPart[] | undefined {
  const text = yamlText(bytes);
  // What is not a text is told of where it is read as a policy.
  if (text === undefined || !PERHAPS_A_MANIFEST.test(text)) return undefined;
  const problems = new ProblemList(file);
  const manifests = manifestsOf(parseYamlDocuments(bytes, problems));
  // Of a manifest that cannot be read it is said why; what else is none is read as a policy.
  if (manifests.length === 0 && problems.errorCount === 0) return undefined;
  const lines = text.split('\n');
  const maps = manifests.filter(({ kind }) => kind === 'ConfigMap');
  const parts = maps.flatMap((map) => openData(map, lines, problems));
  if (parts.length === 0 && manifests.length > 0) {
    const kinds = [...new Set(manifests.map(({ kind }) => kind))].join(', ');
    const found =
      maps.length === 0
        ? `the file has no ConfigMap, only manifests of kind ${kinds}`
        : 'no key of "data" in its ConfigMaps holds a policy';
    problems.error(WHOLE_FILE, '', `${found}; name the manifest of the ConfigMap that holds the policies`);
  }
  return [{ name: file, opened: unopened(problems) }, ...parts];
}

/**
 * The policies in `data` of one ConfigMap; what is left out is a warning in `problems`. `lines`: those of the file that
 * `problems` names. `isRead`: whether a key is looked at.
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
      // What cannot be read at all is called bad where it was meant for a policy, and not passed over.
      const isMeant = /\.ya?ml$/.test(key) || /^\s*(?:domain|descriptors)\s*:/m.test(value.text);
      if (opened.source !== undefined || (isMeant && !opened.isSomethingElse))
        return [{ name: `${problems.file} ${within}`, opened }];
    }
    problems.warn(value.at, within, 'this key does not hold a policy and is skipped');
    return [];
  });
}
