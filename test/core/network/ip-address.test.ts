import { expect, test } from 'bun:test'
import { IpRanges, isAddressOrRange, parseAddress, plainAddress } from '../../../core/network/ip-address.ts'
import { isPublicAddress } from '../../../core/network/public-address.ts'
import { rateKeyOf } from '../../../core/network/rate-key.ts'
import { TrustedProxies } from '../../../core/network/trusted-proxies.ts'

test('an address is read in its one full form, or not at all', () => {
  const f = (text: string, expected: string | null) => expect(parseAddress(text)?.toString() ?? null).toBe(expected)
  f('10.0.0.1', '10.0.0.1')
  f('2001:DB8:0::1', '2001:db8::1')
  f('::ffff:10.0.0.1', '10.0.0.1')
  f('::ffff:a00:1', '10.0.0.1')
  // Forms that other programs read as another address than the library does.
  for (const odd of ['0177.0.0.1', '010.0.0.1', '0x7f.0.0.1', '127.1', '2130706433', '1.2.3.04', '::ffff:0127.0.0.1'])
    f(odd, null)
  for (const odd of ['', ' 10.0.0.1', '[::1]', 'fe80::1%eth0', '1::2::3', ':::1', '1.2.3.4.5', 'example.com'])
    f(odd, null)
})

test('a range is an address with at most one plain number of bits', () => {
  const f = (text: string, expected: boolean) => expect([text, isAddressOrRange(text)]).toEqual([text, expected])
  for (const good of ['10.0.0.0/8', '10.0.0.1', '0.0.0.0/0', '::/0', 'fd00::/8', '::1', '::ffff:10.0.0.0/104'])
    f(good, true)
  for (const bad of ['10.0.0.0/8/9', '10.0.0.0/', '127.0.0.0/8/32', '10.0.0.0/33', '::1/129', '10.0.0.0/08', '10/8'])
    f(bad, false)
  for (const bad of ['', '/8', '10.0.0.0/-1', '10.0.0.0/ 8', '10.0.0.0/1e1', 'fe80::1%eth0/64', '::ffff:10.0.0.0/64'])
    f(bad, false)
})

test('ranges cover addresses of their own family, and IPv4 in the form of IPv6', () => {
  const f = (ranges: string[], address: string, expected: boolean) =>
    expect([ranges, address, new IpRanges(ranges).coversText(address)]).toEqual([ranges, address, expected])
  f(['10.0.0.0/8'], '10.255.0.1', true)
  f(['10.0.0.0/8'], '11.0.0.1', false)
  f(['10.0.0.0/8'], '::ffff:10.0.0.1', true)
  f(['::ffff:10.0.0.0/104'], '10.1.1.1', true)
  f(['::/0'], '10.0.0.1', false)
  f(['0.0.0.0/0'], '::1', false)
  f(['fd00::/8', '192.0.2.7'], '192.0.2.7', true)
  f([' 10.0.0.0/8 '], '10.0.0.1', true)
  // A malformed range from before the check covers nothing.
  f(['127.0.0.0/8/32'], '127.0.0.1', false)
  f(['10.0.0.0/8'], 'nonsense', false)
})

test('a rate is counted by IPv4 address and by /64 of IPv6', () => {
  expect(rateKeyOf('192.0.2.7')).toBe('192.0.2.7')
  expect(rateKeyOf('::ffff:192.0.2.7')).toBe('192.0.2.7')
  expect(rateKeyOf('2001:db8:1:2:3::4')).toBe(rateKeyOf('2001:db8:1:2:ffff:1:2:3'))
  expect(rateKeyOf('2001:db8:1:2::1')).not.toBe(rateKeyOf('2001:db8:1:3::1'))
  expect(rateKeyOf('')).toBe('')
})

test('the plain form of an address is IPv4 where it carries one', () => {
  expect(plainAddress('::ffff:a00:1')).toBe('10.0.0.1')
  expect(plainAddress('2001:DB8::1')).toBe('2001:DB8::1')
  expect(plainAddress('db1.example.com')).toBe('db1.example.com')
})

test('what the registries set aside is not public, however it is written', () => {
  const special = [
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1', '192.0.0.9', '192.0.2.1'],
    ...['192.31.196.1', '192.52.193.1', '192.88.99.1', '192.168.1.1', '192.175.48.1', '198.19.0.1', '198.51.100.1'],
    ...['203.0.113.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
    ...['::', '::1', '::7f00:1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:0:127.0.0.1', '64:ff9b::808:808'],
    ...[
      '64:ff9b:1::7f00:1',
      '100::1',
      '100:0:0:1::1',
      '2001::1',
      '2001:1::1',
      '2001:2::1',
      '2001:3::1',
      '2001:4:112::1',
    ],
    ...[
      '2001:10::1',
      '2001:20::1',
      '2001:30::1',
      '2001:db8::1',
      '2002:7f00:1::',
      '2620:4f:8000::1',
      '3fff::1',
      '4000::1',
    ],
    ...['5f00::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'ff02::1', 'nonsense', ''],
  ]
  expect(special.filter(isPublicAddress)).toEqual([])
  const open = ['1.1.1.1', '93.184.215.14', '::ffff:8.8.8.8', '2606:4700::1111', '2001:4860:4860::8888', '2a00:1450::1']
  expect(open.filter(address => !isPublicAddress(address))).toEqual([])
})

test('what trusted proxies say is read in the one form that an address has', () => {
  const f = (trusted: string[], peer: string, forwardedFor: string | null, expected: string) =>
    expect(new TrustedProxies(trusted).clientAddress(peer, forwardedFor)).toBe(expected)
  f(['10.0.0.0/8'], '::ffff:a00:1', '2001:DB8:0::5', '2001:db8::5')
  f(['10.0.0.0/8'], '10.0.0.1', '[2001:db8::5]', '2001:db8::5')
  f(['fe80::/10'], 'fe80::1%eth0', '192.0.2.7', '192.0.2.7')
  f(['10.0.0.0/8'], '10.0.0.1', '0300.0.2.7', '10.0.0.1')
  f([], '2001:DB8::1', '192.0.2.7', '2001:db8::1')
  for (const bad of ['10.0.0.0/8/9', '10.0.0.0/']) expect(() => new TrustedProxies([bad])).toThrow(bad)
})
