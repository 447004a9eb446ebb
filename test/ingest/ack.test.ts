import { expect, test } from 'bun:test'
import { fromBinary } from '@bufbuild/protobuf'
import { AckEncoder } from '../../apps/collector/ingest/metrics/metrics-ack.ts'
import { TrustedProxies } from '../../core/network/trusted-proxies.ts'
import { MetricsAckSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { Random, seedOf } from '../fuzz/seeded.ts'

test('[WIRE-017] [ING-004] the hand-written acknowledgement is what the generated code reads', () => {
  const random = new Random(seedOf('ack'))
  const acks = new AckEncoder()
  const word = () =>
    random.pick([0, 1, 127, 128, 255, 65_535, 2 ** 28 - 1, 2 ** 28, 2 ** 31, 2 ** 32 - 1, random.below(2 ** 31)])
  for (let run = 0; run < 5000; run++) {
    const [seqLow, seqHigh, acceptedPoints, droppedPoints] = [word(), word(), word(), word()]
    const serverTimeMs = random.pick([
      0,
      1,
      1_795_000_000_000,
      2 ** 32,
      2 ** 32 - 1,
      2 ** 53 - 1,
      Math.floor(random.float() * 2 ** 53),
    ])
    const etag = random.pick(['', '0123456789abcdef', 'é'.repeat(200)])
    const warnings = Array.from({ length: random.below(4) }, () => 'ü€😀 warning'.repeat(random.below(60)))
    const bytes = acks.encode({
      serverTimeMs,
      seqLow,
      seqHigh,
      etag: new TextEncoder().encode(etag),
      acceptedPoints,
      droppedPoints,
      warnings,
    })
    const { $typeName: _, ...read } = fromBinary(MetricsAckSchema, bytes)
    expect(read).toEqual({
      serverTimeMs: BigInt(serverTimeMs),
      ackSeq: (BigInt(seqHigh) << 32n) | BigInt(seqLow),
      configEtag: etag,
      acceptedPoints,
      droppedPoints,
      warnings,
    })
  }
})

test('[ENR-005] the address of an agent is the peer’s, or what a trusted proxy says of it', () => {
  const f = (trusted: string[], peer: string, forwardedFor: string | null, expected: string) =>
    expect(new TrustedProxies(trusted).clientAddress(peer, forwardedFor)).toBe(expected)
  f([], '198.51.100.7', null, '198.51.100.7')
  f([], '198.51.100.7', '203.0.113.9', '198.51.100.7')
  f(['198.51.100.0/24'], '198.51.100.7', '203.0.113.9', '203.0.113.9')
  f(['198.51.100.0/24'], '198.51.100.7', 'forged, 203.0.113.9', '203.0.113.9')
  f(['198.51.100.0/24'], '198.51.100.7', '192.0.2.1, 203.0.113.9, 198.51.100.8', '203.0.113.9')
  f(['198.51.100.7'], '::ffff:198.51.100.7', '203.0.113.9', '203.0.113.9')
  f(['fd00::/8'], 'fd00::1', '2001:db8::5', '2001:db8::5')
  f(['198.51.100.0/24'], '198.51.100.7', 'nonsense', '198.51.100.7')
  f(['198.51.100.0/24'], '198.51.100.7', '198.51.100.9', '198.51.100.9')
  expect(() => new TrustedProxies(['10.0.0.0/33'])).toThrow('10.0.0.0/33')
  expect(() => new TrustedProxies(['proxy.example.net'])).toThrow('proxy.example.net')
})
