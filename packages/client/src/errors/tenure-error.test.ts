import assert from 'node:assert/strict';
import { describe, test, vi } from 'vitest';
import { BackendError } from './backend-error.ts';
import { LeaseLostError } from './lease-lost-error.ts';
import { TenureError } from './tenure-error.ts';

describe('errors', () => {
  test('are instances of their classes and of no other', () => {
    const lost = new LeaseLostError('job', 'stolen');
    assert.ok(lost instanceof LeaseLostError && lost instanceof TenureError && lost instanceof Error);
    assert.ok(!(lost instanceof BackendError));
    assert.ok(!(new Error('lost') instanceof TenureError) && !((undefined as unknown) instanceof TenureError));
    assert.deepEqual([lost.name, lost.code, lost.reason], ['LeaseLostError', 'lost', 'stolen']);
  });

  test('of a second installed copy are recognised', async () => {
    vi.resetModules();
    const copy = await import('./lease-lost-error.ts');
    assert.notEqual(copy.LeaseLostError, LeaseLostError);
    const foreign: unknown = new copy.LeaseLostError('job', 'expired');
    assert.ok(foreign instanceof LeaseLostError && foreign instanceof TenureError);
    assert.ok(!(foreign instanceof BackendError));
  });

  test('of a class that a user derives mean that class', () => {
    class OwnError extends LeaseLostError {}
    assert.ok(new OwnError('job', 'expired') instanceof OwnError);
    assert.ok(new OwnError('job', 'expired') instanceof LeaseLostError);
    assert.ok(!(new LeaseLostError('job', 'expired') instanceof OwnError));
  });
});
