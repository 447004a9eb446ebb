// Which of two points counts that have one series and one time: the one of the later block.

/** Whether a point takes the place of one of its time that was read before. With equal seq both are of one block. */
export const replaces = (seq: number, readBefore: number): boolean => seq >= readBefore
