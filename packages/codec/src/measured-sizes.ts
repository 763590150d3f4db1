/**
 * The sizes of nested messages, kept from the measuring pass for the writing pass. Both passes visit the same messages
 * in the same order, outer before inner; without it each level of nesting would measure everything below it again.
 */
export class MeasuredSizes {
  private readonly sizes: number[] = [];
  private next = 0;

  /** Reserves the slot of a message whose inner messages are measured first. */
  reserve(): number {
    return this.sizes.push(0) - 1;
  }

  /** Fills the slot with the message's size in bytes and returns that. */
  fill(place: number, size: number): number {
    this.sizes[place] = size;
    return size;
  }

  /** The size of the next message to write. */
  take(): number {
    const size = this.sizes[this.next++];
    if (size === undefined) throw new Error('a message is being written that was not measured');
    return size;
  }
}
