/** The name of the violated rule: a violation is `${rule} at ${ms} ms: ${what}`. */
export function ruleOf(violation: string): string {
  return /^(.*?)(?: at \d+ ms)?: /s.exec(violation)?.[1] ?? violation;
}
