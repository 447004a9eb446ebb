// For each kind of the registry: a body that creates one, made anew for each index, and a change of one. A new kind
// gets an entry here, and test/api/kinds.test.ts then holds it to the rules of all kinds.
import { firstCertificate } from '../ingest/certificates.ts'
import type { Call, Json } from './hub-harness.ts'

type KindSample = {
  /** A body for POST; no two indexes are alike, of one index they are equal. `by` makes what it needs. */
  readonly body: (index: number, by: Call) => Promise<Json> | Json
  /** A change that such a resource accepts, and that changes it. */
  readonly change: Json
  /** A name that nobody has, for a kind whose names have a form. */
  readonly name?: () => string
  /** What a body needs to take a secret. */
  readonly withSecret?: Json
  /** For a kind of manifests: fields, beside the name, of which only a write sees what is wrong. */
  readonly refused?: Json
}

const block = (index: number): string => `10.${Math.floor(index / 250)}.${index % 250}.0/24`

export const kindSamples: Readonly<Record<string, KindSample>> = {
  subnet: {
    body: index => ({ name: `Sample ${index}`, cidr: block(index) }),
    change: { vlan_id: 20 },
    refused: { cidr: '10.7.0.0/24', gateway: '10.8.0.1' },
  },
  ip_address: {
    body: index => ({ address: `10.200.${Math.floor(index / 250)}.${(index % 250) + 1}` }),
    change: { dns_name: 'a.example.net' },
    refused: { address: '10.201.0.1', status: 'reserved', reserved_until: '2001-01-01T00:00:00Z' },
  },
  dns_server: {
    body: index => ({ name: `ns ${index}`, host: `8.8.${Math.floor(index / 250)}.${(index % 250) + 1}` }),
    change: { port: 5353 },
    refused: { host: '127.0.0.1' },
  },
  dns_zone: {
    body: index => ({ name: `sample-${index}.example`, verify_interval_minutes: 0 }),
    name: () => `n-${crypto.randomUUID()}.example`,
    change: { default_ttl: 600 },
    refused: { soa: { contact: 'nobody' } },
  },
  load_balancer: {
    body: index => ({ name: `lb ${index}`, vendor: 'haproxy' }),
    change: { vendor: 'nginx' },
    refused: { vendor: 'haproxy', integration: 'haproxy_dataplane', management_url: 'http://127.0.0.1:5555' },
  },
  lb_pool: {
    body: index => ({ name: `pool ${index}` }),
    change: { min_up: 2 },
  },
  lb_member: {
    body: index => ({ address: `10.100.${Math.floor(index / 250)}.${(index % 250) + 1}`, port: 8080 }),
    change: { weight: 5 },
  },
  virtual_server: {
    body: index => ({ name: `vs ${index}`, address: '192.0.2.10', port: 1000 + index, protocol: 'https' }),
    change: { enabled: false },
  },
  connection: {
    body: index => ({
      source: { kind: 'service', name: `app ${index}` },
      target: { kind: 'external', host: `db-${index}.example.net` },
    }),
    change: { port: 5432 },
    refused: {
      source: { kind: 'service', name: 'a' },
      target: { kind: 'external', host: '10.0.0.1' },
      port: 5,
      probe: { by: 'hub' },
    },
  },
  dns_record: {
    body: index => ({ name: `host-${index}`, type: 'A', value: '192.0.2.1' }),
    change: { comment: 'changed' },
  },
  certificate: {
    body: index => ({ name: `Certificate ${index}`, pem: firstCertificate.cert }),
    change: { renew_before_days: 45 },
    refused: { endpoint: { host: '127.0.0.1', port: 443 } },
  },
  proxy: {
    body: index => ({ name: `proxy ${index}`, check_interval_seconds: 0 }),
    withSecret: { mode: 'forward', url: 'http://127.0.0.1:3128' },
    change: { software: 'nginx' },
    refused: { mode: 'reverse', use_for: ['webhooks'] },
  },
  proxy_site: {
    body: index => ({ name: `site ${index}`, hostnames: [`site-${index}.example.com`] }),
    change: { path: '/api' },
  },
}
