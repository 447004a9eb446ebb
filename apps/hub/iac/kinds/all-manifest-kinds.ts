// The kinds that manifests have, in the order of applying: those that stood before the registry, each with a file of
// its own, and every kind of the registry.
import { kinds } from '../../kinds.ts'
import { checkKind } from './check-kind.ts'
import { exportScheduleKind } from './export-schedule-kind.ts'
import { loadBalancerManifests } from './load-balancer-kind.ts'
import type { ManifestKind } from './manifest-kind.ts'
import { optionListKind } from './option-list-kind.ts'
import { proxyManifests } from './proxy-kind.ts'
import { manifestKindOf } from './registry-kind.ts'
import { ruleKind } from './rule-kind.ts'
import { serverKind } from './server-kind.ts'
import { silenceKind } from './silence-kind.ts'
import { webhookKind } from './webhook-kind.ts'
import { zoneKind } from './zone-kind.ts'

/** Kinds of the registry whose manifests say their parts too. */
const withFilesOfTheirOwn = new Set([zoneKind, loadBalancerManifests, proxyManifests].map(kind => kind.resourceKind))

export const manifestKinds: readonly ManifestKind[] = [
  optionListKind,
  serverKind,
  checkKind,
  ruleKind,
  silenceKind,
  webhookKind,
  zoneKind,
  loadBalancerManifests,
  proxyManifests,
  exportScheduleKind,
  ...kinds.flatMap(kind => (withFilesOfTheirOwn.has(kind.info.kind) ? [] : (manifestKindOf(kind) ?? []))),
].sort((a, b) => a.order - b.order)

const byName = new Map(manifestKinds.map(kind => [kind.kind, kind]))
export const manifestKind = (kind: string): ManifestKind | null => byName.get(kind) ?? null

const byResource = new Map(manifestKinds.map(kind => [kind.resourceKind, kind]))
/** By the name that the audit log and references have. */
export const manifestKindOfResource = (resourceKind: string): ManifestKind | null =>
  byResource.get(resourceKind) ?? null
