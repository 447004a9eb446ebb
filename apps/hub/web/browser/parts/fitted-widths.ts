// Columns that are wider than the screen: the widest ones that may be cut off give way, and no column leaves the page.

/** A column of text is made no narrower than this, whatever the others need. */
const NARROWEST = 64

/** The widths of columns that fit into `place`: what is too much is taken from the widest ones that may be cut off. */
export function fittedWidths(
  widths: readonly number[],
  place: number,
  mayBeCut: (column: number) => boolean,
): readonly number[] {
  let excess = widths.reduce((sum, width) => sum + width, 0) - place
  if (excess <= 0) return widths
  const fit = [...widths]
  const columns = widths.flatMap((width, column) => (mayBeCut(column) && width > NARROWEST ? [column] : []))
  columns.sort((one, other) => (widths[other] ?? 0) - (widths[one] ?? 0))
  for (let wide = 1; wide <= columns.length && excess > 0; wide++) {
    // The `wide` widest are made as narrow as the next one is, or less where that is enough.
    const level = Math.max(NARROWEST, widths[columns[wide] ?? -1] ?? 0)
    const width = fit[columns[0] ?? 0] ?? 0
    const taken = Math.min(excess, (width - level) * wide)
    for (const column of columns.slice(0, wide)) fit[column] = width - taken / wide
    excess -= taken
  }
  return fit
}
