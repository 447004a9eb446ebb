// Aliases in manifests: how many there may be; and that no secret is kept of a run, behind an alias or anywhere else.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { withoutSecrets } from '../../apps/hub/iac/manifest-secrets.ts'
import { type Json, TestHub } from './hub-harness.ts'
import { type Acme, acme, submit } from './iac-rig.ts'

let hub: TestHub
let own: Acme

beforeAll(async () => {
  hub = await TestHub.start()
  own = await acme(hub)
})
afterAll(() => hub.stop())

const head = (kind: string): string =>
  `apiVersion: hub/v1\nkind: ${kind}\nmetadata: {company: ${own.slug}, name: a}\nspec:\n`
const sent = (contents: string): Promise<Json> => submit(hub, own, [{ path: 'x.yml', contents }])
const texts = ({ errors }: Json): string[] => errors.map(({ message }: Json) => message)

test('[R-043] 100 aliases are planned and 101 are not, whatever stands in the anchor', async () => {
  const flat = (count: number) =>
    `${head('option-list').replace('name: a', 'name: environments')}  items:\n    - {value: one, label: &l Same}\n${Array.from({ length: count }, (_, index) => `    - {value: v${index}, label: *l}\n`).join('')}`
  const hundred = await sent(flat(100))
  expect([hundred.errors, hundred.items[0]?.action]).toEqual([[], 'create'])
  expect(texts(await sent(flat(101)))).toEqual([expect.stringContaining('at most 100 aliases')])
  // Seven aliases in an anchor that is named twenty times are 27, not 140.
  const pools = Array.from({ length: 20 }, (_, index) => `    - {name: p${index}, members: *m}\n`).join('')
  const members = Array.from({ length: 7 }, (_, index) => `{address: 192.0.2.${index + 1}, port: *x}`).join(', ')
  const nested = `${head('load-balancer')}  vendor: f5\n  pools:\n    - {name: p, members: &m [{address: 192.0.2.9, port: &x 80}, ${members}]}\n${pools}`
  expect(texts(await sent(nested))).toEqual([])
})

test('[R-043] what aliases multiply is refused at the first of them, however few they are', async () => {
  const letters = [...'abcdefghi']
  const bomb = letters.map((name, index) =>
    index === 0
      ? 'a: &a [x, x]'
      : `${name}: &${name} [${Array(11)
          .fill(`*${letters[index - 1]}`)
          .join(', ')}]`,
  )
  expect(bomb.join().match(/\*/g)).toHaveLength(88)
  expect((await sent(bomb.join('\n'))).errors).toEqual([
    { path: 'x.yml', line: 2, message: 'is too large with its aliases replaced' },
  ])
})

test('[RES-144] a secret that an alias says is not kept where its anchor stands, and neither is one in an address', async () => {
  const secret = `hush-${crypto.randomUUID()}`
  const refused = [
    `${head('server')}  description: &p ${secret}\n  password: *p\n  api_key: *p\n`,
    `${head('server')}  tags: &t [a, &p ${secret}]\n  description: &d x\n  token: {a: *t, b: [*p]}\n`,
    `${head('server')}  tags: [&p ${secret}]\n  role: &r {of: *p}\n  secret: *r\n`,
    `${head('webhook')}  url: https://me:${secret}@example.com/hook\n`,
    `${head('webhook')}  description: &u "https:\\/\\/${secret}@example.com"\n  url: *u\n`,
    `${head('load-balancer')}  vendor: f5\n  management_url: https://me:${secret}@example.com\n`,
    `${head('webhook')}  url: https://me:${secret}@example.com/hook\n  broken: [\n`,
  ]
  const run = await submit(
    hub,
    own,
    refused.map((contents, index) => ({ path: `${index}.yml`, contents })),
  )
  expect(new Set(run.errors.map(({ path }: Json) => path)).size).toBe(refused.length)
  for (const { path, contents } of run.files)
    expect([path, contents]).toEqual([path, expect.not.stringContaining(secret)])
  expect(run.files[0].contents).toContain('description: &p (hidden)\n\n  password: (hidden)\n')
  expect(run.files[1].contents).toContain('description: &d x\n')
  expect(run.files[6].contents).toBe('(hidden)')
  expect(JSON.stringify([run, (await own.call('GET', `/iac/runs/${run.id}/timeline`)).body])).not.toContain(secret)
})

test('[RES-144] of a text that no YAML reads nothing is kept that may be a secret, wherever it stands', async () => {
  const secret = `hush-${crypto.randomUUID()}`
  const unreadable = [
    ...[`password: |\n    ${secret}`, `password: >-\n    ${secret}`, `password:\n    ${secret}`],
    ...[`credentials:\n    - ${secret}`, `credentials:\n    a: ${secret}`, `? password\n  : ${secret}`],
    ...[`"pass\\u0077ord": ${secret}`, `x: &a ${secret}\n  password: *a`, `password: [a,\n    ${secret}]`],
    ...[`password: aa, ${secret}`, `password: aa}${secret}`, `api-key: ${secret}`, `private-key: ${secret}`],
    `url: https://me:${secret}@example.com`,
  ].map(field => `${head('server')}  ${field}\n  broken: [\n`)
  const plain = `${head('server')}  description: a text\n  broken: [\n`
  const run = await submit(
    hub,
    own,
    [...unreadable, plain].map((contents, index) => ({ path: `${index}.yml`, contents })),
  )
  expect(JSON.stringify(run)).not.toContain(secret)
  expect(run.files.map(({ contents }: Json) => contents)).toEqual([...unreadable.map(() => '(hidden)'), plain])
})

test('[RES-129] a text that no YAML reads is looked through at once, whatever it is made of', () => {
  for (const part of ['a', 'password', '-----BEGIN ', '-----BEGIN A', 'a:/', 'a://', 'a:\\', '"', '-', ' ']) {
    const text = part.repeat(250_000 / part.length)
    expect([part, withoutSecrets(text)]).toEqual([part, part === 'password' ? '(hidden)' : text])
  }
})
