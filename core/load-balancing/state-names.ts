// The states of what a load balancer is made of (resources.md ). They are decided in queries, since lists
// are filtered by them: apps/hub/load-balancers/member-states.ts.

export const memberStates = ['up', 'draining', 'disabled', 'maintenance', 'down', 'unknown'] as const
export type MemberState = (typeof memberStates)[number]
/** The fact that decided the state of a member. */
export const memberReasons = ['admin', 'server_status', 'observed', 'agent', 'check', 'none'] as const
export const adminStates = ['enabled', 'draining', 'disabled'] as const
export type AdminState = (typeof adminStates)[number]
export const poolStates = ['up', 'degraded', 'down', 'empty'] as const
export type PoolState = (typeof poolStates)[number]
export const virtualServerStates = [...poolStates, 'unknown'] as const
