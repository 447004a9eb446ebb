import { expect, test } from 'bun:test'
import { ApkInstalledReader } from '../../../core/matching/apk-installed.ts'
import { PackageList } from '../../../core/matching/package-list.ts'

function read(text: string, pieceLength = text.length) {
  const list = new PackageList()
  const reader = new ApkInstalledReader(list)
  for (let at = 0; at < text.length; at += pieceLength) reader.push(text.slice(at, at + pieceLength))
  const isWhole = reader.end()
  const lines = list.packages.map(each =>
    [each.name, each.version, each.arch, each.source, each.sourceVersion].join(' '),
  )
  return { isWhole, isIncomplete: list.isIncomplete, lines }
}

// As `apk add` writes it.
const ALPINE = `C:Q1qKcZ+j23xssAXmgQhkOO8dHnbWw=
P:alpine-baselayout
V:3.6.5-r0
A:x86_64
S:8515
I:315392
T:Alpine base dir structure and init scripts
U:https://git.alpinelinux.org/cgit/aports/tree/main/alpine-baselayout
L:GPL-2.0-only
o:alpine-baselayout
m:Natanael Copa <ncopa@alpinelinux.org>
t:1714981135
c:66187892e05b03a41d08e9acabd19b7576a1c875
D:alpine-baselayout-data=3.6.5-r0 /bin/sh
q:1000
F:dev
F:etc
R:motd
Z:Q1SLkS9hBidUbPwwrw+XR0Whv3ww8=
F:etc/crontabs
R:root
a:0:0:600

C:Q1Z1iO0rHdmNzzM5QAxGjYTz6ATjA=
P:libcrypto3
V:3.3.1-r3
A:x86_64
o:openssl
F:usr/lib
M:0:0:755

P:plain
V:1

`

test('[MAT-013] name, version, arch and origin of each package are read, and nothing of its files', () => {
  expect(read(ALPINE)).toEqual({
    isWhole: true,
    isIncomplete: false,
    lines: [
      'alpine-baselayout 3.6.5-r0 x86_64 alpine-baselayout 3.6.5-r0',
      'libcrypto3 3.3.1-r3 x86_64 openssl 3.3.1-r3',
      'plain 1  plain 1',
    ],
  })
})

test('pieces may end anywhere', () => {
  const whole = read(ALPINE)
  for (let length = 1; length < 200; length++) expect(read(ALPINE, length)).toEqual(whole)
})

test('[MAT-008] [MAT-015] a package without a version is told, and a list that is cut is none', () => {
  expect(read('P:a\nA:x86_64\n\nP:b\nV:1\n\n')).toEqual({ isWhole: true, isIncomplete: true, lines: ['b 1  b 1'] })
  for (const text of ['P:a\nV:1.2', 'P:a\nV:1\n\nnothing\n', '\0\0\0\n', 'P a\n', '1:a\n'])
    expect(read(text).isWhole).toBe(false)
})
