import { symlinkSync } from 'node:fs';
import {
  ALL_FILES,
  MERGED,
  NO_DOT_FILES,
  ONLY_THE_DIRECTORY,
  OTHER_FILES,
  YAML_TEXTS,
} from './cases/files.js';
import { describeGroup } from './runner.js';

describeGroup('texts in YAML', { cases: YAML_TEXTS });

describeGroup('files of a directory', { cases: ALL_FILES, env: {} });

describeGroup('RUNTIME_IGNOREDOTFILES', { cases: NO_DOT_FILES, env: { RUNTIME_IGNOREDOTFILES: 'true' } });

describeGroup('RUNTIME_WATCH_ROOT=false', {
  cases: [...ALL_FILES, ...ONLY_THE_DIRECTORY],
  files: OTHER_FILES,
  env: { RUNTIME_WATCH_ROOT: 'false' },
});

describeGroup('RUNTIME_APPDIRECTORY and a RUNTIME_ROOT that is a link', {
  cases: ONLY_THE_DIRECTORY,
  directory: 'ratelimit/policies',
  files: OTHER_FILES,
  env: ({ root }) => {
    symlinkSync(root, `${root}/current`);
    return { RUNTIME_ROOT: `${root}/current`, RUNTIME_APPDIRECTORY: 'policies' };
  },
});

describeGroup('MERGE_DOMAIN_CONFIG', { cases: MERGED, env: { MERGE_DOMAIN_CONFIG: 'true' } });

describeGroup('no RUNTIME_SUBDIRECTORY', {
  cases: ONLY_THE_DIRECTORY,
  directory: 'config',
  files: OTHER_FILES,
  env: { RUNTIME_SUBDIRECTORY: '', RUNTIME_WATCH_ROOT: 'false' },
});
