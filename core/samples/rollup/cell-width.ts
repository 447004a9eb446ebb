// How wide the cells of rollups are (document 3 "Series parameters"): five minutes in the finer one, an hour in the
// other. Which of them a query reads: core/query/query-plan.ts.

export const CELL_5M_MS = 300_000

/** Widths by the name of the rollup. */
export const cellMs: Readonly<Record<'5m' | '1h', number>> = { '5m': CELL_5M_MS, '1h': 3_600_000 }
