// The tombstone of a purge: until it ends, what comes of a company or of a server of it is dropped wherever it is met
// (document 3 "Purge"; decision G-140).

/** `serverId` is null for a whole company. */
export type Tombstone = { readonly companyId: string; readonly serverId: string | null; readonly untilMs: number }

/** True when what is of this server is to be dropped. */
export const isUnder = (tombstone: Tombstone, companyId: string, serverId: string, nowMs: number): boolean =>
  tombstone.companyId === companyId &&
  nowMs < tombstone.untilMs &&
  (tombstone.serverId === null || tombstone.serverId === serverId)
