import { expect, test } from 'vitest';
import { EtcdLogClient } from './etcd-log-client.ts';

function timersThatKeepTheProcess(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}

test('a pause keeps the process alive: a server that waits for its etcd must not exit silently', async () => {
  const client = new EtcdLogClient({ endpoints: ['127.0.0.1:1'], timeoutMs: 1_000, onOutcome: () => undefined });
  const stop = new AbortController();
  const before = timersThatKeepTheProcess();
  const pausing = client.pause(60_000, stop.signal);
  expect(timersThatKeepTheProcess()).toBe(before + 1);
  stop.abort();
  await pausing;
  expect(timersThatKeepTheProcess()).toBe(before);
  client.close();
});
