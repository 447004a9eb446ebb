import { expect, test } from 'bun:test'
import { apkBranch, osOf, packageSystemOf } from '../../../core/matching/os-release.ts'

test('[MAT-021] os-release is read with the quotes and escapes of a shell', () => {
  const text = `# comment
NAME="Rocky Linux"
ID='rocky'
ID_LIKE="rhel centos  fedora"
VERSION_ID="9.4"
PRETTY_NAME="Rocky \\"Linux\\" 9.4 \\$x"
CPE_NAME="cpe:/o:rocky:rocky:9::baseos"
`
  expect(osOf(text)).toEqual({
    id: 'rocky',
    version_id: '9.4',
    codename: '',
    id_like: ['rhel', 'centos', 'fedora'],
    cpe_name: 'cpe:/o:rocky:rocky:9::baseos',
    pretty_name: 'Rocky "Linux" 9.4 $x',
  })
})

test('a codename of before its key, and the release of Ubuntu below a derivative', () => {
  expect(osOf('ID=debian\nVERSION_ID="8"\nVERSION="8 (jessie)"\n')?.codename).toBe('jessie')
  expect(osOf('ID=linuxmint\nVERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n')).toMatchObject({
    codename: 'wilma',
    ubuntu_codename: 'noble',
  })
})

test('what names no distribution is none, and nothing is longer than a report takes', () => {
  for (const text of ['', 'NAME=x', 'ID=', '\0\0', 'id=debian']) expect(osOf(text)).toBeNull()
  const os = osOf(`ID=${'x'.repeat(500)}\nID_LIKE="${'y '.repeat(100)}${'z'.repeat(200)}"\nCPE_NAME=${'c'.repeat(500)}`)
  expect(os?.id).toHaveLength(128)
  expect(os?.id_like).toEqual(Array.from({ length: 16 }, () => 'y'))
  expect(os?.cpe_name).toHaveLength(256)
})

test('[MAT-014] the package system is that of ID, then of ID_LIKE', () => {
  const systemOf = (id: string, ...id_like: string[]) => packageSystemOf({ id, id_like })
  expect(systemOf('debian')).toBe('dpkg')
  expect(systemOf('ubuntu', 'debian')).toBe('dpkg')
  expect(systemOf('ol', 'fedora')).toBe('rpm')
  expect(systemOf('opensuse-leap', 'suse', 'opensuse')).toBe('rpm')
  expect(systemOf('alpine')).toBe('apk')
  expect(systemOf('alpine', 'debian')).toBe('apk')
  expect(systemOf('arch')).toBeNull()
})

test('the branch of Alpine is what its repositories name', () => {
  expect(apkBranch('https://dl-cdn.alpinelinux.org/alpine/v3.20/main\nhttps://x/alpine/v3.20/community\n')).toBe(
    'v3.20',
  )
  expect(apkBranch('#https://x/alpine/v3.20/main\nhttps://x/alpine/edge/main\n')).toBe('edge')
  expect(apkBranch('https://x/alpine/v3.20/main\n@testing https://x/alpine/edge/testing\n')).toBe('v3.20')
  expect(apkBranch('')).toBe('')
})
