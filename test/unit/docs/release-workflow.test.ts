/* Checks .github/workflows/release.yml, and the examples for clusters, which must name the same signer. */
import { createHash } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { runToEnd } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { repositoryRoot } from '../../support/process/tools.js';

interface Step {
  readonly name?: string;
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

/**
 * Runs the commands of a step for a tag, in a shell as GitHub starts it. `programs` (name → script) replace programs of
 * the machine. Resolves with the exit code, what the programs said, and the variables for later steps.
 */
async function runStep(
  name: string,
  tag: string,
  programs: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv = {},
) {
  const folder = new TempDir();
  for (const [program, script] of Object.entries(programs))
    chmodSync(folder.write(`bin/${program}`, `#!/bin/sh\n${script}\n`), 0o755);
  const variables = folder.write('variables', '');
  folder.write('dist/weir-1.2.0.tgz', 'the package');
  const PATH = [folder.join('bin'), process.env['PATH']].join(delimiter);
  const command = steps.find((step) => step.name === name)?.run ?? 'exit 99';
  const { code, stdout } = await runToEnd('bash', ['-e', '-c', command], {
    cwd: folder.path,
    env: { ...env, PATH, GITHUB_REF_NAME: tag, GITHUB_ENV: variables },
  });
  return { code, stdout, variables: readFileSync(variables, 'utf8') };
}

test.each([
  ['v1.10.0', 'latest'],
  ['v1.9.1', 'older'],
  ['v1.10.0-rc.1', 'next'],
  ['v2.0.0-rc.1', 'next'],
])('beside v1.9.0, v1.10.0 and v2.0.0-rc.1, the tag %s becomes %s', async (tag, channel) => {
  const git = `printf '%s\\n' v1.9.0 v1.10.0-rc.1 v1.10.0 v2.0.0-rc.1 ${tag}`;
  const ended = await runStep('Choose the channel', tag, { git });
  expect(ended).toMatchObject({ code: 0, variables: `CHANNEL=${channel}\n` });
});

test.each([
  ['v1.2.0', 1],
  ['v1.2', 0],
  ['v1.2.0-rc.1', 0],
])('a run for %s ends with %i if v1.2.0 is published', async (tag, code) => {
  const gh = `printf 'v1.1.0\\nv1.2.0\\n'`;
  expect((await runStep('Refuse a version that is published', tag, { gh })).code).toBe(code);
  // It does not take an error for an answer.
  expect((await runStep('Refuse a version that is published', tag, { gh: 'exit 1' })).code).toBe(1);
});

test('publishes a local file to npm, once', async () => {
  const integrity = `sha512-${createHash('sha512').update('the package').digest('base64')}`;
  const npm = (known: string): string =>
    `case "$1" in view) ${known} ;; *) shift; [ -f "$1" ] && echo "published $*" ;; esac`;
  const publish = (known: string) =>
    runStep('Publish the npm package', 'v1.2.0', { npm: npm(known) }, { CHANNEL: 'older' });
  // npm takes a path that begins with the name of a folder for a repository.
  const published = 'published ./dist/weir-1.2.0.tgz --provenance --access public --tag older\n';
  expect(await publish('exit 1')).toMatchObject({ code: 0, stdout: published });
  expect(await publish('echo sha512-other')).toMatchObject({ code: 0, stdout: published });
  expect(await publish(`echo ${integrity}`)).toMatchObject({ code: 0, stdout: '' });
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
  readonly kind: string;
  readonly spec: {
    readonly attestors: readonly {
      readonly name: string;
      readonly cosign: { readonly keyless: { readonly identities: readonly Keyless[] } };
    }[];
    readonly attestations: readonly { readonly name: string; readonly intoto: { readonly type: string } }[];
    readonly validations: readonly { readonly expression: string }[];
  };
}
interface Authority {
  readonly signatureFormat: string;
  readonly keyless: { readonly identities: readonly Keyless[] };
  readonly attestations: readonly { readonly predicateType: string }[];
}

const { kind, spec: kyverno } = parse(read('deploy/verify/kyverno.yaml')) as Kyverno;
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
    for (const subject of ['IMAGE', 'CHART']) {
      // Nothing follows that would hide a failure.
      const line = `^cosign verify-attestation \\$SIGNER --type ${name} "\\$${subject}" > [\\w./]+$`;
      expect(manual).toMatch(new RegExp(line, 'm'));
    }
  }
  expect(kyverno.attestations.map(({ intoto }) => intoto.type)).toEqual(PREDICATES);
  // Kyverno checks only what an expression asks for.
  const [attestor] = kyverno.attestors;
  expect(kyverno.validations).toHaveLength(kyverno.attestations.length);
  for (const [index, { name }] of kyverno.attestations.entries()) {
    const check = `verifyAttestationSignatures(image, attestations.${name}, [attestors.${attestor?.name}])`;
    const { expression } = kyverno.validations[index] ?? {};
    expect(expression).toContain(`.map(image, ${check}).all(count, count > 0)`);
    for (const containers of ['containers', 'initContainers', 'ephemeralContainers'])
      expect(expression).toContain(`images.?${containers}.orValue([])`);
  }
  expect(controller.authorities[0]?.attestations.map(({ predicateType }) => predicateType)).toEqual(
    PREDICATES,
  );
  // cosign 3 stores bundles, which neither ClusterPolicies nor the controller read by default.
  expect([kind, controller.authorities[0]?.signatureFormat]).toEqual(['ImageValidatingPolicy', 'bundle']);
});

test('the manual and both examples accept this workflow of a tag, and no other signer', () => {
  const [, issuer] = /--certificate-oidc-issuer=([^" ]+)/.exec(manual) ?? [];
  const [, identity = ''] = /--certificate-identity=([^"]+)"/.exec(manual) ?? [];
  const signer = identity.replace('$VERSION', '1.2.3');
  const path = `https://github.com/OWNER/weir/${FOLDER}/release.yml@refs`;
  expect(signer).toBe(`${path}/tags/v1.2.3`);
  const keyless = [
    ...kyverno.attestors.flatMap(({ cosign }) => cosign.keyless.identities),
    ...(controller.authorities[0]?.keyless.identities ?? []),
  ];
  expect(keyless).toHaveLength(2);
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
