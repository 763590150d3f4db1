import { parseSync } from 'oxc-parser';
import { lineAt } from './repository.ts';
import type { TextFile } from './repository.ts';

/** The facts about one TypeScript or JavaScript file that the rules need. */
export interface ParsedSource extends TextFile {
  readonly imports: readonly ImportedModule[];
  readonly exports: readonly ExportedName[];
  readonly functions: readonly FunctionSpan[];
  /** Global names that the code reads or calls, and `Object.property` for each member access on such a name. */
  readonly names: readonly UsedName[];
  /** The lines that use the type `any`. */
  readonly anyLines: readonly number[];
  /** Comments' texts without their marks. */
  readonly comments: readonly { readonly text: string; readonly line: number }[];
}

export interface ImportedModule {
  readonly from: string;
  readonly line: number;
  readonly isDynamic: boolean;
  readonly isTypeOnly: boolean;
}

export interface ExportedName {
  readonly name: string;
  readonly isType: boolean;
  readonly isClass: boolean;
  readonly isReExport: boolean;
}

export interface FunctionSpan {
  readonly name: string;
  readonly line: number;
  readonly lines: number;
  /**
   * True for the callback of a test group, or a function named describe..., whose length is not limited: it contains
   * many functions and no logic.
   */
  readonly isTestGroup: boolean;
}

export interface UsedName {
  readonly name: string;
  readonly line: number;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

export function parseSource(file: TextFile): ParsedSource {
  const result = parseSync(file.path, file.text);
  const broken = result.errors[0];
  if (broken !== undefined) throw new Error(`${file.path} does not parse: ${broken.message}`);
  const walk = new Walk(file.text);
  walk.visit(result.program as unknown as Node, undefined, undefined);
  const { module } = result;
  return {
    ...file,
    imports: [
      ...module.staticImports.map((entry) => ({
        from: entry.moduleRequest.value,
        line: lineAt(file.text, entry.start),
        isDynamic: false,
        isTypeOnly: entry.entries.length > 0 && entry.entries.every((name) => name.isType),
      })),
      ...module.staticExports.flatMap((entry) => {
        const from = entry.entries[0]?.moduleRequest?.value;
        if (from === undefined) return [];
        const isTypeOnly = entry.entries.every((name) => name.isType);
        return [{ from, line: lineAt(file.text, entry.start), isDynamic: false, isTypeOnly }];
      }),
      ...module.dynamicImports.map((entry) => ({
        from: file.text.slice(entry.moduleRequest.start, entry.moduleRequest.end).replaceAll(/['"`]/g, ''),
        line: lineAt(file.text, entry.start),
        isDynamic: true,
        isTypeOnly: false,
      })),
    ],
    exports: module.staticExports.flatMap((entry) =>
      entry.entries.map((name) => ({
        name: name.exportName.name ?? 'default',
        isType: name.isType,
        isClass: walk.classNames.has(name.localName.name ?? ''),
        isReExport: name.moduleRequest !== null,
      })),
    ),
    functions: walk.functions,
    names: walk.names,
    anyLines: walk.anyLines,
    comments: result.comments.map((comment) => ({ text: comment.value, line: lineAt(file.text, comment.start) })),
  };
}

const functionTypes = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
const groupCallees = new Set(['describe', 'suite']);

class Walk {
  readonly functions: FunctionSpan[] = [];
  readonly names: UsedName[] = [];
  readonly anyLines: number[] = [];
  readonly classNames = new Set<string>();
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  visit(node: Node, parent: Node | undefined, key: string | undefined): void {
    if (functionTypes.has(node.type)) this.#addFunction(node, parent);
    if (node.type === 'ClassDeclaration') this.classNames.add(identifier(node['id']) ?? '');
    if (node.type === 'TSAnyKeyword') this.anyLines.push(lineAt(this.#text, node.start));
    if (node.type === 'Identifier') this.#addName(node, parent, key);
    for (const [childKey, value] of Object.entries(node)) {
      if (Array.isArray(value)) {
        for (const item of value) if (isNode(item)) this.visit(item, node, childKey);
      } else if (isNode(value)) {
        this.visit(value, node, childKey);
      }
    }
  }

  #addFunction(node: Node, parent: Node | undefined): void {
    const line = lineAt(this.#text, node.start);
    const lines = lineAt(this.#text, node.end) - line + 1;
    const name = identifier(node['id']) ?? identifier(parent?.['id']) ?? identifier(parent?.['key']) ?? 'anonymous';
    this.functions.push({ name, line, lines, isTestGroup: isGroupCall(parent) || name.startsWith('describe') });
  }

  #addName(node: Node, parent: Node | undefined, key: string | undefined): void {
    const name = identifier(node);
    if (name === undefined) return;
    const isComputed = parent?.['computed'] === true;
    // The name of a property or method is not a reference to a global of that name.
    if ((key === 'property' || key === 'key') && !isComputed) return;
    const line = lineAt(this.#text, node.start);
    this.names.push({ name, line });
    const property = parent?.type === 'MemberExpression' && !isComputed ? identifier(parent['property']) : undefined;
    if (property !== undefined) this.names.push({ name: `${name}.${property}`, line });
  }
}

/** describe(...), describe.each(...)(...), describe.skipIf(...)(...), describeProperty(...) */
function isGroupCall(parent: Node | undefined): boolean {
  let callee: unknown = parent?.type === 'CallExpression' ? parent['callee'] : undefined;
  while (isNode(callee) && callee.type !== 'Identifier') callee = callee['callee'] ?? callee['object'];
  const name = identifier(callee);
  return name !== undefined && (groupCallees.has(name) || name.startsWith('describe'));
}

function identifier(value: unknown): string | undefined {
  if (!isNode(value)) return undefined;
  return typeof value['name'] === 'string' ? value['name'] : undefined;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}
