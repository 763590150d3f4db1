import { posix } from 'node:path';
import type { ParsedSource } from './parsed-source.ts';
import type { Violation } from './repository.ts';

/**
 * No file imports itself through others, types included: files in a circle cannot be read, tested or moved separately.
 * Reports one circle for each file that closes one.
 */
export function checkCircles(sources: readonly ParsedSource[]): Violation[] {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const finished = new Set<string>();
  const violations: Violation[] = [];
  const visit = (source: ParsedSource, trail: readonly string[]): void => {
    if (finished.has(source.path)) return;
    const way = [...trail, source.path];
    for (const { from, line, isDynamic } of source.imports) {
      // An import() at run time does not wait for the other file to be loaded.
      if (isDynamic || !from.startsWith('.')) continue;
      const target = posix.join(posix.dirname(source.path), from);
      const begins = way.indexOf(target);
      if (begins !== -1) {
        const message = `imports in a circle: ${[...way.slice(begins), target].join(' > ')}`;
        violations.push({ path: source.path, line, rule: 'circles', message });
        continue;
      }
      const next = byPath.get(target);
      if (next !== undefined) visit(next, way);
    }
    finished.add(source.path);
  };
  for (const source of sources) visit(source, []);
  return violations;
}
