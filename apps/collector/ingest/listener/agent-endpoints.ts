// The endpoints of the agent API (document 3 "Agent to collector"): the path, method and name of each, for the thread
// that serves it and for the listener threads, which forward some of them.
import type { Endpoint, Endpoints } from '../../../http/endpoint-listener.ts'

type Handle = Endpoint['handle']

const endpoints = {
  ping: { path: '/agent/v1/ping', method: 'GET' },
  metrics: { path: '/agent/v1/metrics', method: 'POST' },
  enroll: { path: '/agent/v1/enroll', method: 'POST' },
  config: { path: '/agent/v1/config', method: 'GET' },
  inventory: { path: '/agent/v1/inventory', method: 'POST' },
  renew: { path: '/agent/v1/credentials/renew', method: 'POST' },
  update: { path: '/agent/v1/update', method: 'GET' },
} as const satisfies Readonly<Record<string, Pick<Endpoint, 'method'> & { readonly path: string }>>

type Name = keyof typeof endpoints

const LOCAL = ['ping', 'metrics'] as const satisfies readonly Name[]
const CONTROL = ['enroll', 'config', 'inventory', 'renew', 'update'] as const satisfies readonly Name[]

const endpointsOf = <Some extends Name>(names: readonly Some[], handlerOf: (name: Some) => Handle): Endpoints =>
  Object.fromEntries(
    names.map(name => [endpoints[name].path, { name, method: endpoints[name].method, handle: handlerOf(name) }]),
  )

/** The endpoints that every thread serves for its own connections. */
export const localEndpoints = (handlers: Readonly<Record<(typeof LOCAL)[number], Handle>>): Endpoints =>
  endpointsOf(LOCAL, name => handlers[name])

export type ControlHandlers = Readonly<Record<(typeof CONTROL)[number], Handle>>

/** The endpoints that need the registry or the hub: the main thread serves them, listener threads forward them. */
export const controlEndpoints = (handlerOf: (name: (typeof CONTROL)[number]) => Handle): Endpoints =>
  endpointsOf(CONTROL, handlerOf)
