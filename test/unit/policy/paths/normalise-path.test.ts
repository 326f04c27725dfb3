import { expect, test } from '@jest/globals';
import { normalisePath } from '../../../../src/policy/paths/normalise-path.js';

test.each([
  ['/', '/'],
  ['', '/'],
  ['/open/v5/user%252Dchats', '/open/v5/user%2Dchats'],
  ['/open%2Fv5', '/open%2Fv5'],
  ['/open%2fv5', '/open%2Fv5'],
  ['/a%zz%4', '/a%zz%4'],
  ['/a%3Fb%23c', '/a?b#c'],
  ['/open/%2e%2E/secret', '/secret'],
  ['/../../a', '/a'],
  ['/a/..', '/'],
  ['/open/..%2Fx', '/open/..%2Fx'],
  ['/open/...', '/open/...'],
  ['/open/.hidden', '/open/.hidden'],
  ['/caf%C3%A9', '/café'],
  ['/x%FFy', '/x\ufffdy'],
  ['/%E2%82%ACx', '/€x'],
  ['/%EF%BB%BFx', '/\ufeffx'],
  ['/a%0Ab', '/a\nb'],
  ['/Open/V5', '/Open/V5'],
  ['open/v5', '/open/v5'],
  ['http://host:80/open/v5?x', '/open/v5'],
  ['HTTPS://host', '/'],
])('%j becomes %j', (target, path) => {
  expect(normalisePath(target)).toBe(path);
});
