// Columns of a table that are together wider than their place.
import { expect, test } from 'bun:test'
import { fittedWidths } from '../../apps/hub/web/browser/parts/fitted-widths.ts'

const sum = (widths: readonly number[]): number => widths.reduce((all, width) => all + width, 0)
const anyMayBeCut = (): boolean => true

test('columns that have place stay as wide as they are', () => {
  expect(fittedWidths([10, 20], 100, anyMayBeCut)).toEqual([10, 20])
})

test('what is too much is taken from the widest that may be cut off, and numbers keep all of theirs', () => {
  const alerts = [36, 112, 192, 192, 192, 192, 100, 100, 130]
  const fitted = fittedWidths(alerts, 1025, column => column !== 0 && column !== 8)
  expect(Math.round(sum(fitted))).toBe(1025)
  expect([fitted[0], fitted[1], fitted[6], fitted[8]]).toEqual([36, 112, 100, 130])
  expect(new Set(fitted.slice(2, 6)).size).toBe(1)
  expect(fittedWidths([300, 290, 70, 200], 400, column => column !== 3).map(Math.round)).toEqual([67, 67, 67, 200])
})

test('no column becomes so narrow that it says nothing', () => {
  expect(fittedWidths([80, 80], 100, anyMayBeCut)).toEqual([64, 64])
})
