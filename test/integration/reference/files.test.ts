import { symlinkSync } from 'node:fs';
import { ALL_FILES, MERGED, NO_DOT_FILES, ONLY_THE_DIRECTORY, OTHER_FILES } from './cases/files.js';
import { describeGroup } from './runner.js';

describeGroup('RUNTIME_WATCH_ROOT=false', {
  cases: [...ALL_FILES, ...ONLY_THE_DIRECTORY],
  files: OTHER_FILES,
  env: { RUNTIME_WATCH_ROOT: 'false' },
});

describeGroup(
  'RUNTIME_APPDIRECTORY, RUNTIME_IGNOREDOTFILES, MERGE_DOMAIN_CONFIG, and a RUNTIME_ROOT that is a link',
  {
    cases: [...ONLY_THE_DIRECTORY, ...NO_DOT_FILES, ...MERGED],
    directory: 'ratelimit/policies',
    files: OTHER_FILES,
    env: ({ root }) => {
      symlinkSync(root, `${root}/current`);
      return {
        RUNTIME_ROOT: `${root}/current`,
        RUNTIME_APPDIRECTORY: 'policies',
        RUNTIME_IGNOREDOTFILES: 'true',
        MERGE_DOMAIN_CONFIG: 'true',
      };
    },
  },
);

describeGroup('no RUNTIME_SUBDIRECTORY', {
  cases: ONLY_THE_DIRECTORY,
  directory: 'config',
  files: OTHER_FILES,
  env: { RUNTIME_SUBDIRECTORY: '', RUNTIME_WATCH_ROOT: 'false' },
});
