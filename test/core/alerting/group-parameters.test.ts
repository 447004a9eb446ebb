// When a group of silent servers counts as one incident, field by field.
import { expect, test } from 'bun:test'
import { groupParameters } from '../../../core/alerting/evaluate/group-parameters.ts'

const defaults = { windowMs: 60_000, min: 5, ratio: 0.3 }

test('[GRP-019] each field comes from the hub, else from the configuration of the company, else from the defaults', () => {
  expect(groupParameters(null, undefined, defaults)).toEqual(defaults)
  expect(groupParameters({ group_down_min: null }, { min: 3, windowMs: 10_000 }, defaults)).toEqual({
    windowMs: 10_000,
    min: 3,
    ratio: 0.3,
  })
  const hub = { group_down_min: 2, group_down_ratio: 1, group_down_window_seconds: 90 }
  expect(groupParameters(hub, { min: 3, ratio: 0.5, windowMs: 1 }, defaults)).toEqual({
    windowMs: 90_000,
    min: 2,
    ratio: 1,
  })
})

test('[GRP-020] values of the hub outside their domain are ignored, each by itself', () => {
  const override = { min: 3, ratio: 0.5, windowMs: 10_000 }
  for (const hub of [
    { group_down_min: 0, group_down_ratio: 0, group_down_window_seconds: 0 },
    { group_down_min: -1, group_down_ratio: 1.01, group_down_window_seconds: -5 },
    { group_down_min: Number.NaN, group_down_ratio: Number.NaN, group_down_window_seconds: Number.NaN },
  ])
    expect(groupParameters(hub, override, defaults)).toEqual(override)
  expect(groupParameters({ group_down_min: 0, group_down_ratio: 0.01 }, undefined, defaults)).toEqual({
    ...defaults,
    ratio: 0.01,
  })
})
