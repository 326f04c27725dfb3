// Fills a folder with the files of a release: the npm package, the chart, the schema, the bill of materials.
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install } from './prepare.mjs';
import { imageInValues } from './release-texts.mjs';
import { writeSbom } from './sbom.mjs';
import { must, root } from './shell.mjs';

export const CHART = 'deploy/helm/weir';
export const SUMS = 'SHA256SUMS';

export const hasChart = () => existsSync(join(root, CHART, 'Chart.yaml'));
export const manifest = () => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** Returns the name of the file with the chart. The npm package has the name that Helm would choose. */
export const chartFile = (version) => `weir-chart-${version}.tgz`;

/** Packs the chart into `folder`. With `image` ({repository, digest}), the chart deploys this image by default. */
async function packChart(folder, helm, image) {
  const temporary = mkdtempSync(join(tmpdir(), 'weir-chart-'));
  try {
    const chart = join(temporary, 'weir');
    cpSync(join(root, CHART), chart, { recursive: true });
    const values = join(chart, 'values.yaml');
    if (image !== undefined) writeFileSync(values, imageInValues(readFileSync(values, 'utf8'), image));
    await must('helm package', helm, ['package', chart, '--destination', temporary]);
    const { version } = manifest();
    cpSync(join(temporary, `weir-${version}.tgz`), join(folder, chartFile(version)));
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** Writes the checksums of all files in `folder`. Returns the names of the files. */
export function writeSums(folder) {
  const files = readdirSync(folder)
    .filter((name) => !name.startsWith(SUMS))
    .sort();
  const sums = files.map((name) => {
    const digest = createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
    return `${digest}  ${name}\n`;
  });
  writeFileSync(join(folder, SUMS), sums.join(''));
  return [...files, SUMS];
}

/**
 * Replaces `folder` with the files of a release, made from the current tree. Without `helm` (a path), it has no chart.
 * `image` is for {@link packChart}. Resolves with the names of the files.
 */
export async function makeDist(folder, helm, image) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await install();
  await build();
  // Skips the prepack script, which would check the build again.
  await must('npm pack', 'npm', ['pack', '--ignore-scripts', '--pack-destination', folder]);
  if (helm !== undefined && hasChart()) await packChart(folder, helm, image);
  cpSync(join(root, 'deploy/policy.schema.json'), join(folder, 'policy.schema.json'));
  writeSbom(join(folder, 'sbom.cdx.json'));
  return writeSums(folder);
}
