// The provenance of a build (SLSA v1): from which commit, with which base image, and by whom it was made. In GitHub
// Actions, the variables of the run describe the builder. Anywhere else, the build is a rehearsal.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { must, root } from './shell.mjs';

const GITHUB_TYPE = 'https://slsa-framework.github.io/github-actions-buildtypes/workflow/v1';
const REHEARSAL = 'https://example.com/weir/rehearsal';

/** Returns {name, digest} of the base image in deploy/Dockerfile. */
function baseImage() {
  const text = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8');
  const [, name, digest] = /^FROM (\S+)@sha256:([0-9a-f]{64})/m.exec(text) ?? [];
  return { name, digest };
}

/** Resolves with the predicate of the provenance. `env`: the variables of the run. */
export async function provenance(env = process.env) {
  const commit = (await must('git rev-parse', 'git', ['rev-parse', 'HEAD'])).trim();
  const base = baseImage();
  const server = env.GITHUB_ACTIONS === 'true' ? env.GITHUB_SERVER_URL : undefined;
  const repository = server === undefined ? REHEARSAL : `${server}/${env.GITHUB_REPOSITORY}`;
  const ref = env.GITHUB_REF ?? 'HEAD';
  const [path] = (env.GITHUB_WORKFLOW_REF ?? '').replace(`${env.GITHUB_REPOSITORY}/`, '').split('@');
  return {
    buildDefinition: {
      buildType: server === undefined ? REHEARSAL : GITHUB_TYPE,
      externalParameters: { workflow: { ref, repository, path } },
      internalParameters: server === undefined ? {} : { github: { event_name: env.GITHUB_EVENT_NAME } },
      resolvedDependencies: [
        { uri: `git+${repository}@${ref}`, digest: { gitCommit: commit } },
        { uri: `docker://${base.name}`, digest: { sha256: base.digest } },
      ],
    },
    runDetails: {
      builder: { id: server === undefined ? REHEARSAL : `${server}/${env.GITHUB_WORKFLOW_REF}` },
      metadata: {
        invocationId:
          server === undefined
            ? commit
            : `${repository}/actions/runs/${env.GITHUB_RUN_ID}/attempts/${env.GITHUB_RUN_ATTEMPT}`,
      },
    },
  };
}
