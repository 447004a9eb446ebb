// The life of an agent record in the hub: which state enrollment gives it (document 1 "Agent state"; decisions G-24,
// G-26).
// When it counts as online stands in agent-shown-online.ts, what a rotation of its token does in token-rotation.ts.

export const agentStates = ['pending', 'active', 'revoked'] as const
export type AgentState = (typeof agentStates)[number]

/** An agent waits for approval exactly when its server is a draft that enrollment made. */
export const stateAtEnrollment = (serverStatus: string): AgentState => (serverStatus === 'draft' ? 'pending' : 'active')

/** The server status in an agent record: empty for statuses that do not suppress. */
export const serverStatusOfRecord = (status: string | null): 'maintenance' | 'decommissioned' | '' =>
  status === 'maintenance' || status === 'decommissioned' ? status : ''
