import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { CurrentReplies } from './current-replies.ts';
import { deferred, echo, startTestServer } from '@tenure/test-support';
import type { MethodHandler } from '../transport/transport.ts';
import { ScriptedCall } from '../watch/testing/scripted-call.ts';
import { systemClock } from '../time/system-clock.ts';

const raw = (value: Buffer): Buffer => value;
const status = '/etcdserverpb.Maintenance/Status';
const range = '/etcdserverpb.KV/Range';
const watch = '/etcdserverpb.Watch/Watch';
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A server whose watches respond with their requests, and the catch-ups that it has requested. */
async function start(patienceTicks = Infinity) {
  const questions: ReturnType<typeof deferred>[] = [];
  const handled: string[] = [];
  let isCurrent = false;
  const answers = new CurrentReplies(
    systemClock,
    () => {
      if (isCurrent) return undefined;
      const question = deferred();
      questions.push(question);
      return question.promise;
    },
    patienceTicks,
  );
  const told = (request: Buffer): Buffer => {
    handled.push(request.toString());
    return echo(request);
  };
  const routes: readonly (readonly [string, MethodHandler])[] = [
    [status, { kind: 'unary', handle: told }],
    [range, { kind: 'unary', handle: told }],
    [watch, { kind: 'bidi', handle: (call) => (call.onMessage = (message) => void call.send(told(message))) }],
  ];
  const { transport, port } = await startTestServer(Object.fromEntries(answers.guard(new Map(routes))));
  cleanups.push(() => transport.close({ graceMs: 200 }));
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  cleanups.push(() => client.close());
  return {
    questions,
    handled,
    becomeCurrent: () => (isCurrent = true),
    unary: (path: string, text: string): Promise<string> =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(path, raw, raw, Buffer.from(text), (error, reply) => {
          if (error === null) resolve(String(reply));
          else reject(error);
        });
      }),
    watch: () => {
      const call = client.makeBidiStreamRequest(watch, raw, raw);
      const replies: string[] = [];
      call.on('error', () => {});
      call.on('data', (reply: Buffer) => replies.push(reply.toString()));
      return { call, replies };
    },
  };
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
};

describe('replies from the memory of a server', () => {
  test('wait until the server has caught up, others do not', async () => {
    const { unary, questions, handled } = await start();
    const reply = unary(status, 'how are you');
    expect(await unary(range, 'a read')).toBe('a read');
    await until(() => questions.length === 1);
    expect(handled).toEqual(['a read']);
    questions[0]?.resolve();
    expect(await reply).toBe('how are you');
  });

  test('are sent at once where the state cannot be behind', async () => {
    const { unary, questions, becomeCurrent } = await start();
    becomeCurrent();
    expect(await unary(status, 'how are you')).toBe('how are you');
    expect(questions).toEqual([]);
  });

  test('are sent after a while when the leader cannot be reached', async () => {
    const { unary } = await start(2);
    expect(await unary(status, 'how are you')).toBe('how are you');
  });

  test('are sent on a watch in the order of the requests, each after a catch-up begun after the request', async () => {
    const { watch: open, questions, handled, becomeCurrent, unary } = await start();
    const { call, replies } = open();
    call.write(Buffer.from('1'));
    await until(() => questions.length === 1);
    call.write(Buffer.from('2'));
    call.write(Buffer.from('3'));
    // Later requests on the same connection have been read when this one is answered.
    await unary(range, 'behind');
    expect(handled).toEqual(['behind']);
    questions[0]?.resolve();
    await until(() => questions.length === 2);
    expect(handled).toEqual(['behind', '1']);
    becomeCurrent();
    questions[1]?.resolve();
    await until(() => replies.length === 3);
    expect(replies).toEqual(['1', '2', '3']);
    call.cancel();
  });

  test('are not sent to a watch that has ended meanwhile', async () => {
    const { watch: open, questions, handled, unary } = await start();
    const { call } = open();
    call.write(Buffer.from('1'));
    await until(() => questions.length === 1);
    call.cancel();
    await unary(range, 'behind');
    questions[0]?.resolve();
    await unary(range, 'and later');
    expect(handled).toEqual(['behind', 'and later']);
  });
});

/** A watch call without a client, with a handler that records its messages, and the pending catch-ups. */
function heldCall() {
  const questions: ReturnType<typeof deferred>[] = [];
  const handled: string[] = [];
  const call = new ScriptedCall(Infinity);
  const answers = new CurrentReplies(
    systemClock,
    () => {
      const question = deferred();
      questions.push(question);
      return question.promise;
    },
    Infinity,
  );
  const handler: MethodHandler = {
    kind: 'bidi',
    handle: (one) => (one.onMessage = (message) => void handled.push(message.toString('latin1', 0, 5))),
  };
  const guarded = answers.guard(new Map([[watch, handler]])).get(watch);
  if (guarded?.kind !== 'bidi') throw new Error('a watch is a bidirectional call');
  guarded.handle(call);
  return { call, questions, handled, isPaused: () => call.paused };
}

describe('the waiting requests of a watch call', () => {
  test('are few and small: the call is paused until they have been delivered', async () => {
    for (const size of [5, 600_000]) {
      const { call, questions, handled, isPaused } = heldCall();
      let received = 0;
      for (; !isPaused() && received < 2_000; received += 1) call.onMessage(Buffer.alloc(size, 'x'));
      expect(received).toBe(size === 5 ? 1_000 : 2);
      questions[0]?.resolve();
      await until(() => questions.length === 2);
      expect([handled.length, isPaused()]).toEqual([1, false]);
      questions[1]?.resolve();
      await until(() => handled.length === received);
    }
  });

  test('are not delivered to a paused handler, and the call is not read either', async () => {
    const { call, questions, handled, isPaused } = heldCall();
    for (const text of ['one', 'two', 'three']) call.onMessage(Buffer.from(text));
    call.pause();
    questions[0]?.resolve();
    await questions[0]?.promise;
    await new Promise((resolve) => setImmediate(resolve));
    expect([handled, isPaused()]).toEqual([[], true]);
    call.resume();
    expect([handled, isPaused()]).toEqual([['one'], false]);
    questions[1]?.resolve();
    await until(() => handled.length === 3);
  });
});
