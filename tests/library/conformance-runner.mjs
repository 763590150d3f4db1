// The contract suite as a third party runs it: the published package, node:test, a backend of its own.
import { after, describe, test } from 'node:test';
import { memoryBackend } from 'tenure/memory';
import { backendConformance } from 'tenure/testing';

const backend = memoryBackend();
if (process.env.BREAK_LISTS === 'yes') {
  const list = backend.list.bind(backend);
  backend.list = async (name, signal) => (await list(name, signal)).toReversed();
}
backendConformance(() => ({ open: () => backend, dispose: async () => undefined }), {
  framework: { describe, test, afterAll: after },
  hints: ['came', 'left'],
});
