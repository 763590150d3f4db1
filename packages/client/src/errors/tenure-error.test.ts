import { describe, expect, test, vi } from 'vitest';
import { BackendError } from './backend-error.ts';
import { LeaseLostError } from './lease-lost-error.ts';
import { TenureError } from './tenure-error.ts';

describe('errors', () => {
  test('are instances of their classes and of no other', () => {
    const lost = new LeaseLostError('job', 'stolen');
    expect(lost).toBeInstanceOf(LeaseLostError);
    expect(lost).toBeInstanceOf(TenureError);
    expect(lost).toBeInstanceOf(Error);
    expect(lost).not.toBeInstanceOf(BackendError);
    expect(new Error('lost')).not.toBeInstanceOf(TenureError);
    expect(undefined as unknown).not.toBeInstanceOf(TenureError);
    expect([lost.name, lost.code, lost.reason]).toEqual(['LeaseLostError', 'lost', 'stolen']);
  });

  test('of a second installed copy are recognised', async () => {
    vi.resetModules();
    const copy = await import('./lease-lost-error.ts');
    expect(copy.LeaseLostError).not.toBe(LeaseLostError);
    const foreign: unknown = new copy.LeaseLostError('job', 'expired');
    expect(foreign).toBeInstanceOf(LeaseLostError);
    expect(foreign).toBeInstanceOf(TenureError);
    expect(foreign).not.toBeInstanceOf(BackendError);
  });

  test('of a derived class are instances of that class', () => {
    class OwnError extends LeaseLostError {}
    expect(new OwnError('job', 'expired')).toBeInstanceOf(OwnError);
    expect(new OwnError('job', 'expired')).toBeInstanceOf(LeaseLostError);
    expect(new LeaseLostError('job', 'expired')).not.toBeInstanceOf(OwnError);
  });
});
