// Publishes what surrounds an image that a registry already has: the chart that names the image's digest, signatures,
// attestations and signed checksums. The workflow runs this program (see USAGE), and signs as the workflow. The
// rehearsal calls {@link publish} with a key.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chartFile, makeDist, manifest, SUMS, writeSums } from './dist.mjs';
import { provenance } from './provenance.mjs';
import { notesOf } from './release-texts.mjs';
import { Impossible, isProgram, main, must, root, say } from './shell.mjs';
import { presentTool } from './tools.mjs';

/** cosign's name of each attestation → the file in the release with its predicate. */
export const ATTESTATIONS = { cyclonedx: 'sbom.cdx.json', slsaprovenance1: 'provenance.json' };
export const DIGESTS = 'digests.txt';
/** The signature of {@link SUMS}. */
export const BUNDLE = `${SUMS}.sigstore.json`;
const USAGE = 'node .ci/publish.mjs <registry>/<image>@sha256:<digest> <registry>/<path of charts>';

/** Runs `body` as a step, and prints its name and duration. Resolves with its result. */
export async function step(name, body) {
  const started = performance.now();
  const result = await body();
  say(`ok: ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  return result;
}

/**
 * Publishes the chart, signatures and attestations of `image` ({repository, digest}), and fills the folder `dist`.
 * `charts` is the parent of the chart in the registry. `signer` has the options of cosign that choose a key; without
 * any, the identity of the workflow signs. `helmOptions` are for an unencrypted registry.
 */
export async function publish({ image, charts, dist, signer = [], env = process.env, helmOptions = [] }) {
  const [helm, cosign] = ['helm', 'cosign'].map((name) => {
    const path = presentTool(name);
    if (path === undefined)
      throw new Impossible(`${name} is not installed; run \`node .ci/tools.mjs ${name}\``);
    return path;
  });
  const { version } = manifest();
  const imageRef = `${image.repository}@${image.digest}`;
  const sign = (...args) =>
    must(`cosign ${args[0]}`, cosign, [args[0], '--yes', ...signer, ...args.slice(1)], { env });

  await step('pack the npm package, the chart with the digest, and the bill of materials', async () => {
    await makeDist(dist, helm, image);
    writeFileSync(
      join(dist, ATTESTATIONS.slsaprovenance1),
      `${JSON.stringify(await provenance(env), undefined, 2)}\n`,
    );
  });
  const chartRef = await step('push the chart', async () => {
    const args = ['push', join(dist, chartFile(version)), `oci://${charts}`, ...helmOptions];
    const [, digest] = /^Digest: (sha256:[0-9a-f]{64})$/m.exec(await must('helm push', helm, args)) ?? [];
    return `${charts}/weir@${digest}`;
  });
  await step('sign the image, each of its architectures, and the chart', async () => {
    await sign('sign', '--recursive', imageRef);
    await sign('sign', chartRef);
  });
  for (const [type, file] of Object.entries(ATTESTATIONS)) {
    await step(`attest ${type} for the image and the chart`, async () => {
      for (const ref of [imageRef, chartRef])
        await sign('attest', '--type', type, '--predicate', join(dist, file), ref);
    });
  }
  await step('sign the checksums', async () => {
    writeFileSync(join(dist, DIGESTS), `image ${imageRef}\nchart ${chartRef}\n`);
    writeSums(dist);
    await sign('sign-blob', '--bundle', join(dist, BUNDLE), join(dist, SUMS));
  });
  return { imageRef, chartRef };
}

if (isProgram(import.meta.url)) {
  await main(async () => {
    const [, repository, digest] = /^(\S+)@(sha256:[0-9a-f]{64})$/.exec(process.argv[2] ?? '') ?? [];
    const charts = process.argv[3];
    if (digest === undefined || charts === undefined) throw new Impossible(`usage: ${USAGE}`);
    const { version } = manifest();
    const notes = notesOf(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version);
    if (notes === undefined) throw new Impossible(`CHANGELOG.md has no section for ${version}`);
    await publish({ image: { repository, digest }, charts, dist: join(root, 'dist') });
    writeFileSync(join(root, 'build/release-notes.md'), `${notes}\n`);
  });
}
