/* Checks .github/workflows/release.yml, and the examples for clusters, which must name the same signer. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { repositoryRoot } from '../../support/process/tools.js';

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Job {
  readonly permissions: Readonly<Record<string, string>>;
  readonly needs?: string;
  readonly 'timeout-minutes': number;
  readonly steps: readonly Step[];
}

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');
const FOLDER = '.github/workflows';
const text = read(`${FOLDER}/release.yml`);
const workflow = parse(text) as {
  readonly on: unknown;
  readonly permissions: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
};
const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);
const commands = steps.map(({ run = '' }) => run).join('\n');

test('every action is pinned by a commit, and names its version', () => {
  for (const name of readdirSync(join(repositoryRoot, FOLDER))) {
    const uses = read(`${FOLDER}/${name}`).match(/^.*\buses:.*$/gm) ?? [];
    expect(uses.length).toBeGreaterThan(0);
    for (const line of uses) expect(line).toMatch(/uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  }
});

test('each job has the permissions that it needs, and only the last one can sign', () => {
  expect(workflow.permissions).toEqual({});
  expect(Object.entries(workflow.jobs).map(([name, { permissions }]) => [name, permissions])).toEqual([
    ['gate', { contents: 'read' }],
    ['image', { contents: 'read', packages: 'write' }],
    ['publish', { contents: 'write', packages: 'write', 'id-token': 'write' }],
  ]);
  for (const job of Object.values(workflow.jobs)) expect(job['timeout-minutes']).toBeGreaterThan(0);
});

test('starts for tags only, and publishes nothing that has not passed the gate', () => {
  expect(workflow.on).toEqual({ push: { tags: ['v*'] } });
  expect(Object.values(workflow.jobs).map(({ needs }) => needs)).toEqual([undefined, 'gate', 'image']);
  const [gate] = Object.values(workflow.jobs);
  const gated = gate?.steps.map(({ run }) => run);
  expect(gated).toEqual(
    expect.arrayContaining(['.ci/run', 'npm run release -- --gate', 'npm run release -- --rehearse']),
  );
});

test('puts no expression into a shell, and leaves no login in the checkout', () => {
  expect(commands).not.toContain('${{');
  const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'));
  expect(checkouts).toHaveLength(3);
  for (const { with: options } of checkouts) expect(options?.['persist-credentials']).toBe(false);
});

test('signs with the commands of the rehearsal, and pushes the image by digest', () => {
  expect(commands).toContain('node .ci/publish.mjs "$IMAGE@$DIGEST" "$CHARTS"');
  expect(commands).not.toMatch(/\bcosign (?:sign|attest)/);
  expect(commands).toContain('push-by-digest=true');
  expect(commands).toMatch(/npm publish .* --provenance/);
  expect(read('.ci/rehearse.mjs')).toContain(
    "import { ATTESTATIONS, BUNDLE, DIGESTS, publish, step } from './publish.mjs'",
  );
});

test('uses the Node.js of the image', () => {
  const [, version] = /^FROM node:([\d.]+)-/m.exec(read('deploy/Dockerfile')) ?? [];
  const setups = steps.filter(({ uses }) => uses?.startsWith('actions/setup-node@'));
  expect(setups.map((step) => step.with?.['node-version'])).toEqual([version, version]);
});

/** The predicate types that cosign writes for its names of them in publish.mjs. */
const PREDICATES = ['https://slsa.dev/provenance/v1', 'https://cyclonedx.org/bom'];
const NAMES = ['slsaprovenance1', 'cyclonedx'];

interface Keyless {
  readonly issuer: string;
  readonly subjectRegExp: string;
}
interface Kyverno {
  readonly type: string;
  readonly imageReferences: readonly string[];
  readonly attestations: readonly {
    readonly type: string;
    readonly attestors: readonly { readonly entries: readonly { readonly keyless: Keyless }[] }[];
  }[];
}
interface Authority {
  readonly signatureFormat: string;
  readonly keyless: { readonly identities: readonly Keyless[] };
  readonly attestations: readonly { readonly predicateType: string }[];
}

const kyverno = (
  parse(read('deploy/verify/kyverno.yaml')) as {
    readonly spec: { readonly rules: readonly { readonly verifyImages: readonly Kyverno[] }[] };
  }
).spec.rules[0]?.verifyImages[0];
const controller = (
  parse(read('deploy/verify/policy-controller.yaml')) as {
    readonly spec: {
      readonly images: readonly { glob: string }[];
      readonly authorities: readonly Authority[];
    };
  }
).spec;
const manual = read('docs/operate/verify.md');

test('the manual and both examples require the attestations that publish.mjs makes', () => {
  const [, made = ''] = /ATTESTATIONS = \{(.*)\}/.exec(read('.ci/publish.mjs')) ?? [];
  expect([...made.matchAll(/(\w+):/g)].map(([, name]) => name).sort()).toEqual([...NAMES].sort());
  for (const name of NAMES) {
    for (const subject of ['$IMAGE', '$CHART'])
      expect(manual).toContain(`cosign verify-attestation $SIGNER --type ${name} "${subject}"`);
  }
  expect(kyverno?.attestations.map(({ type }) => type)).toEqual(PREDICATES);
  expect(controller.authorities[0]?.attestations.map(({ predicateType }) => predicateType)).toEqual(
    PREDICATES,
  );
  // cosign 3 stores bundles, which neither of them reads by default.
  expect([kyverno?.type, controller.authorities[0]?.signatureFormat]).toEqual(['SigstoreBundle', 'bundle']);
});

test('the manual and both examples accept this workflow of a tag, and no other signer', () => {
  const [, issuer] = /--certificate-oidc-issuer=([^" ]+)/.exec(manual) ?? [];
  const [, identity = ''] = /--certificate-identity=([^"]+)"/.exec(manual) ?? [];
  const signer = identity.replace('$VERSION', '1.2.3');
  const path = `https://github.com/OWNER/weir/${FOLDER}/release.yml@refs`;
  expect(signer).toBe(`${path}/tags/v1.2.3`);
  const keyless = [
    ...(kyverno?.attestations ?? []).flatMap(({ attestors }) =>
      attestors.flatMap(({ entries }) => entries.map((entry) => entry.keyless)),
    ),
    ...(controller.authorities[0]?.keyless.identities ?? []),
  ];
  expect(keyless).toHaveLength(3);
  for (const one of keyless) {
    expect(one.issuer).toBe(issuer);
    const accepts = new RegExp(one.subjectRegExp);
    expect(signer).toMatch(accepts);
    for (const other of [
      `${path}/heads/main`,
      signer.replace('release.yml', 'other.yml'),
      signer.replace('OWNER', 'SOMEBODY'),
      `${signer.replace('https://', 'https://example.com/https://')}`,
    ])
      expect(other).not.toMatch(accepts);
  }
});
