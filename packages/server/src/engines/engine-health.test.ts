import { describe, expect, test } from 'vitest';
import { EngineError } from './engine-error.ts';
import { EngineHealth } from './engine-health.ts';
import type { EngineTrouble } from './engine-trouble.ts';

function watched(): { health: EngineHealth; told: string[]; lose: (reason: string) => void; find: () => void } {
  const told: string[] = [];
  const health = new EngineHealth({
    onChange: (state) => told.push(state.reachable ? 'up' : `down: ${state.reason}`),
    onAppendTrouble: (trouble, reason) => told.push(`${trouble}: ${reason}`),
  });
  return {
    health,
    told,
    lose: (reason) => health.told({ reachable: false, trouble: 'unreachable', reason }),
    find: () => health.told({ reachable: true }),
  };
}

const failure = (trouble: EngineTrouble, reason = 'why'): EngineError =>
  new EngineError('unavailable', reason, { trouble });

describe('the health of an engine', () => {
  test('gives clients a fixed text, and the operator the text of the database', () => {
    const { health, told, lose, find } = watched();
    expect(health.problem).toBeUndefined();
    lose('connect ECONNREFUSED 10.0.0.1:5432');
    expect(health.problem).toBe('the database cannot be reached');
    find();
    expect(health.problem).toBeUndefined();
    expect(told).toEqual(['down: connect ECONNREFUSED 10.0.0.1:5432', 'up']);
  });

  test('logs some reasons of one loss, each once', () => {
    const { told, lose, find } = watched();
    for (let attempt = 0; attempt < 1000; attempt += 1) lose(`reason ${Math.floor(attempt / 2)}`);
    expect(told).toHaveLength(4);
    find();
    lose('reason 1');
    expect(told.slice(4)).toEqual(['up', 'down: reason 1']);
  });

  test('reports why the log refuses appends until one succeeds, though the database answers', () => {
    const { health, told, lose, find } = watched();
    lose('it broke off');
    health.appendFailed(failure('full', 'no space'));
    find();
    health.appendFailed(failure('full', 'no space, again'));
    expect(health.problem).toBe('the database is full');
    health.appendFailed(failure('readOnly', 'a standby'));
    expect(health.problem).toBe('the database is read-only');
    health.entryTaken();
    expect(health.problem).toBeUndefined();
    expect(told).toEqual(['down: it broke off', 'full: no space', 'up', 'readOnly: a standby']);
  });

  test('does not treat a broken connection as a log that refuses appends', () => {
    const { health, told } = watched();
    health.appendFailed(failure('unreachable'));
    health.appendFailed(new EngineError('conflict', 'another server has appended'));
    expect(health.problem).toBeUndefined();
    expect(told).toEqual([]);
  });
});
