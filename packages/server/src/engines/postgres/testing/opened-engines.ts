import type { LogEngine } from '../../log-engine.ts';
import { openPostgresEngine } from '../postgres-engine.ts';
import type { PostgresEngineOptions } from '../postgres-engine.ts';

/** The reports of an engine under test to its owner, in order. */
export interface OpenedEngine {
  readonly engine: LogEngine;
  readonly notices: readonly string[];
  readonly states: readonly string[];
  /** Resolves when the engine has been in `state` since it was opened or since the last call. */
  reached(state: 'up' | 'down'): Promise<string>;
}

/** Opens engines for a test and closes the remaining ones. */
export class OpenedEngines {
  readonly #engines = new Set<LogEngine>();

  async open(options: PostgresEngineOptions): Promise<OpenedEngine> {
    const notices: string[] = [];
    const states: string[] = [];
    let unseen: { state: string; reason: string }[] = [];
    let wake = (): void => undefined;
    const engine = await openPostgresEngine({
      ...options,
      onNotice: (notice) => notices.push(notice),
      onState: (told) => {
        const [state, reason] = told.reachable ? ['up', ''] : ['down', told.reason];
        states.push(state);
        unseen.push({ state, reason });
        wake();
      },
    });
    this.#engines.add(engine);
    const reached = async (wanted: 'up' | 'down'): Promise<string> => {
      for (;;) {
        const at = unseen.findIndex(({ state }) => state === wanted);
        if (at >= 0) return unseen.splice(0, at + 1)[at]?.reason ?? '';
        unseen = [];
        await new Promise<void>((resolve) => (wake = resolve));
      }
    };
    return { engine, notices, states, reached };
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#engines].map((engine) => engine.close()));
    this.#engines.clear();
  }
}
