/*
 * Tests the output of weir check-config for files that are not policies, or not YAML. A start prints the same lines.
 * The texts about YAML are in unit/config/read/likely-mistakes.test.ts.
 */
import { describe } from '@jest/globals';
import { type BadPolicy, CUSTOMER, checked, LIMIT, testMistakes } from './table.js';

const FILES: readonly BadPolicy[] = [
  {
    what: 'a mistyped key',
    policy: `domain: shop\ndescriptors:\n  - kye: customer\n${LIMIT}`,
    prints: `shop.yaml:3:5: descriptors[0].kye: unknown key "kye"; did you mean "key"?
shop.yaml:3:5: descriptors[0].key: "key" is missing; write the key of the entry that this descriptor matches
domains that would fail to load: shop
2 errors
`,
  },
  {
    what: 'a variable of a shell in the domain',
    policy: `domain: \${DOMAIN}\ndescriptors:\n  - key: customer\n${LIMIT}`,
    warning: true,
    prints: `warning: shop.yaml:1:9: domain: "\${" begins a variable, and weir does not substitute variables; run the file through envsubst first, and load the result
ok: 1 file, '\${DOMAIN}' (1 rule)
`,
  },
  {
    what: 'a variable of a shell in a limit',
    policy: `${CUSTOMER}${LIMIT.replace('10', `\${LIMIT}`)}`,
    prints: `shop.yaml:4:52: "\${" begins a variable, and weir does not substitute variables; run the file through envsubst first, and load the result
1 error
`,
  },
  {
    what: 'a policy in JSON',
    policy: { 'shop.json': '{ "domain": "shop" }' },
    prints: `.: the directory has no file that ends in .yaml or .yml, only shop.json; rename JSON policies to *.yaml (JSON is valid YAML), or specify the directory that contains the policies
1 error
`,
  },
  {
    what: 'a Deployment',
    policy: 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: weir }\n',
    prints: `shop.yaml: the file has no ConfigMap, only manifests of kind Deployment; specify the manifest of the ConfigMap that contains the policies
1 error
`,
  },
  {
    what: 'a ConfigMap without a policy',
    policy: 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: weir }\ndata: { REDIS_URL: "redis:6379" }\n',
    prints: `warning: shop.yaml:4:20: data["REDIS_URL"]: this key does not contain a policy, and is skipped
shop.yaml: no key under "data" in the ConfigMaps of the file contains a policy; specify the manifest of the ConfigMap that contains the policies
1 error
`,
  },
  {
    what: 'a directory without policies',
    policy: { 'README.md': '# Policies\n' },
    prints: `.: the directory has no file that ends in .yaml or .yml, only README.md; specify the directory that contains the policies
1 error
`,
  },
  {
    what: 'one domain in two files',
    policy: { 'a.yaml': `${CUSTOMER}${LIMIT}`, 'b.yaml': `${CUSTOMER.replace('customer', 'path')}${LIMIT}` },
    prints: `b.yaml:1:9: domain: the domain "shop" is already defined in a.yaml:1:9, so neither file is loaded; define each domain in only one file, or set MERGE_DOMAIN_CONFIG=true
domains that would fail to load: shop
1 error
`,
  },
];

describe('weir check-config reports a file', () => {
  testMistakes(FILES.map(checked));
});
