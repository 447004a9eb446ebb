import { expect, test } from 'bun:test'
import { accepts, preferredLanguage } from '../../apps/hub/platform/http/negotiation.ts'

test('[HUB-028] an Accept header excludes JSON, or does not', () => {
  const f = (accept: string | null, expected: boolean) => expect([accept, accepts(accept)]).toEqual([accept, expected])
  for (const good of [
    null,
    '',
    ' ',
    '*/*',
    'application/*',
    'application/json',
    'APPLICATION/JSON',
    'text/event-stream',
  ])
    f(good, true)
  f('application/json; charset=utf-8', true)
  f('application/json;version=2', true)
  f('application/problem+json', true)
  f('text/html, application/xhtml+xml, */*;q=0.8', true)
  f('text/html, application/json;q=0.1', true)
  f('text/html', false)
  f('text/html, application/xml;q=0.9', false)
  f('application/json;q=0', false)
  f('application/json;q=0.000', false)
  f('*/*;q=0', false)
  f('nonsense', false)
  // A type that is named counts for more than a range that holds it.
  f('application/json;q=0, text/event-stream;q=0, */*', false)
  f('application/json;q=0, */*', false)
  f('application/json;q=0, application/*', false)
  f('text/*', false)
  f('text/*;q=0, */*', true)
  for (const [accept, types, expected] of [
    ['text/csv', ['text/csv'], true],
    ['application/jsonl', ['text/csv', 'application/jsonl'], true],
    ['text/*', ['text/csv'], true],
    ['image/png', ['text/csv', 'application/jsonl'], false],
    ['image/png', ['*/*'], true],
  ] as const)
    expect([accept, types, accepts(accept, types)]).toEqual([accept, types, expected])
})

test('[HUB-029] [HUB-030] the language is the one of the two that is preferred', () => {
  const f = (header: string | null, expected: string) =>
    expect([header, preferredLanguage(header)]).toEqual([header, expected])
  for (const english of [null, '', 'en', 'en-GB', 'de', 'de, fr;q=0.5', '*', 'en;q=0.9, vi;q=0.8', 'vi;q=0', 'x;;q'])
    f(english, 'en')
  for (const vietnamese of ['vi', 'VI', 'vi-VN', 'vi-VN,vi;q=0.9,en;q=0.5', 'en;q=0.5, vi', 'de, vi;q=0.1', 'vi, en'])
    f(vietnamese, 'vi')
  f('vi;q=0, *', 'en')
})

test('headers that are made to be slow are read in no time', () => {
  const startedAt = performance.now()
  for (const piece of [',', ';', 'a/b;q=', '"', 'a/b;x="', '*/*,', 'en-', 'en;q=0.1,', ' ', 'a/b; '.repeat(3)]) {
    const header = piece.repeat(Math.ceil(16_384 / piece.length))
    accepts(header)
    preferredLanguage(header)
  }
  expect(performance.now() - startedAt).toBeLessThan(2_000)
})
