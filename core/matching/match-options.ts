// What an operator can choose of matching (MAT-231).

export type MatchOptions = {
  /** CentOS is matched with Red Hat's rows (MAT-112). */
  readonly centosAsRedhat: boolean
  /** Findings are also made of what the distribution has not determined yet (MAT-126). */
  readonly undetermined: boolean
  /** AlmaLinux and Rocky also take Red Hat's rows that have no fix (MAT-131). */
  readonly rebuildsUnfixed: boolean
}

export const DEFAULT_MATCH_OPTIONS: MatchOptions = {
  centosAsRedhat: true,
  undetermined: false,
  rebuildsUnfixed: false,
}
