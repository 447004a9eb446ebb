// Which alerts a wide-area incident takes in, and what becomes of them when it ends or is closed by hand (document 2
// "Hub-side alert changes from events"; decisions G-94 to G-101). The incident is a group alert, the alerts in it are
// its children.

/** What of an alert is looked at here. */
type GroupedAlert = {
  readonly id: string
  readonly serverId: string
  readonly state: 'open' | 'acknowledged' | 'resolved' | 'closed' | 'grouped'
  readonly groupId: string | null
  readonly groupMemberIds: readonly string[] | null
  readonly openedAtMs: number
  readonly resolvedAtMs: number | null
  readonly resolvedReason: string | null
}

const isOver = ({ state }: GroupedAlert): boolean => state === 'resolved' || state === 'closed'

/** The first of the groups that lists the server. */
export const groupWith = <A extends GroupedAlert>(groups: readonly A[], serverId: string): A | undefined =>
  groups.find(group => !isOver(group) && group.groupMemberIds?.includes(serverId))

/** Makes the ungrouped agent.down alerts of the members children of a group. */
export function attach<A extends GroupedAlert>(downOf: (serverId: string) => readonly A[], group: A): A[] {
  return (group.groupMemberIds ?? []).flatMap(serverId =>
    downOf(serverId)
      .filter(alert => alert.state === 'open' || alert.state === 'acknowledged')
      .map(alert => ({ ...alert, state: 'grouped' as const, groupId: group.id })),
  )
}

/** Moves each child of a group that ends to another open group that lists its server, or resolves it with the group. */
export function releaseChildren<A extends GroupedAlert>(
  children: readonly A[],
  group: A,
  groups: readonly A[],
  atMs: number,
): A[] {
  const others = groups.filter(other => other.id !== group.id)
  return children.map(child => {
    const next = groupWith(others, child.serverId)
    if (next) return { ...child, groupId: next.id }
    const resolvedAtMs = Math.max(child.openedAtMs, atMs)
    return { ...child, state: 'resolved', resolvedAtMs, resolvedReason: 'group_resolved', groupId: null }
  })
}

/**
 * Releases the children of a group that was closed by hand: each becomes an open alert, or joins another open group
 * that lists its server.
 */
export function closeGroup<A extends GroupedAlert>(group: A, children: readonly A[], otherGroups: readonly A[]): A[] {
  return children.map(child => {
    const next = groupWith(
      otherGroups.filter(other => other.id !== group.id),
      child.serverId,
    )
    return next ? { ...child, groupId: next.id } : { ...child, state: 'open', groupId: null }
  })
}
