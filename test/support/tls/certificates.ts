import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate and its key, in PEM format. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** A certificate authority for one test, created with the openssl command. */
export class CertificateAuthority {
  /** Certificate of the authority, as PEM text. */
  readonly cert: string;
  readonly #key: string;

  constructor(name = 'test CA') {
    const { cert, key } = request(['-subj', `/CN=${name}`]);
    this.cert = cert;
    this.#key = key;
  }

  /** Issues a certificate for alternative names in openssl's notation: `DNS:a.test,URI:spiffe://b/c,IP:127.0.0.1`. */
  issue(subjectAltName: string): Issued {
    return request(
      ['-subj', '/CN=common.test', '-addext', `subjectAltName=${subjectAltName}`],
      ['-addext', 'basicConstraints=critical,CA:FALSE'],
      { cert: this.cert, key: this.#key },
    );
  }
}

function request(subject: readonly string[], more: readonly string[] = [], issuer?: Issued): Issued {
  const folder = mkdtempSync(join(tmpdir(), 'weir-certificates-'));
  const file = (name: string): string => join(folder, name);
  try {
    const args = ['req', '-x509', ...CURVE, '-days', '2', '-keyout', file('key'), '-out', file('cert')];
    if (issuer !== undefined) {
      writeFileSync(file('ca'), issuer.cert);
      writeFileSync(file('ca-key'), issuer.key);
      args.push('-CA', file('ca'), '-CAkey', file('ca-key'));
    }
    execFileSync('openssl', [...args, ...subject, ...more], { stdio: 'pipe' });
    return { cert: readFileSync(file('cert'), 'utf8'), key: readFileSync(file('key'), 'utf8') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
