/* What is said of files that are no policies, or no YAML: the whole text. A start prints the same lines. */
import { describe } from '@jest/globals';
import { type BadPolicy, CUSTOMER, checked, LIMIT, node, testMistakes } from './table.js';

const YAML: readonly BadPolicy[] = [
  {
    what: 'a line that is indented less than it should be',
    policy: `${CUSTOMER}${LIMIT.slice(1)}`,
    prints: `shop.yaml:4:4: this is not valid YAML: this line is neither an item of the list above it nor a key of such an item; begin it with "- ", or correct the spaces before it
1 error
`,
  },
  {
    what: 'a line that is indented more',
    policy: `${CUSTOMER}  ${LIMIT}`,
    prints: `shop.yaml:4:7: this is not valid YAML: this line is indented more than the key above it, which has a value on its own line already; indent the two lines alike
1 error
`,
  },
  {
    what: 'a limit beside the dash of its key',
    policy: `${CUSTOMER}${LIMIT.slice(2)}`,
    prints: `shop.yaml:4:3: this is not valid YAML: the keys of one mapping must be indented alike; correct the spaces before this line or those above it
1 error
`,
  },
  {
    what: 'a tab',
    policy: `${CUSTOMER}\t${LIMIT.trim()}\n`,
    prints: `shop.yaml:4:1: this is not valid YAML: there is a tab in the indentation; write spaces in its place
1 error
`,
  },
  {
    what: 'a star without quotes',
    policy: node('value: *'),
    prints: `shop.yaml:4:12: this is not valid YAML: a "*" without quotes begins an alias; quote it, as in value: "*"
1 error
`,
  },
  {
    what: 'a colon in a value',
    policy: node('value: GET: /orders'),
    prints: `shop.yaml:4:12: this is not valid YAML: there is a second ": " in one value; write the text in quotes
1 error
`,
  },
  {
    what: 'a value that begins with @',
    policy: node('value: @beta'),
    prints: `shop.yaml:4:12: this is not valid YAML: a text that begins with "@" needs quotes; write the text in quotes
1 error
`,
  },
  {
    what: 'an open quote',
    policy: node('value: "ann'),
    prints: `shop.yaml:4:12: this is not valid YAML: the quoted text that begins here is not closed; add the missing quote, here or on a line above
1 error
`,
  },
  {
    what: 'an open brace',
    policy: `${CUSTOMER}${LIMIT.replace(' }', '')}  - key: path\n`,
    prints: `shop.yaml:4:17: this is not valid YAML: the "{" here is not closed; add the missing "}", or indent what stands in the braces more than their key
1 error
`,
  },
  {
    what: 'no space after a colon',
    policy: `domain: shop\ndescriptors:\n  - key:customer\n${LIMIT}`,
    prints: `shop.yaml:3:3: this is not valid YAML: there is no space after the colon; write one, as in "key: value"
1 error
`,
  },
  {
    what: 'no space after a dash',
    policy: `domain: shop\ndescriptors:\n  -key: customer\n${LIMIT}`,
    prints: `shop.yaml:3:3: this is not valid YAML: there is no space after the "-"; write one, as in "- key"
1 error
`,
  },
  {
    what: 'marks of a merge conflict',
    policy: `domain: shop\ndescriptors:\n<<<<<<< HEAD\n  - key: a\n=======\n  - key: b\n>>>>>>> main\n${LIMIT}`,
    prints: `shop.yaml:3:1: this is a mark of a merge conflict; keep one of the two sides, and remove the three lines of marks
1 error
`,
  },
  {
    what: 'a template of Helm',
    policy: CUSTOMER.replace('shop', '{{ .Values.domain }}') + LIMIT,
    prints: `shop.yaml:1:9: domain: this is a template ("{{") that nothing has filled in yet; fill it in first, for instance with "helm template", and load the result, or write the text in quotes
1 error
`,
  },
  {
    what: 'a second document',
    policy: `${CUSTOMER}${LIMIT}---\ndomain: edge\n`,
    warning: true,
    prints: `warning: shop.yaml:5:1: only the first document of a file is read; move the documents after this line to files of their own
ok: 1 file, shop (1 rule)
`,
  },
  {
    what: 'nothing',
    policy: '',
    prints: `shop.yaml: the file is empty; write the policy into it or remove it
1 error
`,
  },
];

const OTHER_FILES: readonly BadPolicy[] = [
  {
    what: 'line ends of Windows',
    policy: `${CUSTOMER}${LIMIT.replace('minute', 'minutes')}`.replaceAll('\n', '\r\n'),
    prints: `shop.yaml:4:25: descriptors[0].rate_limit.unit: "minutes" is no unit; did you mean "minute"?
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a variable of a shell in the domain',
    policy: `domain: \${DOMAIN}\ndescriptors:\n  - key: customer\n${LIMIT}`,
    warning: true,
    prints: `warning: shop.yaml:1:9: domain: "\${" begins a variable that nothing has filled in, and weir fills none in; run the file through envsubst first, and load the result
ok: 1 file, '\${DOMAIN}' (1 rule)
`,
  },
  {
    what: 'a variable of a shell in a limit',
    policy: `${CUSTOMER}${LIMIT.replace('10', `\${LIMIT}`)}`,
    prints: `shop.yaml:4:52: this is not valid YAML: "\${" begins a variable that nothing has filled in, and weir fills none in; run the file through envsubst first, and load the result
1 error
`,
  },
  {
    what: 'a policy in JSON',
    policy: { 'shop.json': '{ "domain": "shop" }' },
    prints: `.: the directory has no file that ends in .yaml or .yml, and holds only shop.json; end the name of a policy in JSON with .yaml, as JSON is YAML, or name the directory with the policies
1 error
`,
  },
  {
    what: 'a Deployment',
    policy: 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: weir }\n',
    prints: `shop.yaml: the file holds no ConfigMap, and only manifests of kind Deployment; name the manifest of the ConfigMap that holds the policies
1 error
`,
  },
  {
    what: 'a ConfigMap without a policy',
    policy: 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: weir }\ndata: { REDIS_URL: "redis:6379" }\n',
    prints: `warning: shop.yaml:4:20: data["REDIS_URL"]: the key holds no policy and is left out
shop.yaml: no key of "data" in its ConfigMaps holds a policy; name the manifest of the ConfigMap that holds the policies
1 error
`,
  },
  {
    what: "Envoy's configuration",
    policy: 'static_resources:\n  listeners: []\n',
    prints: `shop.yaml:1:1: this is Envoy's configuration, not a policy; a policy file begins with "domain: <name>"; move this one elsewhere
1 error
`,
  },
  {
    what: "actions of Envoy's route",
    policy: `${CUSTOMER}    actions: [{ request_headers: { header_name: x-customer, descriptor_key: customer } }]\n`,
    prints: `shop.yaml:4:5: descriptors[0].actions: this belongs to the route in Envoy's configuration, where it says which descriptors Envoy sends; move it there, and write here "key" and "rate_limit" for the entries that it makes
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a directory without policies',
    policy: { 'README.md': '# Policies\n' },
    prints: `.: the directory has no file that ends in .yaml or .yml, and holds only README.md; name the directory with the policies
1 error
`,
  },
  {
    what: 'one domain in two files',
    policy: { 'a.yaml': `${CUSTOMER}${LIMIT}`, 'b.yaml': `${CUSTOMER.replace('customer', 'path')}${LIMIT}` },
    prints: `b.yaml:1:9: domain: the domain "shop" is already defined in a.yaml:1:9, so neither file is used; write one file for a domain, or set MERGE_DOMAIN_CONFIG=true
domains that weir serve would not load: shop
1 error
`,
  },
];

describe('what weir check-config says of a file', () => {
  testMistakes([...YAML, ...OTHER_FILES].map(checked));
});
