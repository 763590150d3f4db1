/**
 * The sizes of nested messages, kept from the pass that measures for the pass that writes. Both passes visit the same
 * messages in the same order, outer before inner; without it each level of nesting would measure everything below it
 * anew.
 */
export class MeasuredSizes {
  private readonly sizes: number[] = [];
  private next = 0;

  /** Takes the place of a message whose inner messages are to be measured first. */
  reserve(): number {
    return this.sizes.push(0) - 1;
  }

  /** Fills the place with the message's size in bytes and returns that. */
  fill(place: number, size: number): number {
    this.sizes[place] = size;
    return size;
  }

  /** The size of the message that is written next. */
  take(): number {
    const size = this.sizes[this.next++];
    if (size === undefined) throw new Error('a message is being written that was not measured');
    return size;
  }
}
