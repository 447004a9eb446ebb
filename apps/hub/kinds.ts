// Every kind of resource that the hub knows: those of the registry, and what stood before it.

import { certificateKind } from './certificates/certificate.ts'
import { certificateActs } from './certificates/look-at-deployments.ts'
import { connectionKind } from './connections/connection.ts'
import { connectionActs } from './connections/connection-test.ts'
import { dnsRecordKind } from './dns/dns-record.ts'
import { dnsServerKind } from './dns/dns-server.ts'
import { dnsZoneKind } from './dns/dns-zone.ts'
import { zoneActs } from './dns/zone-sync.ts'
import { syncAct } from './load-balancers/device-drift.ts'
import { lbMemberKind, WRITE } from './load-balancers/lb-member.ts'
import { loadBalancerKind } from './load-balancers/load-balancer.ts'
import { poolKind } from './load-balancers/pool-with-members.ts'
import { virtualServerKind } from './load-balancers/virtual-server.ts'
import { writeStateAct } from './load-balancers/write-member-state.ts'
import { ipAddressKind } from './network/ip-address.ts'
import { subnetKind } from './network/subnet.ts'
import { proxyKind } from './proxies/proxy.ts'
import { proxyActs } from './proxies/proxy-acts.ts'
import { proxySiteKind } from './proxies/proxy-site.ts'
import { type Kind, withActs } from './resources/kind.ts'
import { kindsOf } from './resources/kind-info.ts'
import { outsideKinds } from './resources/outside-kinds.ts'

/** The kinds of the registry. A new one is named here, and has its usual routes by that. */
export const kinds: readonly Kind[] = [
  subnetKind,
  ipAddressKind,
  withActs(certificateKind, certificateActs),
  dnsServerKind,
  withActs(dnsZoneKind, zoneActs),
  dnsRecordKind,
  withActs(loadBalancerKind, { sync: syncAct(loadBalancerKind.info) }),
  poolKind,
  withActs(lbMemberKind, { [WRITE]: writeStateAct }),
  virtualServerKind,
  withActs(connectionKind, connectionActs),
  withActs(proxyKind, proxyActs),
  proxySiteKind,
]

export const allKinds = kindsOf([...outsideKinds, ...kinds.map(kind => kind.info)])
