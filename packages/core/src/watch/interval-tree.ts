interface Node<Value> {
  readonly start: string;
  readonly end: string | undefined;
  readonly value: Value;
  /** The greatest end in this subtree; undefined when one range has no end. */
  maxEnd: string | undefined;
  height: number;
  left: Node<Value> | undefined;
  right: Node<Value> | undefined;
}

/**
 * Ranges [start, end) of keys, each with a value. Finds the ranges that contain a key in O(log n + found).
 *
 * A height-balanced tree ordered by (start, end) in which each node knows the greatest end below it. The balance is by
 * height and not random, so that no choice of ranges can make the tree deep. Each (start, end) occurs at most once.
 */
export class IntervalTree<Value> {
  #root: Node<Value> | undefined;

  get(start: string, end: string | undefined): Value | undefined {
    let node = this.#root;
    while (node !== undefined) {
      const order = compare(start, end, node);
      if (order === 0) return node.value;
      node = order < 0 ? node.left : node.right;
    }
    return undefined;
  }

  /** Adds a range that is not in the tree. */
  add(start: string, end: string | undefined, value: Value): void {
    const leaf: Node<Value> = { start, end, value, maxEnd: end, height: 1, left: undefined, right: undefined };
    this.#root = insert(this.#root, leaf);
  }

  /** Removes a range that is in the tree. */
  delete(start: string, end: string | undefined): void {
    this.#root = remove(this.#root, start, end);
  }

  /** Calls `found` with the value of each range that contains the key. The tree must not change meanwhile. */
  visit(key: string, found: (value: Value) => void): void {
    visitFrom(this.#root, key, found);
  }

  *values(): Generator<Value> {
    yield* valuesFrom(this.#root);
  }
}

function* valuesFrom<Value>(node: Node<Value> | undefined): Generator<Value> {
  if (node === undefined) return;
  yield* valuesFrom(node.left);
  yield node.value;
  yield* valuesFrom(node.right);
}

function visitFrom<Value>(node: Node<Value> | undefined, key: string, found: (value: Value) => void): void {
  if (node === undefined || !endsAfter(node.maxEnd, key)) return;
  visitFrom(node.left, key, found);
  if (key < node.start) return;
  if (endsAfter(node.end, key)) found(node.value);
  visitFrom(node.right, key, found);
}

function endsAfter(end: string | undefined, key: string): boolean {
  return end === undefined || key < end;
}

function compare(start: string, end: string | undefined, node: Node<unknown>): number {
  if (start !== node.start) return start < node.start ? -1 : 1;
  if (end === node.end) return 0;
  if (end === undefined) return 1;
  return node.end === undefined || end < node.end ? -1 : 1;
}

function insert<Value>(node: Node<Value> | undefined, leaf: Node<Value>): Node<Value> {
  if (node === undefined) return leaf;
  const order = compare(leaf.start, leaf.end, node);
  if (order === 0) throw new Error('interval tree: the range is already in the tree');
  if (order < 0) node.left = insert(node.left, leaf);
  else node.right = insert(node.right, leaf);
  return balanced(node);
}

function remove<Value>(node: Node<Value> | undefined, start: string, end: string | undefined): Node<Value> | undefined {
  if (node === undefined) throw new Error('interval tree: the range is not in the tree');
  const order = compare(start, end, node);
  if (order < 0) {
    node.left = remove(node.left, start, end);
  } else if (order > 0) {
    node.right = remove(node.right, start, end);
  } else {
    if (node.left === undefined) return node.right;
    if (node.right === undefined) return node.left;
    let next = node.right;
    while (next.left !== undefined) next = next.left;
    next.right = remove(node.right, next.start, next.end);
    next.left = node.left;
    return balanced(next);
  }
  return balanced(node);
}

function balanced<Value>(node: Node<Value>): Node<Value> {
  const lean = heightOf(node.left) - heightOf(node.right);
  if (lean > 1 && node.left !== undefined) {
    if (heightOf(node.left.left) < heightOf(node.left.right)) node.left = rotateLeft(node.left);
    return rotateRight(node);
  }
  if (lean < -1 && node.right !== undefined) {
    if (heightOf(node.right.right) < heightOf(node.right.left)) node.right = rotateRight(node.right);
    return rotateLeft(node);
  }
  return refresh(node);
}

function rotateRight<Value>(node: Node<Value>): Node<Value> {
  const top = node.left;
  if (top === undefined) return node;
  node.left = top.right;
  top.right = refresh(node);
  return refresh(top);
}

function rotateLeft<Value>(node: Node<Value>): Node<Value> {
  const top = node.right;
  if (top === undefined) return node;
  node.right = top.left;
  top.left = refresh(node);
  return refresh(top);
}

function refresh<Value>(node: Node<Value>): Node<Value> {
  node.height = 1 + Math.max(heightOf(node.left), heightOf(node.right));
  let maxEnd = node.end;
  if (node.left !== undefined && maxEnd !== undefined && endsAfter(node.left.maxEnd, maxEnd)) maxEnd = node.left.maxEnd;
  if (node.right !== undefined && maxEnd !== undefined && endsAfter(node.right.maxEnd, maxEnd))
    maxEnd = node.right.maxEnd;
  node.maxEnd = maxEnd;
  return node;
}

function heightOf(node: Node<unknown> | undefined): number {
  return node === undefined ? 0 : node.height;
}
