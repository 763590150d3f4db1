import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { errorCatalogue, etcdserverpb } from '@tenure/protocol';
import type { NodeClock, SeededRandom } from '@tenure/test-support';
import { CallError, type ClientConnection } from '../world/client-connection.ts';
import type { Coverage } from '../world/coverage.ts';
import type { Identity } from './access-checker.ts';
import type { Passwords } from './passwords.ts';

export interface AccountOptions {
  readonly user: string;
  readonly passwords: Passwords;
  readonly clock: NodeClock;
  readonly random: SeededRandom;
  readonly coverage: Coverage;
  /** A new connection to some server. */
  readonly connect: () => ClientConnection;
}

const loginLimitMs = 1_000;
const pauseMs = { min: 10, max: 250 };
const lostTexts: readonly string[] = ['UserEmpty', 'InvalidAuthToken', 'AuthOldRevision'].map(
  (code) => errorCatalogue[code as keyof typeof errorCatalogue].text,
);

/** Whether a refusal with this text asks the client to log in. A watch has the text within a longer one. */
export function isForIdentity(text: string): boolean {
  return lostTexts.some((each) => text.endsWith(each));
}

/** The identity of one client. It logs in when a server asks for that, and uses its last token until it has another. */
export class Account {
  readonly #options: AccountOptions;
  #token: string | undefined;
  #isLoggingIn = false;

  constructor(options: AccountOptions) {
    this.#options = options;
  }

  get identity(): Identity {
    return { user: this.#options.user, token: this.#token };
  }

  /** A server has refused the identity with which the client asked. */
  refused(text: string, { token }: Identity): void {
    this.#options.coverage.count(`access: refused, ${text.slice(text.lastIndexOf('etcdserver:'))}`);
    if (token !== this.#token || this.#isLoggingIn) return;
    this.#isLoggingIn = true;
    void this.#logIn(0);
  }

  async #logIn(attempts: number): Promise<void> {
    const { user, passwords, clock, random, coverage, connect } = this.#options;
    const known = passwords.of(user);
    const connection = connect();
    try {
      // Mostly the newest. Its change may not have reached the servers, and then an earlier one is right.
      const back = attempts % 2 === 0 ? 0 : attempts % Math.max(1, known.length);
      const password = known[known.length - 1 - back] ?? '';
      const schema = etcdserverpb.AuthenticateRequestSchema;
      const request = toBinary(schema, create(schema, { name: user, password }));
      const reply = await connection.call('/etcdserverpb.Auth/Authenticate', request, loginLimitMs);
      this.#token = fromBinary(etcdserverpb.AuthenticateResponseSchema, reply).token;
      this.#isLoggingIn = false;
      coverage.count('access: logged in');
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (error.message === errorCatalogue.AuthFailed.text) coverage.count('access: a login was refused');
      if (error.message === errorCatalogue.AuthNotEnabled.text) this.#isLoggingIn = false;
      else clock.after(random.between(pauseMs.min, pauseMs.max), () => void this.#logIn(attempts + 1));
    } finally {
      connection.close();
    }
  }
}
