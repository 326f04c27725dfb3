/* Tests the full text that commands print for wrong arguments, files and servers. */
import { describe } from '@jest/globals';
import { freePorts } from '../../support/process/free-port.js';
import { type TlsFiles, tlsSettings, writeTlsFiles } from '../../support/tls/tls-files.js';
import { startWeir } from '../../support/weir/weir.js';
import { CUSTOMER, LIMIT, type Mistake, testMistakes } from './table.js';

interface BadCommand {
  readonly command: string;
  readonly code: 1 | 2;
  readonly prints: string;
}

const POLICY = `${CUSTOMER}${LIMIT}`;
/** The files in the working directory. */
const FILES: Readonly<Record<string, string>> = {
  'shop.yaml': POLICY,
  'bad.yaml': POLICY.replace('minute', 'minutes'),
  'two/shop.yaml': POLICY,
  'two/edge.yaml': POLICY.replace('shop', 'edge'),
};

const ARGUMENTS: readonly BadCommand[] = [
  {
    command: 'chekc',
    code: 2,
    prints: `weir: unknown command "chekc" (did you mean check?); see weir --help
`,
  },
  {
    command: 'start',
    code: 2,
    prints: `weir: unknown command "start" (did you mean serve?); see weir --help
`,
  },
  {
    command: 'serve shop.yaml',
    code: 2,
    prints: `weir serve: unexpected argument "shop.yaml"; to specify a policy, use --config-path <path> (see weir serve --help)
`,
  },
  {
    command: 'serve --grpc-prot 9000',
    code: 2,
    prints: `weir serve: unknown option --grpc-prot (did you mean --grpc-port?); see weir serve --help
`,
  },
  {
    command: 'serve --grpc-port abc',
    code: 2,
    prints: `weir: --grpc-port: "abc" is not a port number from 0 to 65535
`,
  },
  {
    command: 'check-config',
    code: 2,
    prints: `weir check-config: specify at least one policy file or directory; see weir check-config --help
`,
  },
  {
    command: 'check-config --strict shop.yaml',
    code: 2,
    prints: `weir check-config: unknown option --strict; see weir check-config --help
`,
  },
  {
    command: 'explain shop.yaml',
    code: 2,
    prints: `weir explain: specify a policy file and at least one key=value; see weir explain --help
`,
  },
  {
    command: 'explain customer=ann shop.yaml',
    code: 2,
    prints: `weir explain: argument 2 is not of the form key=value; write the policy path first, and then entries such as user=ann
`,
  },
  {
    command: 'explain two customer=ann',
    code: 2,
    prints: `weir explain: the policy has several domains; specify one with --domain: edge, shop
`,
  },
  {
    command: 'check --address localhost customer=ann',
    code: 2,
    prints: `weir check: --address "localhost" is not of the form host:port (IPv6 addresses in brackets, as in [::1]:8081) or unix:<path>; write localhost:8081; see weir check --help
`,
  },
  {
    command: 'check --count many customer=ann',
    code: 2,
    prints: `weir check: --count "many" is not a whole number from 1 to 10000000; see weir check --help
`,
  },
  {
    command: 'check --timeout 500 customer=ann',
    code: 2,
    prints: `weir check: --timeout "500" is not a duration from 1ms to 1h, such as 500ms or 2s; see weir check --help
`,
  },
  {
    command: 'check customer=ann --domain',
    code: 2,
    prints: `weir check: --domain needs a value; write the value after the option; see weir check --help
`,
  },
  {
    command: 'bucket grant shop customer=ann --tokens -5',
    code: 2,
    prints: `weir bucket: --tokens needs a value; write the value after the option, or as --tokens=… if it begins with -; see weir bucket --help
`,
  },
  {
    command: 'check customer:ann',
    code: 2,
    prints: `weir check: "customer:ann" is not an entry; write customer=ann; see weir check --help
`,
  },
  {
    command: 'diff shop.yaml',
    code: 2,
    prints: `weir diff: specify two policy files or directories, the old one and the new one; see weir diff --help
`,
  },
  {
    command: 'migrate',
    code: 2,
    prints: `weir migrate: specify the files of the installation, or a directory; see weir migrate --help
`,
  },
];

const PATHS: readonly BadCommand[] = [
  {
    command: 'check-config shop.yml',
    code: 1,
    prints: `shop.yml: "shop.yml" does not exist: the path is relative to the working directory "<folder>", so weir tried "<folder>/shop.yml"; check the path
1 error
`,
  },
  {
    command: 'explain shop.yaml --domain shpo customer=ann',
    code: 1,
    prints: `domain:     shpo
descriptor: customer=ann
result:     The domain is unknown: no limit. Known domains: "shop".
to match:   Did you mean shop?
`,
  },
  {
    command: 'explain shop.yaml customr=ann',
    code: 1,
    prints: `domain:     shop (shop.yaml)
descriptor: customr=ann
level 1:    customr=ann
            no rule uses this key at this level
result:     Nothing in the policy matches entry 1: no limit.
to match:   Did you mean customer?
overrides:  a limit in the request is applied as a fixed window, instead of the policy's limits
decision metadata: off, unless DECISION_METADATA is set
`,
  },
  {
    command: 'diff old.yaml shop.yaml',
    code: 1,
    prints: `old.yaml: "old.yaml" does not exist: the path is relative to the working directory "<folder>", so weir tried "<folder>/old.yaml"; check the path
`,
  },
  {
    command: 'diff shop.yaml bad.yaml',
    code: 1,
    prints: `bad.yaml:4:25: descriptors[0].rate_limit.unit: "minutes" is not a valid unit; did you mean "minute"?
`,
  },
  {
    command: 'migrate two --env ratelimit.env',
    code: 1,
    prints: `weir migrate: "ratelimit.env" does not exist: the path is relative to the working directory "<folder>", so weir tried "<folder>/ratelimit.env"; check the path
`,
  },
  {
    command: 'migrate two --env shop.yaml',
    code: 1,
    prints: `weir migrate: --env: "shop.yaml" is a policy and contains no variables; pass the file without --env
`,
  },
  {
    command: 'check --address 127.0.0.1:<tls> --ca ca.pem customer=ann',
    code: 1,
    prints: `weir check: --ca: cannot read ca.pem: the file does not exist: the path is relative to the working directory "<folder>", so weir tried "<folder>/ca.pem"; correct the path
`,
  },
];

const SERVERS: readonly BadCommand[] = [
  {
    command: 'check --address 127.0.0.1:<nobody> customer=ann',
    code: 1,
    prints: `OK                  0
OVER_LIMIT          0
UNAVAILABLE         1
weir check: 1 of 1 calls failed: nothing listens on 127.0.0.1:<nobody>; start weir serve, or specify the server with --address
`,
  },
  {
    command: 'check --address 127.0.0.1:<http> customer=ann',
    code: 1,
    prints: `OK                  0
OVER_LIMIT          0
UNAVAILABLE         1
weir check: 1 of 1 calls failed: 127.0.0.1:<http> does not speak gRPC; specify the server's gRPC port (GRPC_PORT) with --address
`,
  },
  {
    command: 'check --address 127.0.0.1:<tls> customer=ann',
    code: 1,
    prints: `OK                  0
OVER_LIMIT          0
UNAVAILABLE         1
weir check: 1 of 1 calls failed: 127.0.0.1:<tls> closed the connection without an answer; if it speaks TLS, set --ca to the file with the CA certificate, or use --tls if Node.js trusts the CA
`,
  },
  {
    command: 'check --address 127.0.0.1:<tls> --tls customer=ann',
    code: 1,
    prints: `OK                  0
OVER_LIMIT          0
UNAVAILABLE         1
weir check: 1 of 1 calls failed: the certificate of 127.0.0.1:<tls> is not accepted (unable to verify the first certificate); set --ca to the file with the CA certificate
`,
  },
  {
    command: 'check --address 127.0.0.1:<clear> --tls customer=ann',
    code: 1,
    prints: `OK                  0
OVER_LIMIT          0
UNAVAILABLE         1
weir check: 1 of 1 calls failed: the TLS handshake with 127.0.0.1:<clear> failed; if it does not speak TLS, remove --tls, --ca, --cert and --key
`,
  },
  {
    command: 'check --address weir.invalid:8081 customer=ann',
    code: 1,
    prints: `OK                  0
OVER_LIMIT          0
UNAVAILABLE         1
weir check: 1 of 1 calls failed: the host name in weir.invalid:8081 cannot be resolved; specify the correct address with --address
`,
  },
  {
    command: 'health --address 127.0.0.1:<nobody>',
    code: 1,
    prints: `weir health: nothing listens on 127.0.0.1:<nobody>; start weir serve, or specify the server with --address
`,
  },
  {
    command: 'health --address 127.0.0.1:<http>',
    code: 1,
    prints: `weir health: 127.0.0.1:<http> does not speak gRPC; specify the server's gRPC port (GRPC_PORT) with --address
`,
  },
  {
    command: 'health --address 127.0.0.1:<tls>',
    code: 1,
    prints: `weir health: 127.0.0.1:<tls> closed the connection without an answer; if it speaks TLS, set --ca to the file with the CA certificate, or use --tls if Node.js trusts the CA
`,
  },
];

const asMistake = ({ command, code, prints }: BadCommand): Mistake => ({
  what: command,
  args: command.split(' '),
  files: FILES,
  code,
  prints,
});

let pem: TlsFiles | undefined;

/** Starts servers in clear text and with TLS, and reserves a port without a server. */
async function prepare(): Promise<Readonly<Record<string, string>>> {
  pem = writeTlsFiles();
  const [clear, tls] = await Promise.all([
    startWeir({ policy: POLICY }),
    startWeir({ policy: POLICY, env: tlsSettings(pem) }),
  ]);
  const [nobody] = await freePorts(1);
  return {
    '<nobody>': String(nobody),
    '<http>': String(clear.httpPort),
    '<clear>': String(clear.grpcPort),
    '<tls>': String(tls.grpcPort),
  };
}

describe('weir', () => {
  testMistakes([...ARGUMENTS, ...PATHS, ...SERVERS].map(asMistake), prepare);
});
