import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import {
  hasSubjectAltName,
  secureContextOptions,
  type TlsMaterial,
  TlsMaterialError,
} from '../../../src/h2/tls-material.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';

const authority = new CertificateAuthority();
const server = authority.issue('DNS:localhost');
const other = authority.issue('DNS:localhost');

describe('certificates of a server', () => {
  test('are accepted with and without issuers of client certificates', () => {
    expect(secureContextOptions({ ...server, clientCa: undefined })).toMatchObject(server);
    expect(secureContextOptions({ ...server, clientCa: authority.cert })).toMatchObject({
      ca: authority.cert,
    });
  });

  const refused: [string, Partial<TlsMaterial>, keyof TlsMaterial, RegExp][] = [
    ['no certificate', { cert: '' }, 'cert', /BEGIN CERTIFICATE/],
    ['a certificate that is none', { cert: 'hello' }, 'cert', /BEGIN CERTIFICATE/],
    ['a cut certificate', { cert: server.cert.slice(0, 200) }, 'cert', /not a PEM certificate/],
    ['a key in the place of the certificate', { cert: server.key }, 'cert', /not a PEM certificate/],
    ['no key', { key: '' }, 'key', /not a PEM private key/],
    ['a certificate in the place of the key', { key: server.cert }, 'key', /not a PEM private key/],
    ["another certificate's key", { key: other.key }, 'key', /does not belong/],
    ['empty issuers', { clientCa: '' }, 'clientCa', /BEGIN CERTIFICATE/],
    ['a key in the place of the issuers', { clientCa: server.key }, 'clientCa', /not a PEM certificate/],
  ];
  test.each(refused)('%s is refused', (_what, change, part, words) => {
    const material = { ...server, clientCa: authority.cert, ...change };
    let error: unknown;
    try {
      secureContextOptions(material);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(TlsMaterialError);
    expect((error as TlsMaterialError).part).toBe(part);
    expect((error as TlsMaterialError).message).toMatch(words);
    // No part of a key may be logged.
    expect((error as TlsMaterialError).message).not.toContain(server.key.split('\n')[1]);
  });
});

describe('subject alternative names', () => {
  const names =
    'DNS:envoy.test,DNS:*.mesh.test,URI:spiffe://cluster.local/ns/a/sa/b,IP:10.1.2.3,IP:2001:db8::1';
  const certificate = new X509Certificate(authority.issue(names).cert);

  test.each([
    ['envoy.test', true],
    ['ENVOY.Test', true],
    ['a.mesh.test', true],
    ['a.b.mesh.test', false],
    ['mesh.test', false],
    ['.mesh.test', false],
    ['.test', false],
    ['other.test', false],
    ['nvoy.test', false],
    ['spiffe://cluster.local/ns/a/sa/b', true],
    ['spiffe://cluster.local/ns/a/sa/B', false],
    ['spiffe://cluster.local/ns/a/sa', false],
    ['spiffe://cluster.local/ns/a/sa/b/c', false],
    ['10.1.2.3', true],
    ['10.1.2.4', false],
    ['2001:db8::1', true],
    ['[2001:db8:0::1]', true],
    ['2001:db8::2', false],
    // The common name is not a subject alternative name.
    ['common.test', false],
    ['', false],
  ])('%s: %s', (name, holds) => {
    expect(hasSubjectAltName(certificate, name)).toBe(holds);
  });

  test('a name with a comma does not count as two names', () => {
    const sly = new X509Certificate(authority.issue('email:"x\\, URI:spiffe://a/b"@c.test,DNS:a.test').cert);
    expect(hasSubjectAltName(sly, 'spiffe://a/b')).toBe(false);
    expect(hasSubjectAltName(sly, 'a.test')).toBe(true);
  });

  test('a certificate without alternative names has no names', () => {
    const plain = new X509Certificate(authority.cert);
    for (const name of ['test CA', 'spiffe://a/b', '10.1.2.3']) {
      expect(hasSubjectAltName(plain, name)).toBe(false);
    }
  });
});
