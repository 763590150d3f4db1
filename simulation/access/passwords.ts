/** What the clients know of passwords: the administrator tells each before it is set. */
export class Passwords {
  readonly #known = new Map<string, string[]>();

  /** The oldest first. */
  of(user: string): readonly string[] {
    return this.#known.get(user) ?? [''];
  }

  told(user: string, password: string): void {
    const known = this.#known.get(user) ?? [];
    this.#known.set(user, [...known, password]);
  }

  /** The change of a password was refused. */
  refused(user: string, password: string): void {
    this.#known.set(
      user,
      this.of(user).filter((each) => each !== password),
    );
  }
}
