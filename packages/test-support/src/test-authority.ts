import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface TestCertificate {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface CertificateRequest {
  /** 'server' by default: what the certificate may be used for. Both, when it says nothing. */
  readonly usage?: 'serverAuth' | 'clientAuth' | 'both';
  /** In OpenSSL's form; IP:127.0.0.1 and DNS:localhost by default. '' for none. */
  readonly alternativeNames?: string;
  readonly isExpired?: boolean;
  /** A P-256 key by default. */
  readonly key?: 'ec' | 'rsa';
}

/** A certificate authority in a folder of its own, on the program openssl. */
export class TestAuthority {
  readonly name: string;
  readonly caFile: string;
  readonly #folder: string;
  #issued = 0;

  constructor(folder: string, name = 'test-authority') {
    this.name = name;
    this.#folder = join(folder, name);
    mkdirSync(this.#folder, { recursive: true });
    this.caFile = join(this.#folder, 'ca.crt');
    writeFileSync(join(this.#folder, 'index.txt'), '');
    writeFileSync(join(this.#folder, 'index.txt.attr'), 'unique_subject = no\n');
    writeFileSync(join(this.#folder, 'crlnumber'), '01\n');
    writeFileSync(join(this.#folder, 'serial'), '01\n');
    writeFileSync(join(this.#folder, 'ca.cnf'), configuration);
    this.#openssl('req', '-x509', ...newKey('ec'), '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', `/CN=${name}`);
  }

  /** A certificate whose subject has this common name, in files of its own. */
  issue(commonName: string, request: CertificateRequest = {}): TestCertificate {
    const { usage = 'both', alternativeNames = 'IP:127.0.0.1,DNS:localhost', isExpired = false, key = 'ec' } = request;
    this.#issued += 1;
    const file = `${this.#issued}`;
    this.#openssl(
      ...['req', '-new', ...newKey(key), '-keyout', `${file}.key`, '-out', `${file}.csr`],
      ...['-subj', commonName === '' ? '/O=nameless' : `/CN=${commonName}`],
    );
    const extensions = [
      'basicConstraints = CA:FALSE',
      ...(usage === 'both' ? [] : [`extendedKeyUsage = ${usage}`]),
      ...(alternativeNames === '' ? [] : [`subjectAltName = ${alternativeNames}`]),
    ];
    writeFileSync(join(this.#folder, `${file}.ext`), `${extensions.join('\n')}\n`);
    const dates = isExpired
      ? ['-startdate', '20200101000000Z', '-enddate', '20200102000000Z']
      : ['-startdate', '20200101000000Z', '-days', '3650'];
    this.#openssl(
      ...['ca', '-batch', '-notext', '-config', 'ca.cnf', '-extfile', `${file}.ext`],
      ...['-in', `${file}.csr`, '-out', `${file}.crt`, ...dates],
    );
    return { certFile: join(this.#folder, `${file}.crt`), keyFile: join(this.#folder, `${file}.key`) };
  }

  revoke({ certFile }: TestCertificate): void {
    this.#openssl('ca', '-config', 'ca.cnf', '-revoke', certFile);
  }

  /** Writes the list of what is revoked by now, as PEM or DER, and returns its name. */
  writeRevocationList(file: string, { form = 'PEM', isOutdated = false } = {}): string {
    const dates = isOutdated ? ['-crl_lastupdate', '20200101000000Z', '-crl_nextupdate', '20200102000000Z'] : [];
    this.#openssl('ca', '-config', 'ca.cnf', '-gencrl', ...dates, '-out', 'list.pem');
    this.#openssl('crl', '-in', 'list.pem', '-outform', form, '-out', file);
    return join(this.#folder, file);
  }

  #openssl(...args: readonly string[]): void {
    execFileSync('openssl', args, { cwd: this.#folder, stdio: ['ignore', 'ignore', 'pipe'] });
  }
}

function newKey(kind: 'ec' | 'rsa'): readonly string[] {
  const algorithm = kind === 'ec' ? ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] : ['rsa:2048'];
  return ['-newkey', ...algorithm, '-nodes'];
}

const configuration = `
[ca]
default_ca = this
[this]
database = index.txt
new_certs_dir = .
certificate = ca.crt
private_key = ca.key
crlnumber = crlnumber
serial = serial
default_md = sha256
default_days = 3650
default_crl_days = 3650
policy = any
[any]
commonName = optional
organizationName = optional
`;
