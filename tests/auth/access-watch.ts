import { Code } from '../../conformance/client/refusal.ts';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import type { AnonymousAccess } from './anonymous-access.ts';
import { metadataOf, pause, type AccessClient } from './access-client.ts';
import { type AccessJudge, texts, type UserFacts } from './access-judge.ts';

const retryMs = 100;

interface Span {
  readonly openedMs: number;
  closedMs: number;
}

/** A watch of the keys of a user through one server, which is created again whenever it ends. */
export class AccessWatch {
  /** The times in which it was open. */
  readonly spans: Span[] = [];
  eventCount = 0;
  readonly #judge: AccessJudge;
  readonly #user: UserFacts;
  readonly #client: AccessClient;
  readonly #server: () => AnonymousAccess | undefined;
  readonly #running: Promise<void>;
  #stream: WatchStream | undefined;
  #stopped = false;

  /** `server`: undefined while it does not run. */
  constructor(judge: AccessJudge, user: UserFacts, client: AccessClient, server: () => AnonymousAccess | undefined) {
    this.#judge = judge;
    this.#user = user;
    this.#client = client;
    this.#server = server;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stream?.close();
    await this.#running;
  }

  /** Open watches that had not ended by then, after a loss of the permission. */
  isOpen(atMs: number, untilMs: number): boolean {
    return this.spans.some(({ openedMs, closedMs }) => openedMs < atMs && closedMs > untilMs);
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const server = this.#server();
      if (server !== undefined) await this.#watch(server).catch(() => undefined);
      this.#stream?.close();
      await pause(retryMs);
    }
  }

  async #watch(server: AnonymousAccess): Promise<void> {
    const { token } = this.#client;
    const stream = new WatchStream(server.client, { metadata: metadataOf(token) });
    this.#stream = stream;
    const beganMs = performance.now();
    const range = { key: Buffer.from(`${this.#user.name}/`), rangeEnd: Buffer.from(`${this.#user.name}0`) };
    const created = await stream.create(range);
    const openedMs = performance.now();
    const answer = { what: 'watch', server: server.name, token, beganMs };
    if (created.canceled) {
      const isKnown = this.#judge.judge(this.#user, {
        ...answer,
        endedMs: openedMs,
        ...statusOf(created.cancelReason),
      });
      if (!isKnown) await this.#client.logIn();
      return;
    }
    this.#judge.judge(this.#user, { ...answer, endedMs: openedMs, code: Code.ok, details: '' });
    const span: Span = { openedMs, closedMs: Infinity };
    this.spans.push(span);
    try {
      await this.#follow(stream, created.watchId, { ...answer, openedMs });
    } finally {
      span.closedMs = performance.now();
    }
  }

  async #follow(
    stream: WatchStream,
    id: bigint,
    opened: { what: string; server: string; token: AccessClient['token']; beganMs: number; openedMs: number },
  ): Promise<void> {
    for (;;) {
      const reply = await stream.next(id);
      const endedMs = performance.now();
      for (const { kv } of reply.events) this.#delivered(Buffer.from(kv?.value ?? []).toString(), endedMs);
      if (!reply.canceled) continue;
      // One that was created while authentication was disabled has no user.
      const wasOpen = this.#judge.enabled.possible(opened.beganMs, opened.openedMs).includes(false);
      const status = statusOf(reply.cancelReason);
      if (!wasOpen) this.#judge.judge(this.#user, { ...opened, what: 'open watch', endedMs, ...status });
      return;
    }
  }

  /** The writer of the load stamps its values with the time at which the request began. */
  #delivered(value: string, atMs: number): void {
    this.eventCount += 1;
    const putMs = Number(/^written at (.*)$/.exec(value)?.[1] ?? Number.NaN);
    if (Number.isNaN(putMs) || this.#judge.enabled.possible(putMs, atMs).includes(false)) return;
    const isLost =
      !this.#user.permitted.possible(putMs, atMs).includes(true) ||
      this.#user.credential.possible(putMs, atMs).every((one) => one === 0);
    if (isLost) this.#judge.note(`${this.#user.name} was told of a value that was written without its permission`);
  }
}

function statusOf(reason: string): { code: number; details: string } {
  const details = Object.values(texts).find((text) => reason.endsWith(text)) ?? reason;
  return { code: details === texts.denied ? Code.permissionDenied : Code.invalidArgument, details };
}
